"""What a data set is once it is in memory: uint8 images, int64 labels, train and test."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from ordisco.errors import OrdiscoError, UsageError
from ordisco.words import some_of

UNLABELED = -1
NAMES_SHOWN = 12  # classes that an error lists


@dataclass(frozen=True)
class Split:
    """Images, uint8 of shape (n, c, h, w), and labels, int64 of shape (n,), where −1 means unlabelled."""

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise ValueError(f"images must be uint8 (n, c, h, w), not {self.images.dtype} {self.images.shape}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"labels must be int64 (n,), not {self.labels.dtype} {self.labels.shape}")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor) -> Split:
        """The part of the split that an index or mask tensor selects."""
        return Split(self.images[index], self.labels[index])


@dataclass(frozen=True)
class Dataset:
    """A named data set with its classes and the augmentation that keeps its meaning.

    `flip`: a mirrored image keeps its label. `translate`: pixels by which an image may be shifted.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    test: Split
    flip: bool
    translate: int
    _checksum: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for part, split in (("train", self.train), ("test", self.test)):
            if len(split) and not UNLABELED <= int(split.labels.min()) <= int(split.labels.max()) < self.num_classes:
                raise OrdiscoError(f"{self.name}: a {part} label lies outside the {self.num_classes} classes")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of one image."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    def only(self, rows: Tensor) -> Dataset:
        """The data set with these training images alone; itself where they are all."""
        everything = torch.equal(rows, torch.arange(len(self.train)))
        return self if everything else replace(self, train=self.train[rows])

    def checksum(self) -> str:
        """SHA-256 over the images and labels of both splits; computed once."""
        if not self._checksum:
            digest = hashlib.sha256()
            for split in (self.train, self.test):
                digest.update(repr(tuple(split.images.shape)).encode())
                digest.update(split.images.contiguous().numpy().data.cast("B") if len(split) else b"")
                digest.update(split.labels.numpy().astype("<i8").tobytes())
            self._checksum.append(digest.hexdigest())
        return self._checksum[0]


def choose_classes(
    available: Sequence[str], num_classes: int | None, names: Sequence[str] | None, seed: int, source: str
) -> list[int]:
    """Positions of the classes asked for by name, or drawn by seed, or all of them.

    A larger draw with the same seed contains the smaller one; drawn classes keep the data set's order.
    """
    if names is not None:
        if num_classes is not None and num_classes != len(names):
            raise UsageError(f"num_classes = {num_classes} contradicts the {len(names)} classes named")
        position = {folded(name): index for index, name in enumerate(available)}
        for name in names:
            if folded(name) not in position:
                raise UsageError(f"classes: {source} has no class {name!r}; it has {some_of(available, NAMES_SHOWN)}")
        chosen = [position[folded(name)] for name in names]
        if len(set(chosen)) != len(chosen):
            raise UsageError(f"classes: a class is named twice in {', '.join(names)}")
        return chosen
    if num_classes is None:
        return list(range(len(available)))
    if not 2 <= num_classes <= len(available):
        raise UsageError(f"num_classes = {num_classes} is not allowed: {source} has {len(available)} classes")
    order = np.random.RandomState(seed).permutation(len(available))
    return sorted(order[:num_classes].tolist())


def hold_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Mask of a seeded test set: `share` of the labelled images of each class, at least one of each."""
    rng = np.random.RandomState(seed)
    mask = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels[labels != UNLABELED]):
        members = rng.permutation(np.flatnonzero(labels == label))
        mask[members[: max(1, round(share * len(members)))]] = True
    return mask


def folded(name: str) -> str:
    """The name of a class as it is compared: without regard to case, Unicode's form or spaces around it."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold()).strip()


def natural_order(names: Sequence[str]) -> list[str]:
    """The names sorted so that "2" comes before "10"."""

    def key(name: str) -> list[tuple[int, int, str]]:
        parts = [part for part in re.split(r"(\d+)", name) if part]
        return [(0, int(part), "") if part.isdecimal() and len(part) < 20 else (1, 0, part) for part in parts]

    return sorted(names, key=lambda name: (key(name), name))
