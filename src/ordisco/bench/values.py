"""Measured values with their noise, and the file that keeps them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from ordisco.errors import OrdiscoError
from ordisco.files import json_of, read_plain, told_in_one_line, write_atomically

FORMAT = 1
MOST_BYTES = 1 << 24
FORMS = {"×": "{:.2f} ×", "s": "{:.3f} s", "MB": "{:.0f} MB", "%": "{:+.2f} %", "B": "{:.0f} B", "/s": "{:,.0f} /s"}
Better = Literal["less", "more", "neither"]


@dataclass(frozen=True)
class Value:
    """One number; `error` is the standard error of the median as a share of it, 0 where it was measured once."""

    value: float
    unit: str
    error: float = 0.0
    better: Better = "less"

    @staticmethod
    def of(values: Sequence[float], unit: str, better: Better = "less") -> Value:
        """The median of some turns."""
        middle = statistics.median(values)
        return Value(middle, unit, error_of(values) / abs(middle) if middle else 0.0, better)

    def __str__(self) -> str:
        return FORMS[self.unit].format(self.value).replace("-", "−")


Sections = dict[str, dict[str, Value]]  # title of a section → name of a row → what was measured


@dataclass(frozen=True)
class Report:
    """Everything that one call of `ordisco bench` has found, and on which machine."""

    machine: dict[str, Any]
    sections: Sections

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        sections = {title: {name: asdict(v) for name, v in rows.items()} for title, rows in self.sections.items()}
        return {"format": FORMAT, "machine": self.machine, "sections": sections}

    @staticmethod
    def from_dict(content: Any) -> Report:
        """Read back; what is not such a report is a ValueError, KeyError or TypeError."""
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT}")
        sections = {
            str(title): {str(name): checked(Value(**value)) for name, value in rows.items()}
            for title, rows in content["sections"].items()
        }
        return Report(dict(content["machine"]), sections)


def checked(value: Value) -> Value:
    """A value as a file may hold it."""
    if not isinstance(value.value, int | float) or not isinstance(value.error, int | float) or value.unit not in FORMS:
        raise ValueError(f"{value} is not a measured value")
    return value


def error_of(values: Sequence[float]) -> float:
    """The standard error of the median, from the quartiles, which one bad turn does not move."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2
    low, _, high = statistics.quantiles(values, n=4)
    return 1.2533 * (high - low) / 1.349 / math.sqrt(len(values))


def read_report(file: Path) -> Report:
    """A saved report; one that is damaged is told in one line."""
    with told_in_one_line("read", file):
        data = read_plain(file, MOST_BYTES)
    try:
        return Report.from_dict(json_of(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OrdiscoError(f"{file} was not saved by `ordisco bench --json` ({error}): give another file") from error


def write_report(file: Path, text: str) -> None:
    """Whole or not at all."""
    with told_in_one_line("write", file):
        write_atomically(file, text.encode())
