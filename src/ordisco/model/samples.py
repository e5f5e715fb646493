"""Images drawn from G as a folder that other programs, and `ordisco run`, can read."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from ordisco.data.dataset import folded
from ordisco.data.own import TEST, UNLABELED_FOLDERS
from ordisco.errors import OrdiscoError
from ordisco.files import sync_directory, told_in_one_line, written_aside
from ordisco.learner.learner import Learner
from ordisco.learner.seeding import derive_seed

LIST = "labels.csv"
LONGEST = 100  # characters of a folder's name
CHUNK = 256  # images in memory at once


def write_samples(out: Path, learner: Learner, names: Sequence[str], count: int, seed: int = 0) -> None:
    """`count` PNG files of each class in a folder of its own, and labels.csv, which has every class's name in full."""
    if not learner.has_generator:
        raise OrdiscoError(f"the method {learner.method.name} has no generator to sample from")
    with told_in_one_line("write", out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise OrdiscoError(f"{out} exists already: give a new folder")
        out.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(out) as partial:
            partial.mkdir()
            rows = [("path", "label")]
            for label, name, folder in zip(learner.classes, names, folder_names(names), strict=True):
                (partial / folder).mkdir()
                for index, image in enumerate(_drawn(learner, label, count, seed)):
                    path = f"{folder}/{index + 1:0{len(str(count))}d}.png"
                    Image.fromarray(image.numpy()).save(partial / path)
                    rows.append((path, name))
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows(rows)
            (partial / LIST).write_text(text.getvalue(), encoding="utf-8")
            if out.is_dir():
                out.rmdir()  # empty
        sync_directory(out.parent)


def folder_names(names: Sequence[str]) -> list[str]:
    """The name of each class where a folder may have it, else its number.

    >>> folder_names(["shoe", "a/b", "..", "test", "Shoe"])
    ['shoe', 'class-2', 'class-3', 'class-4', 'class-5']
    """
    taken: set[str] = set()
    found = []
    for number, name in enumerate(names, start=1):
        plain = (
            name.isprintable()
            and not set(name) & set('/\\:*?"<>|')
            and not name.startswith(".")
            and name == name.strip(" .")
            and len(name.encode("utf-8", "replace")) <= LONGEST
            and folded(name) not in {TEST, *UNLABELED_FOLDERS, *taken}
        )
        folder = name if plain else f"class-{number}"
        while folded(folder) in taken:
            folder += "-"
        found.append(folder)
        taken.add(folded(folder))
    return found


def _drawn(learner: Learner, label: int, count: int, seed: int) -> Iterator[Tensor]:
    """Images (h, w) or (h, w, 3) of a class."""
    for start in range(0, count, CHUNK):
        labels = torch.full((min(CHUNK, count - start),), label)
        for image in learner.sample(labels, derive_seed(seed, label, start)).cpu():
            yield image[0] if len(image) == 1 else image.permute(1, 2, 0).contiguous()
