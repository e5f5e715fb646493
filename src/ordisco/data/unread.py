"""A data set whose labels are known and whose images stay where they lie until they are wanted.

A stream that uses 10,000 of 73,257 images never holds the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, Dataset, Split

BLOCK = 512  # images that are read and changed at once

Change = Callable[[Tensor], Tensor]


class Source(Protocol):
    """Where images lie."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Images, channels, height and width."""

    def take(self, rows: Tensor) -> Tensor:
        """The images of these rows, uint8, in their order."""


@dataclass(frozen=True)
class InMemory:
    """Images that are already there, uint8 of shape (n, c, h, w)."""

    images: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Images, channels, height and width."""
        return tuple(self.images.shape)

    def take(self, rows: Tensor) -> Tensor:
        """The images of these rows."""
        return self.images[rows]


@dataclass(frozen=True)
class Part:
    """Some rows of a source, the labels of these images, and what is done to each image once it is read."""

    source: Source
    rows: Tensor
    labels: Tensor
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        if self.labels.dtype != torch.int64 or self.labels.shape != self.rows.shape or len(self.source.shape) != 4:
            raise ValueError(f"{self.labels.dtype} {self.labels.shape} labels of images {self.source.shape}")

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: Tensor) -> Part:
        """The images that an index or mask tensor selects."""
        return replace(self, rows=self.rows[index], labels=self.labels[index])

    def read(self) -> Split:
        """The images and their labels; no more is held at once than these and a block."""
        if isinstance(self.source, InMemory) and not self.changes and self._everything:
            return Split(self.source.images, self.labels)
        none = self._block(self.rows[:0])
        images = none.new_empty((len(self.rows), *none.shape[1:]))
        for start in range(0, len(self.rows), BLOCK):
            block = slice(start, start + BLOCK)
            images[block] = self._block(self.rows[block])
        return Split(images, self.labels)

    @property
    def _everything(self) -> bool:
        return torch.equal(self.rows, torch.arange(self.source.shape[0]))

    def _block(self, rows: Tensor) -> Tensor:
        images = self.source.take(rows)
        for change in self.changes:
            images = change(images)
        return images


def whole(split: Split) -> Part:
    """A part that is all of a split."""
    return in_place(InMemory(split.images), split.labels)


def in_place(source: Source, labels: Tensor) -> Part:
    """All images of a source."""
    return Part(source, torch.arange(source.shape[0]), labels)


@dataclass(frozen=True)
class Unread:
    """What `Dataset` is, before its images are read."""

    name: str
    classes: tuple[str, ...]
    train: Part
    test: Part
    flip: bool
    translate: int

    @property
    def num_classes(self) -> int:
        """How many classes there are."""
        return len(self.classes)

    def changed(self, *changes: Change) -> Unread:
        """The data set with every image changed so, once it is read."""

        def of(part: Part) -> Part:
            return replace(part, changes=(*part.changes, *changes))

        return replace(self, train=of(self.train), test=of(self.test))

    def only(self, rows: Tensor) -> Dataset:
        """The data set with these training images alone, read."""
        return self._read(self.train[rows])

    def read(self) -> Dataset:
        """The whole data set, read."""
        return self._read(self.train)

    def _read(self, train: Part) -> Dataset:
        return Dataset(self.name, self.classes, train.read(), self.test.read(), self.flip, self.translate)


def select_classes(dataset: Unread, chosen: Sequence[int]) -> Unread:
    """The data set with the chosen classes only, renumbered from 0; unlabelled images stay."""
    if list(chosen) == list(range(dataset.num_classes)):
        return dataset
    renumber = torch.full((dataset.num_classes + 1,), -2, dtype=torch.int64)
    renumber[UNLABELED] = UNLABELED  # the last entry, which label −1 indexes
    renumber[torch.tensor(list(chosen))] = torch.arange(len(chosen))

    def keep(part: Part) -> Part:
        labels = renumber[part.labels]
        return replace(part, labels=labels)[labels != -2]

    classes = tuple(dataset.classes[index] for index in chosen)
    return replace(dataset, classes=classes, train=keep(dataset.train), test=keep(dataset.test))
