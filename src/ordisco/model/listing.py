"""Which images a folder or a CSV file names, and their labels; a million of them in little memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ordisco.data import own
from ordisco.data.dataset import UNLABELED, natural_order
from ordisco.data.picture import known_formats
from ordisco.errors import OrdiscoError
from ordisco.model.automatic import LARGEST

SAMPLED = 200  # images whose size is looked at before the first delivery


@dataclass(frozen=True)
class Listing:
    """The images of a delivery that is to be read."""

    source: Path
    paths: list[str]
    names: tuple[str, ...]
    labels: Tensor  # positions in `names`, −1 where unlabelled
    test: Tensor  # is it a test image?
    key: str  # changes with the files' names, sizes, times and labels


def listing_of(source: Path) -> Listing:
    """What a folder or CSV file names."""
    source = Path(os.path.expanduser(source))
    if not (source.is_dir() or (source.is_file() and source.suffix.lower() == ".csv")):
        raise OrdiscoError(f"{source} is no delivery: give a folder or a .csv file of path,label")
    paths: list[str] = []
    found: dict[str | None, int] = {}  # labels in the order they came
    codes, test = bytearray(), bytearray()
    digest = hashlib.sha256()
    for image in own.stream_images(source):
        paths.append(path := str(image.path))
        codes += found.setdefault(image.label, len(found)).to_bytes(4, "little")
        test.append(image.test)
        digest.update(json.dumps([path, *_state(path), image.label, image.test]).encode())
    if not paths:
        raise own.nothing_in(source)
    own.check_names(source, {name for name in found if name is not None})
    _check_twice(source, paths)
    names = natural_order(sorted(name for name in found if name is not None))
    table = torch.tensor([UNLABELED if name is None else names.index(name) for name in found])
    labels = table[torch.from_numpy(np.frombuffer(codes, "<i4").astype(np.int64))]
    return Listing(source, paths, tuple(names), labels, torch.frombuffer(test, dtype=torch.bool), digest.hexdigest())


def _state(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return -1, -1  # a missing image is told when it is decoded
    return status.st_size, status.st_mtime_ns


def _check_twice(source: Path, paths: Sequence[str]) -> None:
    """Refuse a file that is listed twice, be it by another path. Hashes tell whether it is worth a closer look."""
    hashes = np.fromiter((hash(place) for place in _places(paths)), np.int64, len(paths))
    if len(np.unique(hashes)) == len(hashes):
        return
    seen: dict[str, str] = {}
    for path, place in zip(paths, _places(paths), strict=True):
        if (other := seen.setdefault(place, path)) is not path:
            also = "" if other == path else f" (also {other})"
            raise OrdiscoError(f"{source}: {path}{also} is listed twice; list it once")


def _places(paths: Sequence[str]) -> Iterator[str]:
    """Where each file really lies."""
    folders: dict[str, str] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        place = os.path.join(folders[folder], name)
        yield os.path.realpath(place) if os.path.islink(place) else place


def shorter_sides(paths: Sequence[str]) -> list[int]:
    """The shorter side of some of the images, evenly spaced; their headers are read, no more."""
    sides = []
    for path in paths[:: max(1, len(paths) // SAMPLED)]:
        try:
            with Image.open(path, formats=known_formats()) as picture:
                sides.append(min(picture.size))
        except Exception:  # a broken one is told when it is decoded
            continue
    return sides or [LARGEST]
