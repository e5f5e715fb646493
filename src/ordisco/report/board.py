"""How runs side by side show themselves: a bar each on a terminal, lines with the run's name elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TextIO

from ordisco.errors import one_line
from ordisco.evaluation.record import IncrementRecord
from ordisco.report.output import guarded
from ordisco.report.table import TextTable
from ordisco.report.terminal import (
    Display,
    LiveDisplay,
    Pace,
    PlainDisplay,
    Steps,
    heading,
    make_display,
    result_in_words,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Board(Protocol):
    """Displays by the name of a run."""

    def row(self, name: str) -> Display:
        """The display of one run."""

    def remove(self, name: str) -> None:
        """A run has ended."""

    def close(self) -> None:
        """All runs have ended or were broken off."""


def make_board() -> Board:
    """Bars if standard output is a terminal, plain lines otherwise."""
    stream = guarded(sys.stdout)
    if not isinstance(make_display(stream), LiveDisplay):
        return PlainBoard(stream)
    from rich.console import Console

    return LiveBoard(Console(file=stream, highlight=False))


class NamedDisplay(PlainDisplay):
    """Plain lines that begin with the run's name."""

    def __init__(self, name: str, stream: TextIO) -> None:
        super().__init__(stream)
        self.name = name

    def message(self, text: str) -> None:
        """Print it after the name."""
        super().message(f"{one_line(self.name)}: {text}")


class PlainBoard:
    """The lines of all runs as they come."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows: dict[str, NamedDisplay] = {}

    def row(self, name: str) -> Display:
        """The display of one run."""
        return self._rows.setdefault(name, NamedDisplay(name, self._stream))

    def remove(self, name: str) -> None:
        """What is printed stays."""

    def close(self) -> None:
        """Nothing to tidy up."""


class LiveBoard:
    """Lines for what is done, and below them a bar for each run that is under way."""

    def __init__(self, console: Console) -> None:
        from rich.live import Live

        self._console = console
        self._rows: dict[str, LiveRow] = {}
        self._live: Live = Live(console=console, auto_refresh=False, transient=True)
        self._live.start()

    def row(self, name: str) -> Display:
        """The display of one run."""
        return self._rows.setdefault(name, LiveRow(name, self))

    def remove(self, name: str) -> None:
        """Take its bar away."""
        self._rows.pop(name, None)
        self.redraw()

    def print(self, text: str) -> None:
        """A line above the bars."""
        self._console.print(text, markup=False, soft_wrap=True)

    def redraw(self) -> None:
        """The bars as they are now."""
        self._live.update(self._picture(), refresh=True)

    def close(self) -> None:
        """Take the bars away and give the cursor back."""
        self._live.stop()

    def _picture(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2, 0, 0), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(ratio=1)
        for _ in range(3):
            table.add_column(justify="right", no_wrap=True)
        for name, row in self._rows.items():
            total, done = max(1, row.pace.total), row.pace.done
            bar = ProgressBar(total=total, completed=done)
            table.add_row(Text(one_line(name)), bar, f"{100 * done / total:.0f} %", row.status, row.pace.left())
        return table


class LiveRow:
    """One run of a live board."""

    def __init__(self, name: str, board: LiveBoard) -> None:
        self.name, self.board = name, board
        self.pace = Pace(0, 0)
        self.status = "starting"

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """Print the heading and show the bar."""
        self.pace = Pace(increments, steps, done_steps)
        self.message(heading(title, self.pace))

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """Move the bar."""
        self.pace.move(increment, step)
        self.status = f"increment {increment}/{self.pace.increments}  {images_per_second:,.0f} images/s"
        self.board.redraw()

    def increment_done(self, record: IncrementRecord) -> None:
        """Print the result above the bars."""
        self.pace.move(record.increment)
        self.message(result_in_words(record, self.pace))

    def message(self, text: str) -> None:
        """Print it, after the name, above the bars."""
        self.board.print(f"{one_line(self.name)}: {text}")

    def comparison(self, table: TextTable, title: str) -> None:
        """Not told by a single run."""

    def close(self) -> None:
        """The board is closed as a whole."""
