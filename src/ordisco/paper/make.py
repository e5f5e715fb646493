"""Making items: the runs that are missing, then what is shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordisco.data.catalogue import CATALOGUE
from ordisco.data.sources import data_directory, obtain
from ordisco.errors import OrdiscoError
from ordisco.paper.items import Item
from ordisco.paper.outcome import Outcome, outcome, write
from ordisco.paper.place import Place, missing
from ordisco.paper.scales import Plan, definition
from ordisco.report.terminal import Display
from ordisco.studies.study import Row, options


@dataclass(frozen=True)
class Making:
    """What a user asks for: items at a scale with seeds and changes, kept below `out`."""

    items: Sequence[Item]
    plan: Plan
    out: Path
    seeds: int | None = None  # as they were given, for the command
    jobs: int | None = None
    kept: Path | None = None  # where items are kept, below `out` if not given

    @property
    def place(self) -> Place:
        """Where the scale's files are."""
        root = self.out / self.plan.scale.name
        return Place(root, root / "items" if self.kept is None else self.kept / self.plan.scale.name)

    def words(self, names: Sequence[str]) -> list[str]:
        """The words after `ordisco` that ask for these items."""
        words = ["paper", *names, "--scale", self.plan.scale.name]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        return [*words, *options(self.plan.changes)]

    def command(self, item: Item) -> str:
        """The command that makes one item."""
        return shlex.join(["ordisco", *self.words([item.name])])

    def child(self) -> list[str]:
        """The command of a process that makes one run."""
        here = [sys.executable, "-m", "ordisco", *self.words([item.name for item in self.items])]
        return [*here, "--out", str(self.out.resolve()), "--jobs", str(self.jobs or 1)]

    def outcomes(self) -> list[Outcome]:
        """What there is of each item by now; those that are complete are kept as files."""
        found = []
        for item in self.items:
            of = outcome(item, self.plan, self.place, self.command(item))
            write(of, self.place.items)
            found.append(of)
        return found


def check_data(rows: Sequence[Row], data_dir: str | None) -> None:
    """Refuse before anything is made, where the files of a data set are missing: which, and where to put them."""
    root = data_directory(None if data_dir is None else Path(data_dir))
    for name in dict.fromkeys(row.config.stream.dataset for row in rows):
        if name in CATALOGUE:
            obtain(name, root, download=False)


def make(making: Making, job: str | None = None, max_steps: int | None = None) -> bool:
    """Make the runs that have no result, or in a child one of them; True if none is left."""
    from ordisco.machine.processes import start
    from ordisco.report.voice import one_voice
    from ordisco.studies.engine import Engine, Task

    place = making.place
    rows = making.plan.rows(making.items)
    if job is None:
        rows = missing(rows, place)
    if not rows:
        return True
    check_data(rows, rows[0].config.machine.data_dir)
    tasks = [Task(row, place.runs / row.key, task_name(row)) for row in rows]
    engine = Engine(tasks, making.child(), "the same command goes on", definition(), place.results, place.judges)
    if job is not None:
        engine.job(job, max_steps)
        return True
    fabric = start(rows[0].config.machine)
    with one_voice(fabric) as display:
        display.message(before(making, rows))
        made = engine.go(display, fabric, max_steps, making.jobs)
        if made.busy:
            tell_busy(display, made.busy)
    return made.complete


def task_name(row: Row) -> str:
    """What a run is called while it is made: short, and no other run's name."""
    return f"{row.title} ({row.shared_key[-10:]})"


def before(making: Making, rows: Sequence[Row]) -> str:
    """What is about to be made, and what it costs."""
    from ordisco.paper.cost import GPU, cost_of
    from ordisco.words import duration

    cost = cost_of(rows, making.plan, making.out)
    how = f"of a GPU at {GPU / 1e12:.0f} TFLOP/s" if cost.counted else f"with {making.plan.scale.jobs} at once"
    names = ", ".join(item.name for item in making.items) if len(making.items) < 6 else f"{len(making.items)} items"
    return f"{names} at the scale {making.plan.scale.name}: {len(rows)} runs, about {duration(cost.seconds)} {how}"


def tell_busy(display: Display, busy: Mapping[str, str]) -> None:
    """Runs that another process is at."""
    display.message(f"{len(busy)} runs were left to another process: {', '.join(busy)}")


def checked(outcomes: Sequence[Outcome]) -> None:
    """An item that is half-made though all was asked for is an error in the end."""
    half: list[Any] = [of["item"] for of in outcomes if not of["complete"]]
    if half:
        raise OrdiscoError(f"half-made: {', '.join(half)}; the same command goes on")
