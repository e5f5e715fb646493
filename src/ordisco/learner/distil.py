"""What C learns replayed images by, y′ or what the last increment's C′ says of them, and how far each is trusted."""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.learner.batch import Batch, Pairs
from ordisco.learner.pools import Pools
from ordisco.learner.state import Setup, State
from ordisco.learner.targets import beside, teach
from ordisco.maths.distil import soft_targets, trust

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


def trust_in_replay(
    setup: Setup, state: State, pools: Pools, batch: Batch, replayed: Pairs, teacher: tuple[Tensor, ...]
) -> Tensor | None:
    """The weight of each replayed image by the C′ of now, from the view it has already seen if there is one."""
    if setup.settings.replay.replay_trust == "none":
        return None
    if teacher:
        return trust(teacher[0][batch.num_unlabeled :].softmax(1), replayed.y)
    logits = teach(setup, state, replayed.x, beside(setup, pools, batch.labeled))
    return trust(logits.softmax(1), replayed.y)
