"""Π-model: C agrees with itself on another view."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ordisco.maths.losses import consistency
from ordisco.maths.unlabeled.base import Augment, Classifier, Logits, Views, target, weight_of
from ordisco.settings.fields import Settings, setting
from ordisco.settings.learner import UnlabeledSettings


@dataclass(frozen=True)
class PiModel(Settings):
    """‖C(x, ε) − C(x, ε')‖² with the second view as a constant target (Laine & Aila 2017)."""

    weight: float = setting(2.0, "Oliver et al.'s 20 on the mean over ten classes", low=0.0)

    @classmethod
    def of(cls, settings: UnlabeledSettings) -> PiModel:
        """As the settings say."""
        return cls(weight_of(settings, cls.weight))

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """Two weak views for the student."""
        return Views((augment.weak(x), augment.weak(x)), ())

    def targets(self, student: Logits, teacher: Logits) -> None:
        """None: the two views are compared as they are."""

    def trusted(self, targets: Tensor | None) -> None:
        """All."""

    def loss(self, student: Logits, targets: Tensor | None = None) -> Tensor:
        """Squared distance to the student's own probabilities on the other view."""
        return consistency(student[0], target(student[1]))
