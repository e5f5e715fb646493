"""What every unlabelled loss is: the views it wants, the targets they give, its value. No gradient flows into a target.

The learner runs C once a step on the views of all its terms, and may align the targets with the classes it expects
before they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.settings.learner import UnlabeledSettings


class Views(NamedTuple):
    """The images (n, c, h, w) to be classified by the student and by the teacher."""

    student: tuple[Tensor, ...]
    teacher: tuple[Tensor, ...]


Logits = tuple[Tensor, ...]


class Augment(Protocol):
    """Random views of a batch of images."""

    def weak(self, x: Tensor) -> Tensor:
        """A small change: shift, flip."""

    def strong(self, x: Tensor) -> Tensor:
        """A large change, for FixMatch."""


class Classifier(Protocol):
    """What a loss needs of C, as any `nn.Module` has it: logits (n, k), and modules to still."""

    def __call__(self, x: Tensor) -> Tensor:
        """The logits of the classes seen so far."""

    def modules(self) -> Iterator[nn.Module]:
        """All modules inside, itself included."""


class UnlabeledLoss(Protocol):
    """One unlabelled loss: the views it wants, and its value given their logits."""

    @property
    def weight(self) -> float:
        """Its weight after the ramp."""

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """The images that the student and the teacher are to classify."""

    def targets(self, student: Logits, teacher: Logits) -> Tensor | None:
        """Class probabilities (n, k) that may be aligned; None where the loss has no such target."""

    def trusted(self, targets: Tensor | None) -> Tensor | None:
        """Which targets (n,) it believes; None where it believes all."""

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """The loss of each image (n,), with a gradient to the student's logits only."""


def target(logits: Tensor) -> Tensor:
    """Class probabilities without a gradient."""
    return logits.detach().softmax(1)


def given(targets: Tensor | None) -> Tensor:
    """The targets of a loss that has some."""
    if targets is None:
        raise ValueError("this loss needs targets")
    return targets


def confident(targets: Tensor, threshold: float) -> Tensor:
    """Where the most likely class is likely enough."""
    return targets.max(1).values >= threshold


def confident_cross_entropy(logits: Tensor, targets: Tensor, threshold: float) -> Tensor:
    """Cross entropy with the targets' most likely class, 0 where that is not likely enough."""
    return F.cross_entropy(logits, targets.argmax(1), reduction="none") * confident(targets, threshold)


def weight_of(settings: UnlabeledSettings, published: float) -> float:
    """The weight that the settings give, or the loss's own."""
    return published if settings.consistency_weight is None else settings.consistency_weight
