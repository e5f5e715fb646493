"""Pseudo-label: C believes itself where it is confident."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ordisco.maths.unlabeled.base import (
    Augment,
    Classifier,
    Logits,
    Views,
    confident,
    confident_cross_entropy,
    given,
    target,
    weight_of,
)
from ordisco.settings.fields import Settings, setting
from ordisco.settings.learner import UnlabeledSettings


@dataclass(frozen=True)
class PseudoLabel(Settings):
    """Cross entropy with C's own hard label where C is confident (Lee 2013)."""

    weight: float = setting(1.0, "Oliver et al.", low=0.0)
    threshold: float = setting(0.95, "least probability of a label to be believed", low=0.0, high=1.0)

    @classmethod
    def of(cls, settings: UnlabeledSettings) -> PseudoLabel:
        """As the settings say."""
        return cls(weight_of(settings, cls.weight), threshold=settings.threshold)

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """One weak view for the student."""
        return Views((augment.weak(x),), ())

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The student's own probabilities."""
        return target(student[0])

    def trusted(self, targets: Tensor | None) -> Tensor:
        """The confident ones."""
        return confident(given(targets), self.threshold)

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Cross entropy with the argmax of the targets."""
        return confident_cross_entropy(student[0], given(targets), self.threshold)
