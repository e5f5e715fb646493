"""The unlabelled losses of C: Eq. 3 and its alternatives, a file each."""

from __future__ import annotations

from collections.abc import Callable

from ordisco.maths.unlabeled.base import UnlabeledLoss
from ordisco.maths.unlabeled.fixmatch import FixMatch
from ordisco.maths.unlabeled.mean_teacher import MeanTeacher
from ordisco.maths.unlabeled.pi_model import PiModel
from ordisco.maths.unlabeled.pseudo_label import PseudoLabel
from ordisco.maths.unlabeled.vat import VAT
from ordisco.settings.learner import UnlabeledSettings

__all__ = ["UNLABELED_LOSSES", "UnlabeledLoss", "make_unlabeled_loss"]

# by the name that the setting `unlabeled_loss` gives them
UNLABELED_LOSSES: dict[str, Callable[[UnlabeledSettings], UnlabeledLoss]] = {
    "mean-teacher": MeanTeacher.of,
    "pi-model": PiModel.of,
    "pseudo-label": PseudoLabel.of,
    "vat": VAT.of,
    "fixmatch": FixMatch.of,
}


def make_unlabeled_loss(settings: UnlabeledSettings) -> UnlabeledLoss | None:
    """The loss that the settings name; None for `none`."""
    if settings.unlabeled_loss == "none":
        return None
    return UNLABELED_LOSSES[settings.unlabeled_loss](settings)
