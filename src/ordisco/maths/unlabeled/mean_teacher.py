"""Mean teacher: C agrees with its moving average C′ (Eq. 3)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ordisco.maths.losses import consistency
from ordisco.maths.unlabeled.base import Augment, Classifier, Logits, Views, given, target, weight_of
from ordisco.settings.fields import Settings, setting
from ordisco.settings.learner import UnlabeledSettings


@dataclass(frozen=True)
class MeanTeacher(Settings):
    """‖C(x, ε) − C'(x, ε')‖² between class probabilities (Eq. 3; Tarvainen & Valpola 2017)."""

    weight: float = setting(5.0, "Triple-GAN's 50 on the mean over ten classes", low=0.0)
    strong: bool = setting(False, "the student's noise ε is a strong view instead of a weak one")

    @classmethod
    def of(cls, settings: UnlabeledSettings) -> MeanTeacher:
        """As the settings say."""
        return cls(weight_of(settings, cls.weight), strong=settings.student_view == "strong")

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """One view each, the teacher's a weak one."""
        return Views((augment.strong(x) if self.strong else augment.weak(x),), (augment.weak(x),))

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The probabilities of the teacher."""
        return target(teacher[0])

    def trusted(self, targets: Tensor | None) -> None:
        """All."""

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Squared distance to the targets."""
        return consistency(student[0], given(targets))
