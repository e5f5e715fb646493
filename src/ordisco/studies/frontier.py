"""The frontier of a study: accuracy against CPU-seconds over budgets of steps, a curve a method.

Rows named `SMB, 300 steps` are points of the curve `SMB`. One budget is an accident; so methods are compared three
times: at equal steps, at equal CPU-seconds, and with the most steps that each was given.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.report.table import TextTable
from ordisco.studies.table import NONE, Group, cpu_cell, difference_cell
from ordisco.words import percent_mean, size

NAME = re.compile(r"(?P<curve>.+), (?P<steps>\d[\d,]*) steps")


@dataclass(frozen=True)
class Point:
    """A method with a budget."""

    steps: int
    group: Group

    def at(self, seed: int) -> tuple[float, float] | None:
        """CPU-seconds and final accuracy of a seed; None without the seed, or where seconds were not counted."""
        result = self.group.results.get(seed)
        seconds = None if result is None else result.get("cpu_seconds")
        return None if result is None or seconds is None else (seconds, result["last_accuracy"])


def curve_of(name: str) -> tuple[str, int] | None:
    """The curve and the steps that a row's name tells.

    >>> curve_of("SMB+UMB, 2,000 steps")
    ('SMB+UMB', 2000)
    >>> curve_of("JT")
    """
    found = NAME.fullmatch(name)
    return None if found is None else (found["curve"], int(found["steps"].replace(",", "")))


def curves_of(groups: Iterable[Group]) -> dict[str, list[Point]]:
    """The curves, each by rising steps; rows that name no steps are no points."""
    curves: dict[str, list[Point]] = {}
    for group in groups:
        found = curve_of(group.name)
        if found is not None:
            curves.setdefault(found[0], []).append(Point(found[1], group))
    if not curves:
        raise OrdiscoError("no row is a point of a frontier: name rows as in 'SMB, 300 steps'")
    return {name: sorted(found, key=lambda point: point.steps) for name, found in curves.items()}


def accuracy_within(curve: Sequence[tuple[float, float]], seconds: float) -> float | None:
    """The accuracy that a curve of (seconds, accuracy) has reached after so many seconds.

    Between two budgets on the straight line over log-seconds, after the last as it was there; None before the first.

    >>> accuracy_within([(10.0, 0.5), (1000.0, 0.7)], 100.0)
    0.6
    """
    if not curve or seconds < curve[0][0]:
        return None
    for (before, low), (after, high) in itertools.pairwise(curve):
        if seconds <= after:
            return low + (high - low) * math.log(seconds / before) / math.log(after / before)
    return curve[-1][1]


def frontier_table(groups: Sequence[Group], steps: int, reference: str | None) -> TextTable:
    """A row a method: at `steps`, in the CPU-seconds that the reference takes for them, and with its most steps."""
    curves = curves_of(groups)
    base = (curve_of(reference or "") or (reference, 0))[0]
    if base not in curves:
        raise UsageError(f"reference = {shown(reference)} is not allowed: one of {', '.join(curves)}")
    start = point_at(curves[base], steps)
    if start is None:
        raise UsageError(f"frontier = {steps} is not allowed: {base} was made with {budgets(curves[base])} steps")
    seconds = {seed: found[0] for seed in start.group.results if (found := start.at(seed)) is not None}
    header = (
        "method",
        f"{steps:,} steps an increment",
        "CPU s",
        f"− {base} with as many, points [95 % CI]",
        f"in the CPU s of {base}",
        f"− {base} in these, points [95 % CI]",
        "with its most steps",
        "steps",
        f"− {base} with its most, points [95 % CI]",
        "− with the steps before",
        "kept",
    )
    rows = []
    for name, curve in curves.items():
        here, last = point_at(curve, steps), curve[-1]
        within = scores_within(curve, seconds)
        best = last.group.scores()
        rows.append(
            (
                name,
                NONE if here is None else percent_mean(list(here.group.scores().values())),
                NONE if here is None else cpu_cell([of.get("cpu_seconds") for of in here.group.results.values()]),
                NONE if here is None or name == base else difference_cell(here.group.scores(), start.group.scores()),
                percent_mean(list(within.values())) + beyond(curve, seconds) if within else NONE,
                NONE if not within or name == base else difference_cell(within, start.group.scores()),
                percent_mean(list(best.values())),
                f"{last.steps:,}",
                NONE if name == base else difference_cell(best, curves[base][-1].group.scores()),
                difference_cell(best, curve[-2].group.scores()) if len(curve) > 1 else NONE,
                size(max(last.group.values("kept_bytes").values())),
            )
        )
    return TextTable(header, tuple(rows))


def point_at(curve: Sequence[Point], steps: int) -> Point | None:
    """The point with so many steps."""
    return next((point for point in curve if point.steps == steps), None)


def budgets(curve: Sequence[Point]) -> str:
    """`150, 300`."""
    return ", ".join(f"{point.steps:,}" for point in curve)


def seed_curve(curve: Sequence[Point], seed: int) -> list[tuple[float, float]]:
    """Seconds and accuracy of one seed, by rising seconds."""
    return sorted(found for point in curve if (found := point.at(seed)) is not None)


def scores_within(curve: Sequence[Point], seconds: Mapping[int, float]) -> dict[int, float]:
    """By seed, what the curve has reached in that seed's seconds."""
    found = {seed: accuracy_within(seed_curve(curve, seed), of_seed) for seed, of_seed in seconds.items()}
    return {seed: accuracy for seed, accuracy in found.items() if accuracy is not None}


def beyond(curve: Sequence[Point], seconds: Mapping[int, float]) -> str:
    """A mark where the seconds are more than the curve's largest budget takes."""
    ends = [found[-1][0] < of_seed for seed, of_seed in seconds.items() if (found := seed_curve(curve, seed))]
    return " (all steps)" if ends and all(ends) else ""


def drawn(groups: Iterable[Group]) -> dict[str, list[tuple[float, float, float, int]]]:
    """For a figure, of each curve: mean seconds, mean accuracy, its standard deviation, steps."""
    found: dict[str, list[tuple[float, float, float, int]]] = {}
    for name, curve in curves_of(groups).items():
        for point in curve:
            at = [of for seed in point.group.results if (of := point.at(seed)) is not None]
            if at:
                seconds, accuracies = (statistics.fmean(part) for part in zip(*at, strict=True))
                spread = statistics.stdev([accuracy for _, accuracy in at]) if len(at) > 1 else 0.0
                found.setdefault(name, []).append((seconds, accuracies, spread, point.steps))
    return found
