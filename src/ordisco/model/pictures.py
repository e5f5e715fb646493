"""Image files read a few at a time: what `predict` and `test` go through, however many there are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ordisco.data import own
from ordisco.data.own import Listed
from ordisco.data.picture import Undecodable, decode
from ordisco.errors import OrdiscoError
from ordisco.machine.cores import cores

BATCH = 256


@dataclass(frozen=True)
class Pictures:
    """A few decoded images: their paths, and their labels where these are known."""

    paths: list[Path]
    labels: list[str | None]
    images: Tensor  # uint8, as the model takes them
    broken: list[tuple[Path, str]]  # what could not be decoded, and why


def listed(sources: Iterable[Path]) -> Iterator[Listed]:
    """The images of folders, CSV files and single files, one by one."""
    for source in sources:
        if is_single(source):
            yield Listed(source, None)
        else:
            yield from own.walk(source)


def is_single(source: Path) -> bool:
    """Is it one image, and no folder or CSV file?"""
    return not source.is_dir() and source.suffix.lower() != ".csv"


def read(listing: Iterable[Listed], image_shape: tuple[int, int, int], batch: int = BATCH) -> Iterator[Pictures]:
    """Decode them, a batch at a time; a colour image for a model of grey ones is an error."""
    channels, side, _ = image_shape
    images = iter(listing)
    with ThreadPoolExecutor(cores()) as pool:
        while part := list(islice(images, batch)):
            outcomes = pool.map(lambda image: attempt(image.path, side), part)
            yield gathered(part, list(outcomes), channels, side)


def attempt(path: Path, side: int) -> tuple[np.ndarray, bool] | str:
    """The decoded image and whether it is grey, or why it cannot be decoded."""
    try:
        return decode(path, side)
    except Undecodable as error:
        return str(error)


def gathered(
    part: Sequence[Listed], outcomes: Sequence[tuple[np.ndarray, bool] | str], channels: int, side: int
) -> Pictures:
    """What became of a batch."""
    good: list[Listed] = []
    arrays = []
    broken = []
    for image, outcome in zip(part, outcomes, strict=True):
        if isinstance(outcome, str):
            broken.append((image.path, outcome))
            continue
        array, grey = outcome
        if channels == 1 and not grey:
            raise OrdiscoError(f"{image.path} is a colour image, the model takes grey ones: convert it")
        good.append(image)
        arrays.append(array[:channels])
    pixels = np.stack(arrays) if arrays else np.empty((0, channels, side, side), np.uint8)
    return Pictures([image.path for image in good], [image.label for image in good], torch.from_numpy(pixels), broken)


def paths_of(images: object) -> list[Path] | None:
    """The paths, where one or several are given instead of arrays."""
    if isinstance(images, str | os.PathLike):
        return [Path(images)]
    if isinstance(images, list | tuple) and images and all(isinstance(image, str | os.PathLike) for image in images):
        return [Path(image) for image in images]
    return None
