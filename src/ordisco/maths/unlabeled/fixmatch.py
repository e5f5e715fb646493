"""FixMatch: a strong view gets the confident label of a weak one."""

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
class FixMatch(Settings):
    """Cross entropy on a strong view with the confident hard label of a weak view (Sohn et al. 2020)."""

    weight: float = setting(1.0, "Sohn et al.", low=0.0)
    threshold: float = setting(0.95, "least probability of a label to be believed", low=0.0, high=1.0)
    teacher: bool = setting(False, "labels come from the teacher C' instead of the student")

    @classmethod
    def of(cls, settings: UnlabeledSettings) -> FixMatch:
        """As the settings say."""
        return cls(
            weight_of(settings, cls.weight), threshold=settings.threshold, teacher=settings.labeller == "teacher"
        )

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """A strong view for the student, a weak one for whoever labels."""
        strong, weak = augment.strong(x), augment.weak(x)
        return Views((strong,), (weak,)) if self.teacher else Views((strong, weak), ())

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The probabilities of the weak view."""
        return target(teacher[0] if self.teacher else student[1])

    def trusted(self, targets: Tensor | None) -> Tensor:
        """The confident ones."""
        return confident(given(targets), self.threshold)

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Cross entropy of the strong view with the argmax of the targets."""
        return confident_cross_entropy(student[0], given(targets), self.threshold)
