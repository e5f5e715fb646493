"""How good a learner is: accuracy of C′, of its pseudo-labels, and of a judge on generated images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError
from ordisco.machine.group import ALONE, Group

if TYPE_CHECKING:
    from ordisco.learner.learner import Learner


AT_ONCE = 1_024  # images that are copied for C′ to look at


@dataclass(frozen=True)
class Evaluation:
    """Right and wrong on test images."""

    confusion: Tensor  # (classes, classes): true class down, predicted class across; counts

    @staticmethod
    def of(truth: Tensor, predicted: Tensor, num_classes: int) -> Evaluation:
        """Count how often each class was predicted for each true one."""
        counts = torch.bincount(truth.cpu() * num_classes + predicted.cpu(), minlength=num_classes**2)
        return Evaluation(counts.view(num_classes, num_classes))

    @property
    def accuracy(self) -> float:
        """The share of images that C′ labels rightly."""
        return int(self.confusion.diagonal().sum()) / int(self.confusion.sum())

    @property
    def per_class(self) -> dict[int, float]:
        """The share of each class that has test images."""
        totals, right = self.confusion.sum(1).tolist(), self.confusion.diagonal().tolist()
        return {label: right[label] / total for label, total in enumerate(totals) if total}


def assess(learner: Learner, test: Split, num_classes: int, rows: Tensor | None = None) -> Evaluation:
    """Predict the test images, or these rows of them, with C′ and count; only a few are copied at a time."""
    rows = torch.arange(len(test)) if rows is None else rows
    if not len(rows):
        raise OrdiscoError("there are no test images to evaluate on")
    predicted = torch.cat([learner.predict(test.images[part]).cpu() for part in rows.split(AT_ONCE)])
    return Evaluation.of(test.labels[rows], predicted, num_classes)


def evaluate(learner: Learner, test: Split, rows: Tensor | None = None) -> float:
    """The accuracy of C′ on test images, or these rows of them, from 0 to 1."""
    highest = max(int(test.labels.max()) if len(test) else 0, *learner.classes, 0)
    return assess(learner, test, highest + 1, rows).accuracy


@dataclass(frozen=True)
class PseudoLabels:
    """What C′ says of an increment's unlabelled images; None where there is none, or the truth is unknown.

    Each process of a group has its share of the images, and all get what is true of all.
    """

    accuracy: float | None = None
    trusted_share: float | None = None  # those that the unlabelled loss believes; None where it believes all
    trusted_accuracy: float | None = None

    @staticmethod
    def of(learner: Learner, images: Tensor, truth: Tensor, group: Group = ALONE) -> PseudoLabels:
        """Compare with the true labels, −1 where nobody knows."""
        known = truth >= 0
        p, truth = learner.predict_proba(images[known]).cpu(), truth[known].cpu()
        right = torch.tensor(learner.classes)[p.argmax(1)] == truth
        loss = learner.setup.unlabeled_loss
        believed = None if loss is None else loss.trusted(p)
        trusted = torch.ones_like(right) if believed is None else believed
        counts = torch.stack([torch.ones_like(right).sum(), right.sum(), trusted.sum(), (right & trusted).sum()])
        counts = group.sum_(counts.to(learner.device) if group.size > 1 else counts)
        images_known, all_right, all_trusted, both = counts.tolist()
        if not images_known:
            return PseudoLabels()
        if believed is None:
            return PseudoLabels(all_right / images_known)
        of_trusted = both / all_trusted if all_trusted else None
        return PseudoLabels(all_right / images_known, all_trusted / images_known, of_trusted)


def generated_accuracy(learner: Learner, judge: Learner, count: int = 1000, seed: int = 0) -> float | None:
    """How many generated images a fixed classifier gives the label they were drawn for; None without a generator."""
    if not learner.has_generator:
        return None
    labels = evenly(learner.classes, count)
    return share(judge.predict(learner.sample(labels, seed)).cpu() == labels)


def evenly(classes: Sequence[int], count: int) -> Tensor:
    """So many labels, the classes in turn."""
    return torch.tensor(classes).repeat(-(-count // len(classes)))[:count]


def share(right: Tensor) -> float:
    """The share of entries that are true."""
    return int(right.sum()) / len(right)
