"""Two reports side by side: what is slower now by more than the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ordisco.bench.values import Report, Value
from ordisco.report.table import markdown_table

LEAST, ERRORS = 0.03, 3.0  # a change counts from 3 % on, and from three standard errors of both medians together


@dataclass(frozen=True)
class Change:
    """One row of both reports."""

    section: str
    name: str
    then: Value
    now: Value

    @property
    def ratio(self) -> float:
        """Now over then."""
        return self.now.value / self.then.value if self.then.value else math.inf if self.now.value else 1.0

    @property
    def noise(self) -> float:
        """By how much the ratio may differ from 1 without meaning anything."""
        return max(LEAST, ERRORS * math.hypot(self.now.error, self.then.error))

    @property
    def verdict(self) -> str:
        """`worse`, `better`, or nothing."""
        if self.now.better == "neither" or abs(self.ratio - 1) <= self.noise:
            return ""
        return "worse" if (self.ratio > 1) == (self.now.better == "less") else "better"


def changes(now: Report, then: Report) -> list[Change]:
    """The rows that both have, in the order of now."""
    return [
        Change(section, name, then.sections[section][name], value)
        for section, rows in now.sections.items()
        for name, value in rows.items()
        if name in then.sections.get(section, {})
    ]


def others(now: Report, then: Report) -> list[str]:
    """The rows that only one of both has."""

    def names(of: Report) -> set[str]:
        return {f"{section}: {name}" for section, rows in of.sections.items() for name in rows}

    return sorted(names(now) ^ names(then))


def computing(of: Report) -> tuple[Any, Any]:
    """The processor, and what of it was not to be used."""
    return of.machine.get("processor"), of.machine.get("limits") or {}


def compared(now: Report, then: Report) -> str:
    """A table of all rows, then how many are worse."""
    found = changes(now, then)
    rows = [
        [f"{c.section}: {c.name}", str(c.then), str(c.now), f"{c.ratio:.3f}", f"± {c.noise:.3f}", c.verdict]
        for c in found
    ]
    lines = [markdown_table(["", "then", "now", "now / then", "noise", ""], rows)]
    if computing(now) != computing(then):
        lines.append("The two are of different processors, or one was held back: compare ratios (×), not times.")
    if apart := others(now, then):
        lines.append(f"Only in one of both: {'; '.join(apart)}.")
    worse = [f"{c.section}: {c.name}" for c in found if c.verdict == "worse"]
    lines.append(f"Worse by more than the noise: {'; '.join(worse) or 'nothing'}.")
    return "\n".join(lines)
