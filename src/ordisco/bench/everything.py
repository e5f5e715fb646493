"""All measurements of `ordisco bench`, one after the other."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass

from ordisco.bench import grow, here, measure, processes
from ordisco.bench.learners import COLOUR
from ordisco.bench.values import Report, Sections
from ordisco.machine.cores import cores
from ordisco.settings.machine import MachineSettings

USUAL = ("demo", "small", COLOUR)  # a step of the paper's networks takes many seconds on a CPU
OFFLINE = {"offline (1)": "offline-all", "offline (2)": "offline-last"}
OFFLINE_INCREMENTS = 20  # at most: their time grows with every increment


@dataclass(frozen=True)
class Plan:
    """What is measured, and how often."""

    presets: tuple[str, ...]
    threads: tuple[int, ...]
    rounds: int
    increments: int

    def rounds_of(self, preset: str) -> int:
        """Fewer turns where a step is long."""
        return max(1, self.rounds // {"paper": 5, COLOUR: 2}.get(preset, 1))


def usual_threads(accelerator: str) -> tuple[int, ...]:
    """One and two, as far as there are cores; on a GPU threads do not matter."""
    return (1,) if accelerator == "cuda" else tuple(range(1, min(2, cores()) + 1))


def measured(plan: Plan, machine: MachineSettings) -> Report:
    """The whole report; what is under way is told on a terminal."""
    found: Sections = {}
    for preset in plan.presets:
        for threads in plan.threads:
            tell(f"steps of {preset}, {threads_in_words(threads)}")
            there, rounds = dataclasses.replace(machine, threads=threads), plan.rounds_of(preset)
            found[f"step: {preset}, {threads_in_words(threads)}"] = measure.step(preset, there, rounds) | (
                measure.throughput(preset, there, rounds)
            )
    tell(f"growth over {plan.increments} increments")
    found["growth: ORDisCo"] = grow.values(grow.in_a_process("ordisco", plan.increments, machine))
    for title, method in OFFLINE.items():
        fewer = min(plan.increments, OFFLINE_INCREMENTS)
        found[f"growth: {title}"] = grow.values(grow.in_a_process(method, fewer, machine))
    tell("start-up and memory")
    found["start-up: a process"] = processes.start_up(min(plan.rounds, 5), machine.accelerator)
    found["memory: a process"] = processes.memory(plan.presets, machine.accelerator, machine.precision)
    return Report(here.machine(machine.accelerator, machine.precision), found)


def threads_in_words(threads: int) -> str:
    """`1 thread`."""
    return f"{threads} thread{'s' if threads != 1 else ''}"


def tell(what: str) -> None:
    """To someone who waits at a terminal."""
    if sys.stderr.isatty():
        print(f"measuring: {what}", file=sys.stderr, flush=True)
