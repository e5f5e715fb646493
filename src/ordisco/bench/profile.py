"""Where the time of a training step goes: the operations of torch by their own time."""

from __future__ import annotations

import time
from dataclasses import dataclass

from torch.profiler import ProfilerActivity, profile

from ordisco.bench.learners import make_learner
from ordisco.settings.machine import MachineSettings

WARM_UP, STEPS = 3, 10


@dataclass(frozen=True)
class Part:
    """One operation, summed over a step."""

    name: str
    seconds: float
    share: float  # of the step
    calls: float


def profile_step(preset: str, machine: MachineSettings) -> list[Part]:
    """The operations of one step, the longest first; the time between them is `Python`."""
    learner = make_learner(preset, machine)
    with learner.random("bench"):
        for _ in range(WARM_UP):
            learner.step()
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            begun = time.perf_counter()
            for _ in range(STEPS):
                learner.step()
            total = time.perf_counter() - begun
    parts = [
        Part(event.key.removeprefix("aten::"), event.self_cpu_time_total / 1e6, 0.0, event.count)
        for event in profiler.key_averages()
    ]
    parts.append(Part("Python", max(0.0, total - sum(part.seconds for part in parts)), 0.0, 0.0))
    per_step = [Part(p.name, p.seconds / STEPS, p.seconds / total, p.calls / STEPS) for p in parts]
    return sorted(per_step, key=lambda part: -part.seconds)
