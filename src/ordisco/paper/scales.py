"""The scales: what a line of the paper is as a run on the digits, in small, or as the paper has it."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ordisco.errors import UsageError, shown
from ordisco.paper.items import Item, Line, increments_of
from ordisco.runs.config import RunConfig
from ordisco.settings.methods import method
from ordisco.streams.settings import StreamSettings
from ordisco.studies.study import Row


@dataclass(frozen=True)
class Scale:
    """How the paper's protocol is made; `scales.toml` says what the fields are."""

    name: str
    title: str
    preset: str
    seeds: int
    jobs: int
    streams: Mapping[str, Mapping[str, Any]]
    changes: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    losses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    plain: Mapping[str, Any] = field(default_factory=dict)


@functools.cache
def scales() -> dict[str, Scale]:
    """Every scale by its name."""
    content = tomllib.loads(files("ordisco.paper").joinpath("scales.toml").read_text(encoding="utf-8"))
    return {name: Scale(name, **values) for name, values in content.items()}


def definition() -> Path:
    """The file that says which items there are."""
    return Path(str(files("ordisco.paper").joinpath("items.toml")))


@dataclass(frozen=True)
class Plan:
    """A scale with the seeds and the changes that a user wants: what makes rows of lines."""

    scale: Scale
    seeds: tuple[int, ...]
    changes: Mapping[str, Any] = field(default_factory=dict)
    runs_at_once: int = 1
    _known: dict[Line, RunConfig] = field(default_factory=dict, repr=False, compare=False)
    _rows: dict[tuple[Line, int], Row] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(name: str, seeds: int | None = None, changes: Mapping[str, Any] | None = None, at_once: int = 1) -> Plan:
        """The plan of a scale by its name."""
        if name not in scales():
            raise UsageError(f"scale = {shown(name)} is not allowed: one of {', '.join(scales())}")
        scale = scales()[name]
        return Plan(scale, tuple(range(scale.seeds if seeds is None else seeds)), dict(changes or {}), at_once)

    def config(self, line: Line, seed: int) -> RunConfig:
        """A line as a run: what a line asks for itself comes last, the user's changes before it."""
        if line not in self._known:
            self._known[line] = self._config(line)
        return dataclasses.replace(self._known[line], seed=seed)

    def _config(self, line: Line) -> RunConfig:
        scale, stream = self.scale, self.scale.streams[line.stream]
        changes = {**scale.changes, **(scale.plain if line.plain else {}), **stream.get("changes", {})}
        changes |= {**scale.methods.get(line.method, {}), **self.changes}
        asked = dict(line.changes)
        loss = asked.get("unlabeled_loss", changes.get("unlabeled_loss"))
        changes = {**scale.losses.get(loss or "", {}), **changes, **asked}
        return RunConfig.resolve(stream["stream"], line.method, scale.preset, runs_at_once=self.runs_at_once, **changes)

    def row(self, line: Line, seed: int) -> Row:
        """A line with a seed, as the engine makes it."""
        if (line, seed) not in self._rows:
            title = method(line.method).title
            self._rows[line, seed] = Row(title, self.config(line, seed), judged=line.judged)
        return self._rows[line, seed]

    def rows(self, chosen: Iterable[Item]) -> list[Row]:
        """The runs that the items need, each once, seed by seed; one that is judged serves where it need not be."""
        found: dict[str, Row] = {}
        lines = [line for item in chosen for line in dict.fromkeys(item.lines)]
        for seed in self.seeds:
            for line in lines:
                row = self.row(line, seed)
                if row.shared_key not in found or row.judged:
                    found[row.shared_key] = row
        return list(found.values())

    def increment(self, stream: str, at: int) -> int:
        """Which increment here stands for the paper's increment `at`: the same share of the stream."""
        return max(1, round(at * self.increments(stream) / increments_of(stream)))

    def increments(self, stream: str) -> int:
        """How many increments the stream has here."""
        return increments_in(self.config(Line("st", stream), 0).stream)


def increments_in(stream: StreamSettings) -> int:
    """Increments of a stream that the settings alone tell: of New Class, the tasks of ten classes."""
    if stream.scenario == "new-instance":
        return stream.increments
    return -(-(stream.num_classes or 10) // stream.classes_per_task)
