"""Where the runs, results and items of a scale are kept, and what of them there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ordisco.paper.items import Line
from ordisco.paper.scales import Plan
from ordisco.studies.results import Result, Results
from ordisco.studies.study import JUDGED, Row


@dataclass(frozen=True)
class Place:
    """The directories of one scale below those that the user names."""

    root: Path
    items: Path  # a file for each finished item

    @property
    def runs(self) -> Path:
        """A directory for each run."""
        return self.root / "runs"

    @property
    def judges(self) -> Path:
        """A directory for each jointly trained classifier."""
        return self.root / "judges"

    @property
    def results(self) -> Results:
        """A file for each finished run."""
        return Results(self.root / "results")

    @property
    def pictures(self) -> Path:
        """The pictures of items."""
        return self.root / "pictures"

    def run(self, row: Row) -> Path:
        """The directory of a row's run; one that is judged serves for one that need not be."""
        judged = self.runs / f"{row.shared_key}{JUDGED}"
        return judged if judged.exists() else self.runs / row.key


@dataclass(frozen=True)
class Found:
    """The results that there are, by line and seed."""

    plan: Plan
    place: Place

    def of(self, line: Line) -> dict[int, Result]:
        """The results of a line by seed."""
        rows = [self.plan.row(line, seed) for seed in self.plan.seeds]
        return {row.seed: result for row, result in self.place.results.read_all(rows)}

    def runs(self, line: Line) -> dict[int, Path]:
        """The directories of a line's finished runs by seed."""
        return {seed: self.place.run(self.plan.row(line, seed)) for seed in self.of(line)}

    def stream_of(self, line: Line) -> str:
        """What the stream is called here."""
        from ordisco.studies.study import stream_title

        return stream_title(self.plan.config(line, 0))


def missing(rows: Iterable[Row], place: Place) -> list[Row]:
    """The rows that have no result yet."""
    results = place.results
    return [row for row in rows if not results.there(row)]
