"""Streams: the training images in arrival order, a few of them labelled (Sec. 3.1 and 5.1).

A learner is handed `Increment`s, which hold only the labels it may see. The true labels stay in the
`Stream`, on the evaluation's side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, Dataset, Split
from ordisco.data.views import rows
from ordisco.errors import OrdiscoError
from ordisco.streams import manifest


@dataclass(frozen=True)
class Share:
    """A process of a data-parallel run has all labelled images and every `size`-th of the others, from `rank` on."""

    rank: int
    size: int
    unlabeled: int  # images without a label that all processes have together


@dataclass(frozen=True)
class Increment:
    """What arrives at once: uint8 images and their labels, −1 where the label is not given; or one process's share."""

    images: Tensor
    labels: Tensor
    share: Share | None = None  # None: everything is here

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def labeled(self) -> Split:
        """The labelled images with their labels."""
        known = self.labels != UNLABELED
        return Split(self.images[known], self.labels[known])

    @property
    def unlabeled(self) -> Tensor:
        """The images without a label."""
        return rows(self.images, self.labels == UNLABELED)

    @property
    def num_unlabeled(self) -> int:
        """How many images without a label there are, in all processes."""
        return int((self.labels == UNLABELED).sum()) if self.share is None else self.share.unlabeled

    @property
    def size(self) -> int:
        """How many images there are, in all processes."""
        return int((self.labels != UNLABELED).sum()) + self.num_unlabeled

    def shared(self, rank: int, size: int) -> Increment:
        """The share of a process; the same where it is one already."""
        if self.share is not None:
            return self
        mine = own_part(self.labels == UNLABELED, rank, size)
        return Increment(self.images[mine], self.labels[mine], Share(rank, size, self.num_unlabeled))

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes of the labelled images, sorted."""
        return tuple(int(label) for label in self.labels.unique() if label != UNLABELED)


def own_part(hidden: Tensor, rank: int, size: int) -> Tensor:
    """Which images a process has: all that are labelled, every `size`-th of those that are not.

    >>> own_part(torch.tensor([True, False, True, True]), 1, 2).tolist()
    [False, True, True, False]
    """
    return ~hidden | ((hidden.cumsum(0) - 1) % size == rank)


@dataclass(eq=False)
class Stream:
    """Increments in arrival order, the test images, and the truth for evaluation.

    `dataset` holds the training images that the stream uses, no others. `assignment` gives each its increment and
    `shown` says whether its label is given, so increments are disjoint by construction. `rows` are their places
    among the `available` images that the stream was drawn from.
    """

    name: str
    scenario: str
    seed: int
    dataset: Dataset
    assignment: np.ndarray
    shown: np.ndarray
    rows: np.ndarray
    available: int
    _cursor: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        self._length = int(self.assignment.max(initial=-1)) + 1
        labels = self.dataset.train.labels.numpy()
        self._classes = [np.unique(labels[self.shown & (self.assignment == i)]).tolist() for i in range(len(self))]

    @classmethod
    def of(
        cls, name: str, scenario: str, seed: int, dataset: Dataset, assignment: np.ndarray, shown: np.ndarray
    ) -> Stream:
        """A stream by the increment of every image available (−1: not used), whose `dataset` holds those used."""
        rows = np.flatnonzero(assignment >= 0)
        return cls(name, scenario, seed, dataset, assignment[rows], shown[rows], rows, len(assignment))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Increment:
        return self._of(self._images_of(index))

    def share(self, index: int, rank: int, size: int) -> Increment:
        """One process's share of an increment; the images of the others are not read."""
        hidden = self._hidden(self._images_of(index))
        mine = self._images_of(index)[own_part(hidden, rank, size)]
        return dataclasses.replace(self._of(mine), share=Share(rank, size, int(hidden.sum())))

    def __iter__(self) -> Iterator[Increment]:
        """The increments in order; `test_seen_so_far` follows."""
        for index in range(len(self)):
            self._cursor = index
            yield self[index]

    @property
    def sizes(self) -> list[int]:
        """How many images each increment holds."""
        counts: list[int] = np.bincount(self.assignment, minlength=len(self)).tolist()
        return counts

    @property
    def num_classes(self) -> int:
        """Classes of the whole stream."""
        return self.dataset.num_classes

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""
        return self.dataset.image_shape

    def classes_after(self, index: int) -> tuple[int, ...]:
        """The classes seen once increment `index` has arrived, sorted."""
        return tuple(sorted(set().union(*self._classes[: self._position(index) + 1])))

    def test_after(self, index: int) -> Split:
        """The test images of all classes seen once increment `index` has arrived (single head)."""
        return self.dataset.test[self.test_rows(index)]

    def test_rows(self, index: int) -> Tensor:
        """The rows of these in `dataset.test`, for those who need not hold them twice."""
        return self._test_rows(self.classes_after(index))

    @property
    def test_seen_so_far(self) -> Split:
        """The test images of the classes seen by the iteration under way; none before it starts."""
        return self.dataset.test[self._test_rows(() if self._cursor < 0 else self.classes_after(self._cursor))]

    def truth(self, index: int, rank: int = 0, size: int = 1) -> Tensor:
        """For evaluation only: true labels of increment `index`, or of a share, in the order of its images."""
        images = self._images_of(index)
        return self.dataset.train.labels[images[own_part(self._hidden(images), rank, size)]]

    def summary(self) -> dict[str, Any]:
        """What `ordisco stream --json` prints."""
        return {
            "name": self.name,
            "scenario": self.scenario,
            "seed": self.seed,
            "test_images": len(self.test_rows(len(self) - 1)),
            "increments": [self._summary_of(index) for index in range(len(self))],
        }

    def save(self, path: Path | str) -> None:
        """Write the manifest: which image arrives when, which labels are shown, checksum of the data."""
        manifest.write(path, self.manifest())

    def manifest(self) -> manifest.Manifest:
        """Everything that decides what a learner sees, apart from the pixels."""
        assignment, shown = np.full(self.available, -1, dtype=np.int64), np.zeros(self.available, dtype=bool)
        assignment[self.rows], shown[self.rows] = self.assignment, self.shown
        return manifest.Manifest(
            name=self.name,
            scenario=self.scenario,
            seed=self.seed,
            dataset=self.dataset.name,
            checksum=self.dataset.checksum(),
            assignment=assignment,
            shown=shown,
        )

    def check(self, path: Path | str) -> None:
        """Refuse a manifest that is not of this very stream: the same images, the same labels, the same order."""
        saved, mine = manifest.read(path), self.manifest()
        if not np.array_equal(saved.assignment, mine.assignment) or not np.array_equal(saved.shown, mine.shown):
            raise OrdiscoError(f"{path}: another stream than {self.name}; check the seed, the data and the options")
        _check_data(path, saved, self.dataset)
        if saved.fingerprint() != mine.fingerprint():
            raise OrdiscoError(f"{path}: another stream of the same data; check the seed and the options")

    @classmethod
    def load(cls, path: Path | str, dataset: Dataset) -> Stream:
        """Read a manifest back; the data must be the same, byte for byte."""
        saved = manifest.read(path)
        if len(saved.assignment) != len(dataset.train):
            raise OrdiscoError(
                f"{path}: made from other data ({saved.dataset}, {len(saved.assignment):,} training images) than the "
                f"data set {dataset.name} ({len(dataset.train):,}); load it with the same files and options"
            )
        used = dataset.only(torch.from_numpy(np.flatnonzero(saved.assignment >= 0)))
        _check_data(path, saved, used)
        stream = cls.of(saved.name, saved.scenario, saved.seed, used, saved.assignment, saved.shown)
        if (used.train.labels.numpy()[stream.shown] == UNLABELED).any():
            raise OrdiscoError(f"{path}: damaged, it shows a label that the data do not have")
        return stream

    def _position(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"increment {index} of {len(self)}")
        return index % len(self)

    def _images_of(self, index: int) -> Tensor:
        """The increment's images, shuffled so that their order in the data set tells nothing."""
        index = self._position(index)
        members = np.flatnonzero(self.assignment == index)
        return torch.from_numpy(np.random.RandomState([self.seed, index]).permutation(members))

    def _hidden(self, images: Tensor) -> Tensor:
        return torch.from_numpy(~self.shown)[images]

    def _of(self, images: Tensor) -> Increment:
        labels = self.dataset.train.labels[images].masked_fill(self._hidden(images), UNLABELED)
        return Increment(self.dataset.train.images[images], labels)

    def _test_rows(self, classes: Sequence[int]) -> Tensor:
        return torch.where(torch.isin(self.dataset.test.labels, torch.tensor(classes, dtype=torch.int64)))[0]

    def _summary_of(self, index: int) -> dict[str, Any]:
        mine = self.assignment == index
        labels = self.dataset.train.labels.numpy()[mine & self.shown]
        names = self.dataset.classes
        return {
            "images": int(mine.sum()),
            "labeled": len(labels),
            "labels_per_class": {names[label]: int((labels == label).sum()) for label in self._classes[index]},
            "classes": [names[label] for label in self._classes[index]],
        }


def _check_data(path: Path | str, saved: manifest.Manifest, used: Dataset) -> None:
    """Refuse a manifest of other images; `used` are those that it names, and the test images."""
    if not saved.checkable:
        raise OrdiscoError(
            f"{path}: written by an older ordisco, with a checksum of images that the stream does not use, too, so the "
            f"data cannot be checked; make it anew"
        )
    if saved.checksum != used.checksum():
        raise OrdiscoError(
            f"{path}: made from other data ({saved.dataset}, {saved.checksum[:12]}…) than the data set "
            f"{used.name} ({used.checksum()[:12]}…); load it with the same files and options"
        )
