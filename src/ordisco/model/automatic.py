"""What is chosen where the user says nothing: the side of the images, networks, steps and threads."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ordisco.learner.checks import SIDES
from ordisco.machine.cores import cores
from ordisco.runs.presets import preset
from ordisco.settings.learner import LearnerSettings

LARGEST = 32  # pixels; a larger side takes four times as long and has to be asked for
USUAL = {"demo": 300, "small": 2_000}  # images of a delivery for which the steps of the preset are enough
LEAST, MOST = 0.5, 10.0  # times those steps


def preset_for(side: int) -> str:
    """The preset that is meant for such images."""
    return "demo" if side == 8 else "small"


def settings_for(side: int) -> LearnerSettings:
    """Networks and rates for images of that side."""
    return preset(preset_for(side))


def side_for(shorter_sides: Sequence[int]) -> int:
    """The largest side that most images have, up to 32 pixels.

    >>> side_for([640, 480, 30]), side_for([28, 28]), side_for([5])
    (32, 16, 8)
    """
    middle = statistics.median(shorter_sides)
    return max([side for side in SIDES if side <= min(middle, LARGEST)], default=SIDES[0])


def steps_for(side: int, settings: LearnerSettings, images: int) -> int:
    """Training steps: more for a larger delivery, as the root of its size, within a half and ten times the preset's."""
    times = math.sqrt(images / USUAL[preset_for(side)])
    return max(1, round(settings.step.steps * min(MOST, max(LEAST, times))))


def threads_for(side: int | None) -> int:
    """One for small images, whose second thread waits more than it works; else up to four."""
    return 1 if side is None or side <= 16 else min(4, cores())
