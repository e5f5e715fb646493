"""What C learns replayed images by: y′, or what C′ said of them after the last increment."""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.learner.batch import Pairs
from ordisco.learner.state import Setup, State
from ordisco.maths.distil import soft_targets

SHARE_OF_LABEL = {"distilled": 0.0, "both": 0.5}  # y′ beside the old C′


@torch.no_grad()
def targets_of_replay(setup: Setup, state: State, replayed: Pairs) -> Tensor:
    """Slots (n,), or class probabilities (n, classes seen) where the old C′ is asked, about the images as they are.

    It knows the classes before this increment; in the first one there is none.
    """
    old, form = state.memories.old_teacher, setup.settings.replay.replay_targets
    if old is None:
        return replayed.y
    with setup.fabric.autocast():
        logits: Tensor = old.module(replayed.x)[:, : state.classes.before].float()
    return soft_targets(replayed.y, logits.softmax(1), len(state.classes), SHARE_OF_LABEL[form])
