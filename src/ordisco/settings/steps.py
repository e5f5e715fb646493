"""How many training steps an increment takes."""

from __future__ import annotations

import math

from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method


def steps_of(method: Method, settings: LearnerSettings, increment: int, images: int) -> int:
    """Training steps of an increment, counted from 0, that holds so many images.

    Offline replay makes as many again for each old increment. An epoch is as many images through C as there are.

    >>> from ordisco.settings.methods import method
    >>> paper = LearnerSettings().replace(epochs=500, joint_steps=200_000)
    >>> steps_of(method("ordisco"), paper, 3, 2_442), steps_of(method("jt"), paper, 3, 2_442)
    (12210, 200000)
    """
    s = settings.step
    if method.memory == "all" and s.joint_steps is not None:
        return s.joint_steps
    steps = s.steps
    if s.epochs is not None:
        steps = max(1, math.ceil(s.epochs * images / (s.batch_labeled + s.batch_unlabeled)))
    return steps * (increment + 1) if method.offline and settings.replay.offline_steps == "growing" else steps
