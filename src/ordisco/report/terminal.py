"""How training shows itself: a live bar on a terminal, plain lines in a pipe or a log."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO

from ordisco.errors import readable
from ordisco.evaluation.record import IncrementRecord
from ordisco.report.output import guarded
from ordisco.report.table import TextTable
from ordisco.words import duration, percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

PLAIN_INTERVAL = 10.0  # seconds between plain lines within an increment
Steps = int | Sequence[int]  # of every increment alike, or of each


class Display(Protocol):
    """What a run tells. Increments count from 1; `step` is the number of steps done in the increment."""

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """A run of `increments` × `steps` begins, or goes on after `done_steps` of them."""

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """So many steps of the increment are done."""

    def increment_done(self, record: IncrementRecord) -> None:
        """An increment is learned and evaluated."""

    def message(self, text: str) -> None:
        """Say something that stays."""

    def comparison(self, table: TextTable, title: str) -> None:
        """Several methods side by side."""

    def close(self) -> None:
        """The run is over or broken off."""


def make_display(stream: TextIO | None = None) -> Display:
    """A live display if `stream` (standard output) is a terminal, plain lines otherwise."""
    stream = guarded(stream or sys.stdout)
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from rich.console import Console

        return LiveDisplay(Console(file=stream, highlight=False))
    return PlainDisplay(stream)


class Pace:
    """Steps done in the whole run and the time that the rest will take at the pace since the start."""

    def __init__(
        self, increments: int, steps: Steps, done: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.increments, self.done = increments, done
        self.steps = [steps] * increments if isinstance(steps, int) else list(steps)
        self._first, self._clock, self._start = done, clock, clock()

    def move(self, increment: int, step: int | None = None) -> None:
        """Note where the run is: after so many steps of an increment, or at its end."""
        self.done = sum(self.steps[: increment - 1]) + (self.steps[increment - 1] if step is None else step)

    @property
    def total(self) -> int:
        """Steps of all increments."""
        return sum(self.steps)

    def left(self) -> str:
        """`1 min 05 s left`, or nothing before the first step."""
        if self.done <= self._first:
            return ""
        seconds = (self.total - self.done) * (self._clock() - self._start) / (self.done - self._first)
        return f"{round(seconds)} s left" if seconds < 59.5 else f"{duration(seconds)} left"


def heading(title: str, pace: Pace) -> str:
    """The line that opens a run."""
    increments = f"{pace.increments} increments of " if pace.increments != 1 else ""
    after = f", going on after step {pace.done:,} of {pace.total:,}" if pace.done else ""
    low, high = min(pace.steps), max(pace.steps)
    return f"{readable(title)}: {increments}{low if low == high else f'{low} to {high}'} steps{after}"


def place_in_words(pace: Pace, increment: int, step: int) -> str:
    """`increment 2/5  step 40/300`; of a single increment the step alone."""
    steps = f"step {step}/{pace.steps[increment - 1]}"
    return f"increment {increment}/{pace.increments}  {steps}" if pace.increments != 1 else steps


def losses_in_words(losses: Mapping[str, float]) -> list[str]:
    """`C 0.512`, `D 1.204`, …"""
    return [
        f"{name} {value:.3f}" if 0.001 <= abs(value) < 100 else f"{name} {value:.3g}" for name, value in losses.items()
    ]


def result_in_words(record: IncrementRecord, pace: Pace) -> str:
    """The line that closes an increment."""
    words = {
        "accuracy": "accuracy",
        "pseudo_label_accuracy": "pseudo-labels",
        "trusted_share": "trusted",
        "trusted_accuracy": "right of these",
        "generated_accuracy": "generated",
    }
    shares = [f"{words[name]} {percent(share)}" for name, share in record.shares.items()]
    return "  ".join([f"increment {record.increment}/{pace.increments}", *shares, duration(record.seconds)])


class PlainDisplay:
    """One line an increment, and one about every ten seconds."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._pace = Pace(0, 0, clock=clock)
        self._last = clock()

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """Print the heading."""
        self._pace = Pace(increments, steps, done_steps, self._clock)
        self._last = self._clock()
        self.message(heading(title, self._pace))

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """Print a line if the last one is ten seconds old."""
        self._pace.move(increment, step)
        if self._clock() - self._last < PLAIN_INTERVAL:
            return
        self._last = self._clock()
        parts = [
            place_in_words(self._pace, increment, step),
            *losses_in_words(losses),
            f"{images_per_second:,.0f} images/s",
            self._pace.left(),
        ]
        self.message("  ".join(part for part in parts if part))

    def increment_done(self, record: IncrementRecord) -> None:
        """Print the result."""
        self._pace.move(record.increment)
        self._last = self._clock()
        self.message(result_in_words(record, self._pace))

    def message(self, text: str) -> None:
        """Print it, at once also in a pipe."""
        print(text, file=self._stream, flush=True)

    def comparison(self, table: TextTable, title: str) -> None:
        """Print a table whose columns line up."""
        self.message(f"\n{readable(title)}\n\n{table.markdown()}")

    def close(self) -> None:
        """Nothing to tidy up."""


class SilentDisplay(PlainDisplay):
    """Tells nothing: for all but the first process of a data-parallel run."""

    def message(self, text: str) -> None:
        """Keep it to itself."""


class LiveDisplay:
    """Lines for what is done, and below them a bar with the latest losses; redrawn by `step`, no thread."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._live: Live | None = None
        self._pace = Pace(0, 0, clock=clock)
        self._accuracy: float | None = None

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """Print the heading and show the bar."""
        from rich.live import Live

        self.close()
        self._pace = Pace(increments, steps, done_steps, self._clock)
        self._accuracy = None
        self._console.print(heading(title, self._pace), style="bold", markup=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """Redraw the bar."""
        self._pace.move(increment, step)
        status = [place_in_words(self._pace, increment, step), f"{images_per_second:,.0f} images/s"]
        if self._accuracy is not None:
            status.append(f"accuracy so far {percent(self._accuracy)}")
        if self._live:
            self._live.update(self._picture("  ".join(status), losses_in_words(losses)), refresh=True)

    def increment_done(self, record: IncrementRecord) -> None:
        """Print the result above the bar."""
        self._accuracy = record.accuracy
        self._pace.move(record.increment)
        self.message(result_in_words(record, self._pace))

    def message(self, text: str) -> None:
        """Print it above the bar."""
        self._console.print(text, markup=False, soft_wrap=True)

    def comparison(self, table: TextTable, title: str) -> None:
        """Print the table in place of the bar."""
        self.close()
        self._console.print()
        self._console.print(table.rich(title))

    def close(self) -> None:
        """Take the bar away and give the cursor back."""
        if self._live:
            self._live.stop()
            self._live = None

    def _picture(self, status: str, losses: list[str]) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        line = Table.grid(padding=(0, 2, 0, 0), expand=True)
        line.add_column(ratio=1)
        line.add_column(justify="right", no_wrap=True)
        line.add_column(justify="right", no_wrap=True, min_width=16)
        share = self._pace.done / max(1, self._pace.total)
        bar = ProgressBar(total=max(1, self._pace.total), completed=self._pace.done)
        line.add_row(bar, f"{100 * share:.0f} %", self._pace.left())
        now = Text(status, no_wrap=True, overflow="ellipsis")
        return Group(line, now, Columns([Text(loss, style="dim") for loss in losses], padding=(0, 2)))
