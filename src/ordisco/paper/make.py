"""Making items: the runs that are missing, then what is shown."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordisco.data.catalogue import CATALOGUE
from ordisco.data.sources import data_directory, obtain
from ordisco.errors import OrdiscoError
from ordisco.paper.items import Item
from ordisco.paper.outcome import Outcome, outcome, write
from ordisco.paper.place import Place, missing
from ordisco.paper.scales import Plan, definition
from ordisco.report.terminal import Display
from ordisco.studies.study import Row, options

if TYPE_CHECKING:
    from ordisco.launchers.relay import Parent
    from ordisco.studies.engine import Engine
    from ordisco.studies.launching import Launching


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
        words += [] if self.items[0].data is None else ["--data", self.items[0].data]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        return [*words, *options(self.plan.changes)]

    def command(self, item: Item) -> str:
        """The command that makes one item."""
        return shlex.join(["ordisco", *self.words([item.name])])

    def whole(self) -> list[str]:
        """After `ordisco`, the command that makes all of it, from wherever it is given."""
        words = [*self.words([item.name for item in self.items]), "--out", str(self.out.resolve())]
        return words if self.jobs is None else [*words, "--jobs", str(self.jobs)]  # by which the runs share threads

    def outcomes(self) -> list[Outcome]:
        """What there is of each item by now; those that are complete are kept as files."""
        found = []
        for item in self.items:
            of = outcome(item, self.plan, self.place, self.command(item))
            write(of, self.place.items, self.place.pictures)
            found.append(of)
        return found


def check_data(rows: Sequence[Row], data_dir: str | None) -> None:
    """Refuse before anything is made, where the files of a data set are missing: which, and where to put them."""
    root = data_directory(None if data_dir is None else Path(data_dir))
    for name in dict.fromkeys(row.config.stream.dataset for row in rows):
        if name in CATALOGUE:
            obtain(name, root, download=False)


def make_one(making: Making, job: str, max_steps: int | None, parent: Parent | None) -> None:
    """In a child: make one of the runs."""
    engine_of(making, making.plan.rows(making.items)).job(job, max_steps, parent=parent)


def engine_of(making: Making, rows: Sequence[Row]) -> Engine:
    """What makes these runs."""
    from ordisco.studies.engine import Engine, Task

    place = making.place
    tasks = [Task(row, place.runs / row.key, task_name(row)) for row in rows]
    return Engine(tasks, making.whole(), "the same command goes on", definition(), place.results, place.judges)


def make(making: Making, max_steps: int | None = None, launching: Launching | None = None) -> bool:
    """Make the runs that have no result; True if none is left."""
    from ordisco.machine.processes import start
    from ordisco.report.voice import one_voice

    rows = missing(making.plan.rows(making.items), making.place)
    if not rows:
        return True
    machine = rows[0].config.machine
    check_data(rows, machine.data_dir)
    fabric = start(dataclasses.replace(machine, devices=1, num_nodes=1) if launching is not None else machine)
    with one_voice(fabric) as display:
        display.message(before(making, rows))
        made = engine_of(making, rows).go(display, fabric, max_steps, making.jobs, launching)
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
