"""Streams: the training images in arrival order, a few of them labelled (Sec. 3.1 and 5.1).

A learner is handed `Increment`s, which hold only the labels it may see. The true labels stay in the
`Stream`, on the evaluation's side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, Dataset, Split
from ordisco.errors import OrdiscoError
from ordisco.streams import manifest


@dataclass(frozen=True)
class Increment:
    """What arrives at once: uint8 images and their labels, −1 where the label is not given."""

    images: Tensor
    labels: Tensor

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
        return self.images[self.labels == UNLABELED]

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes of the labelled images, sorted."""
        return tuple(int(label) for label in self.labels.unique() if label != UNLABELED)


@dataclass(eq=False)
class Stream:
    """Increments in arrival order, the test images, and the truth for evaluation.

    `assignment` gives each training image its increment (−1: not used) and `shown` says whether its
    label is given, so increments are disjoint by construction.
    """

    name: str
    scenario: str
    seed: int
    dataset: Dataset
    assignment: np.ndarray
    shown: np.ndarray
    _cursor: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        self._length = int(self.assignment.max(initial=-1)) + 1
        labels = self.dataset.train.labels.numpy()
        self._classes = [np.unique(labels[self.shown & (self.assignment == i)]).tolist() for i in range(len(self))]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Increment:
        chosen = self._images_of(index)
        hidden = torch.from_numpy(~self.shown)[chosen]
        labels = self.dataset.train.labels[chosen].masked_fill(hidden, UNLABELED)
        return Increment(self.dataset.train.images[chosen], labels)

    def __iter__(self) -> Iterator[Increment]:
        """The increments in order; `test_seen_so_far` follows."""
        for index in range(len(self)):
            self._cursor = index
            yield self[index]

    @property
    def sizes(self) -> list[int]:
        """How many images each increment holds."""
        counts: list[int] = np.bincount(self.assignment[self.assignment >= 0], minlength=len(self)).tolist()
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
        return self._test(self.classes_after(index))

    @property
    def test_seen_so_far(self) -> Split:
        """The test images of the classes seen by the iteration under way; none before it starts."""
        return self._test(() if self._cursor < 0 else self.classes_after(self._cursor))

    def truth(self, index: int) -> Tensor:
        """For evaluation only: true labels of increment `index`, in the order of its images."""
        return self.dataset.train.labels[self._images_of(index)]

    def summary(self) -> dict[str, Any]:
        """What `ordisco stream --json` prints."""
        return {
            "name": self.name,
            "scenario": self.scenario,
            "seed": self.seed,
            "test_images": len(self.test_after(len(self) - 1)),
            "increments": [self._summary_of(index) for index in range(len(self))],
        }

    def save(self, path: Path | str) -> None:
        """Write the manifest: which image arrives when, which labels are shown, checksum of the data."""
        manifest.write(path, self.manifest())

    def manifest(self) -> manifest.Manifest:
        """Everything that decides what a learner sees, apart from the pixels."""
        return manifest.Manifest(
            name=self.name,
            scenario=self.scenario,
            seed=self.seed,
            dataset=self.dataset.name,
            checksum=self.dataset.checksum(),
            assignment=self.assignment,
            shown=self.shown,
        )

    @classmethod
    def load(cls, path: Path | str, dataset: Dataset) -> Stream:
        """Read a manifest back; the data must be the same, byte for byte."""
        saved = manifest.read(path)
        if saved.checksum != dataset.checksum():
            raise OrdiscoError(
                f"{path}: made from other data ({saved.dataset}, {saved.checksum[:12]}…) than the data set "
                f"{dataset.name} ({dataset.checksum()[:12]}…); load it with the same files and options"
            )
        if len(saved.assignment) != len(dataset.train):
            raise OrdiscoError(f"{path}: damaged, {len(saved.assignment)} images instead of {len(dataset.train)}")
        if (dataset.train.labels.numpy()[saved.shown] == UNLABELED).any():
            raise OrdiscoError(f"{path}: damaged, it shows a label that the data do not have")
        return cls(saved.name, saved.scenario, saved.seed, dataset, saved.assignment, saved.shown)

    def _position(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(f"increment {index} of {len(self)}")
        return index % len(self)

    def _images_of(self, index: int) -> Tensor:
        """The increment's images, shuffled so that their order in the data set tells nothing."""
        index = self._position(index)
        members = np.flatnonzero(self.assignment == index)
        return torch.from_numpy(np.random.RandomState([self.seed, index]).permutation(members))

    def _test(self, classes: Sequence[int]) -> Split:
        test = self.dataset.test
        return test[torch.isin(test.labels, torch.tensor(classes, dtype=torch.int64))]

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
