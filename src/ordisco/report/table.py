"""Tables of words: Markdown that also lines up as plain text, or for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ordisco.errors import one_line, readable

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class TextTable:
    """A header and rows of words; the rows `best`, by their numbers from 0, stand out on a terminal."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: tuple[int, ...] = ()

    def markdown(self) -> str:
        """A Markdown table whose columns also line up as plain text."""
        return markdown_table(self.header, self.rows)

    def rich(self, title: str = "") -> Table:
        """The same table for a terminal, the best rows in bold."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        heading = Text(readable(title), style="bold") if title else None
        table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for column, name in enumerate(self.header):
            table.add_column(name, justify="right" if column else "left")
        for number, row in enumerate(self.rows):
            table.add_row(*(Text(cell) for cell in row), style="bold" if number in self.best else "")
        return table


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
