"""The unlabelled losses of C: Eq. 3 and its alternatives, a file each."""

from __future__ import annotations

from ordisco.settings import UnlabeledSettings
from ordisco.unlabeled.base import UnlabeledLoss
from ordisco.unlabeled.fixmatch import FixMatch
from ordisco.unlabeled.mean_teacher import MeanTeacher
from ordisco.unlabeled.pi_model import PiModel
from ordisco.unlabeled.pseudo_label import PseudoLabel
from ordisco.unlabeled.vat import VAT

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
