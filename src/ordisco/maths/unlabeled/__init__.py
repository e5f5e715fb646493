"""The unlabelled losses of C: Eq. 3 and its alternatives, a file each."""

from __future__ import annotations

from ordisco.maths.unlabeled.base import UnlabeledLoss
from ordisco.maths.unlabeled.fixmatch import FixMatch
from ordisco.maths.unlabeled.mean_teacher import MeanTeacher
from ordisco.maths.unlabeled.pi_model import PiModel
from ordisco.maths.unlabeled.pseudo_label import PseudoLabel
from ordisco.maths.unlabeled.vat import VAT
from ordisco.settings.learner import UnlabeledSettings

__all__ = [
    "UNLABELED_LOSSES",
    "VAT",
    "FixMatch",
    "MeanTeacher",
    "PiModel",
    "PseudoLabel",
    "UnlabeledLoss",
    "make_unlabeled_loss",
]

UNLABELED_LOSSES: dict[str, type[MeanTeacher] | type[PiModel] | type[PseudoLabel] | type[VAT] | type[FixMatch]] = {
    "mean-teacher": MeanTeacher,
    "pi-model": PiModel,
    "pseudo-label": PseudoLabel,
    "vat": VAT,
    "fixmatch": FixMatch,
}


def make_unlabeled_loss(settings: UnlabeledSettings) -> UnlabeledLoss | None:
    """The loss that the settings name; None for `none`."""
    if settings.unlabeled_loss == "none":
        return None
    return UNLABELED_LOSSES[settings.unlabeled_loss].of(settings)
