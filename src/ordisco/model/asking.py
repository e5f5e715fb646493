"""What a model takes each image of a folder for, and which of them are worth a label; a batch in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ordisco.data import own
from ordisco.data.own import UNLABELED_FOLDERS
from ordisco.errors import OrdiscoError
from ordisco.evaluation.ask import uncertainty, worth_a_label
from ordisco.model.model import Model
from ordisco.model.pictures import listed
from ordisco.words import counted, some_of

NAMES_SHOWN = 5


@dataclass(frozen=True)
class Survey:
    """What the model says of the images that can be decoded: a position in its classes, how surely, and its doubt."""

    paths: list[Path]
    best: Tensor
    confidence: Tensor
    doubts: Tensor
    broken: list[tuple[Path, str]]


def without_label(source: Path) -> list[Path]:
    """All images of a folder, or those in its unlabeled/ if it has one; the lines of a CSV file that have no label."""
    if source.is_dir():
        inner = [source / name for name in UNLABELED_FOLDERS if (source / name).is_dir()]
        paths = [image.path for folder in inner or [source] for image in own.walk(folder)]
    else:
        paths = [image.path for image in listed([source]) if image.label is None]
    if not paths:
        raise OrdiscoError(f"{source}: no images without a label found")
    return paths


def survey(model: Model, paths: Sequence[Path], progress: Callable[[int], None]) -> Survey:
    """Look at all images once."""
    good: list[Path] = []
    broken: list[tuple[Path, str]] = []
    bests, confidences, doubts = [torch.zeros(0, dtype=torch.int64)], [torch.zeros(0)], [torch.zeros(0)]
    for part in model.pictures(paths):
        good += part.paths
        broken += part.broken
        probabilities = torch.from_numpy(model.probabilities(part.images))
        if len(probabilities):
            confidence, best = probabilities.max(dim=1)
            bests.append(best)
            confidences.append(confidence)
            doubts.append(uncertainty(probabilities))
        progress(len(good) + len(broken))
    if not good:
        raise OrdiscoError(f"none of {len(broken):,} images can be decoded, e.g. {broken[0][0]} ({broken[0][1]})")
    return Survey(good, torch.cat(bests), torch.cat(confidences), torch.cat(doubts), broken)


def left_out(found: Survey) -> str:
    """A line on the images that could not be decoded."""
    names = [f"{path} ({why})" for path, why in found.broken]
    return f"{counted(len(names), 'unreadable image')} left out: {some_of(names, NAMES_SHOWN)}"


def asked(model: Model, found: Survey, count: int, seed: int = 0) -> list[int]:
    """The places of `count` images in a survey that are worth a label, most uncertain first."""

    def features(candidates: Tensor) -> Tensor:
        return model.features([found.paths[place] for place in candidates.tolist()])

    places: list[int] = worth_a_label(found.doubts, features, count, seed).tolist()
    return places
