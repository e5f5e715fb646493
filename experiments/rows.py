"""What a study is made of: rows, each one run that `ordisco run` can make."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from ordisco.cli import parser
from ordisco.cli.options import Parser, flag
from ordisco.cli.run import configuration
from ordisco.config import RunConfig
from ordisco.errors import UsageError
from ordisco.methods import METHODS
from ordisco.scenarios import StreamSettings
from ordisco.settings import LearnerSettings

Value = bool | int | float | str


@cache
def command_line() -> Parser:
    """The command `ordisco`."""
    return parser()


@dataclass(frozen=True)
class Row:
    """One run: a configuration with a name, and a seed.

    `changes` are settings of the learner, `stream_changes` of the stream, by the names they have in Python. The number
    format is named too, since what a machine would choose for itself could differ.
    """

    name: str
    stream: str
    method: str
    preset: str | None = None
    changes: Mapping[str, Value] = field(default_factory=dict)
    stream_changes: Mapping[str, Value] = field(default_factory=dict)
    seed: int = 0
    purpose: str = ""
    precision: str = "32-true"

    @property
    def arguments(self) -> list[str]:
        """The words after `ordisco` that make this run."""
        words = ["run", self.stream, "--method", self.method, "--seed", str(self.seed), "--precision", self.precision]
        if self.preset is not None:
            words += ["--preset", self.preset]
        for name, value in (*self.stream_changes.items(), *self.changes.items()):
            if value is None:
                raise UsageError(f"row {self.name!r}: {name} = None is not allowed: leave it out")
            if isinstance(value, bool):
                words.append(flag(name) if value else flag(f"no_{name}"))
            else:
                words += [flag(name), str(value)]
        return words

    @property
    def command(self) -> str:
        """The command line that makes this run."""
        return shlex.join(["ordisco", *self.arguments])

    def config(self, *machine: str) -> RunConfig:
        """The configuration as the command line gives it; `machine` are more options, such as --data-dir."""
        try:
            return configuration(command_line().parse_args([*self.arguments, *machine]))[0]
        except UsageError as error:
            raise UsageError(f"row {self.name!r}: {error}") from error

    def settings(self) -> dict[str, Any]:
        """All that decides the outcome: what differs from the paper's defaults, so new settings change no old row."""
        config, paper = self.config(), LearnerSettings().to_dict()
        learner = {
            name: value
            for group, values in config.learner.to_dict().items()
            for name, value in values.items()
            if value != paper[group][name]
        }
        default = vars(StreamSettings())
        stream = {name: value for name, value in vars(config.stream).items() if value != default[name]}
        settings = {"method": config.method, "seed": config.seed, "stream": stream, "learner": learner}
        return settings if self.precision == "32-true" else settings | {"precision": self.precision}

    @cached_property
    def key(self) -> str:
        """A file name that rows with the same settings share."""
        digest = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()[:10]
        words = re.sub(r"[^\w.+-]+", "-", f"{self.stream}-{self.method}-seed{self.seed}", flags=re.ASCII)
        return f"{words}-{digest}"


@dataclass(frozen=True)
class Study:
    """Rows that belong together: differences are to the row `reference`, the gap is from it to `ceiling`, if any.

    `judged`: a jointly trained classifier judges the generated images after each increment.
    """

    title: str
    rows: tuple[Row, ...]
    reference: str = "SMB"
    ceiling: str | None = "JT"
    judged: bool = False

    def wants_judge(self, row: Row) -> bool:
        """Does this row generate images, and are they to be judged?"""
        return self.judged and METHODS[row.method].gan

    def chosen(self, names: Iterable[str] | None = None, seeds: Iterable[int] | None = None) -> list[Row]:
        """The rows of these names and seeds, all rows of a seed before the next."""
        known = {row.name for row in self.rows}
        for name in names or ():
            if name not in known:
                raise UsageError(f"--only {name!r} is not allowed: one of {', '.join(sorted(known))}")
        rows = [row for row in self.rows if (not names or row.name in names) and (not seeds or row.seed in seeds)]
        return sorted(rows, key=lambda row: row.seed)


def over_seeds(rows: Iterable[Row], seeds: Iterable[int]) -> tuple[Row, ...]:
    """Each row with each seed."""
    seeds = tuple(seeds)
    return tuple(replace(row, seed=seed) for row in rows for seed in seeds)
