"""Methods side by side: final and mean accuracy, time, bytes kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordisco.errors import one_line, readable
from ordisco.report.words import duration, percent_mean, size

if TYPE_CHECKING:
    from rich.table import Table

HEADER = ("method", "after the last increment", "mean over increments", "time", "kept")


@dataclass(frozen=True)
class MethodResult:
    """What one method reached.

    accuracies   a list a seed, a share from 0 to 1 an increment
    seconds      of a run, the mean over seeds
    kept_bytes   carried from one increment to the next, at the end
    """

    method: str
    accuracies: Sequence[Sequence[float]]
    seconds: float
    kept_bytes: int

    @property
    def final(self) -> list[float]:
        """Accuracy after the last increment, a seed each."""
        return [seed[-1] for seed in self.accuracies]

    @property
    def average(self) -> list[float]:
        """Mean accuracy over increments, a seed each."""
        return [statistics.fmean(seed) for seed in self.accuracies]

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        return (
            self.method,
            percent_mean(self.final),
            percent_mean(self.average),
            duration(self.seconds),
            size(self.kept_bytes),
        )


def comparison_table(results: Sequence[MethodResult]) -> str:
    """A Markdown table whose columns also line up as plain text."""
    return markdown_table(HEADER, [result.cells() for result in results])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column to the left, numbers to the right."""
    clean = [[one_line(cell).replace("|", "\\|") for cell in row] for row in (header, *rows)]
    widths = [max(3, *(len(row[column]) for row in clean)) for column in range(len(header))]
    lines = []
    for row in clean:
        cells = [
            cell.rjust(width) if column else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("| " + " | ".join(cells) + " |")
    rule = ["-" * width if not column else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    return "\n".join(lines) + "\n"


def rich_comparison_table(results: Sequence[MethodResult], title: str = "") -> Table:
    """The same table for a terminal, the best final accuracy in bold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    best = max(statistics.fmean(result.final) for result in results)
    heading = Text(readable(title), style="bold") if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column, name in enumerate(HEADER):
        table.add_column(name, justify="right" if column else "left")
    for result in results:
        style = "bold" if statistics.fmean(result.final) == best else ""
        table.add_row(*(Text(cell) for cell in result.cells()), style=style)
    return table
