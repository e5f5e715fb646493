"""What a study is made of: rows, each one run that `ordisco run` can make."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ordisco.errors import UsageError, shown
from ordisco.runs.config import RunConfig
from ordisco.runs.presets import LEADING, flat, paper_defaults, preset_of
from ordisco.settings.machine import COMPUTING
from ordisco.settings.methods import method
from ordisco.streams.catalogue import STREAMS, stream_settings
from ordisco.streams.settings import DATASETS, StreamSettings
from ordisco.words import file_name

JUDGED = "-judged"  # how the key of a row ends whose generated images are judged


@dataclass(frozen=True)
class Row:
    """One run: a configuration with a name, and what it is for.

    `judged`: a jointly trained classifier judges its generated images after each increment.
    """

    name: str
    config: RunConfig
    purpose: str = ""
    judged: bool = False

    @property
    def seed(self) -> int:
        """The seed of the stream and of learning."""
        return self.config.seed

    @property
    def title(self) -> str:
        """`SMB, seed 0`."""
        return f"{self.name}, seed {self.seed}"

    def settings(self) -> dict[str, Any]:
        """All that decides the outcome: what differs from the paper's defaults, so new settings change no old row."""
        config = self.config
        learner = differing(flat(config.learner), paper_defaults())
        stream = differing(vars(config.stream), vars(StreamSettings()))
        settings = {"method": config.method, "seed": config.seed, "stream": stream, "learner": learner}
        precision = config.machine.precision
        return settings if precision == "32-true" else settings | {"precision": precision}

    @functools.cached_property
    def shared_key(self) -> str:
        """A readable name and a digest, which rows with the same settings share, judged or not."""
        config = self.config
        digest = hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()[:10]
        return f"{file_name(f'{config.stream_name}-{config.method}-seed{self.seed}')}-{digest}"

    @property
    def key(self) -> str:
        """The name of the row's files."""
        return self.shared_key + (JUDGED if self.judged else "")

    @property
    def command(self) -> str:
        """The command lines that make this run."""
        if not self.judged:
            return shlex.join(["ordisco", "run", *self.words()])
        config = self.config
        changes = differing(vars(config.stream), vars(base_of(config).stream))
        train = [stream_word(config), "--seed", str(self.seed), *preset_words(config), *options(changes)]
        judge = shlex.join(["ordisco", "judge", "--train", *train, "--out", "judge"])
        return f"{judge} && {shlex.join(['ordisco', 'run', *self.words(), '--judge', 'judge'])}"

    def words(self) -> list[str]:
        """The words after `ordisco run`: what differs from what the stream, the method and the preset give."""
        config, base = self.config, base_of(self.config)
        stream = differing(vars(config.stream), vars(base.stream))

        def given(changes: Mapping[str, Any]) -> dict[str, Any]:
            word, method = stream_word(config), config.method
            return flat(RunConfig.resolve(word, method, config.preset, self.seed, **{**stream, **changes}).learner)

        mine, usual = flat(config.learner), given({})
        leading = {
            name: mine[name]
            for name, following in LEADING.items()
            if mine[name] != usual[name] or any(mine[f] is None and usual[f] is not None for f in following)
        }
        learner = {**leading, **differing(mine, given(leading))}
        machine = differing(vars(config.machine), vars(base.machine))
        said = (*COMPUTING, "evaluate_every")
        changes = {**stream, **learner, **{name: machine[name] for name in said if name in machine}}
        words = [stream_word(config), "--method", config.method, "--seed", str(self.seed)]
        return [*words, *preset_words(config), *options(changes)]


@dataclass(frozen=True)
class Study:
    """Rows that belong together: differences are to the row `reference`, the gap is from it to `ceiling`, if any."""

    title: str
    rows: tuple[Row, ...]
    reference: str | None = None
    ceiling: str | None = None

    def __post_init__(self) -> None:
        seen: set[tuple[str, int]] = set()
        for row in self.rows:
            if (row.name, row.seed) in seen:
                raise UsageError(f"row {row.title!r} is there twice: give rows different names")
            seen.add((row.name, row.seed))
        for field in ("reference", "ceiling"):
            if getattr(self, field) is not None:
                self.check_name(field, getattr(self, field))

    def check_name(self, field: str, name: str) -> None:
        """Refuse a name that no row has."""
        known = dict.fromkeys(row.name for row in self.rows)
        if name not in known:
            raise UsageError(f"{field} = {shown(name)} is not allowed: one of {', '.join(known)}")

    def chosen(self, names: Iterable[str] | None = None, seeds: Iterable[int] | None = None) -> tuple[Row, ...]:
        """The rows of these names and seeds, in the study's order."""
        for name in names or ():
            self.check_name("only", name)
        return tuple(row for row in self.rows if (not names or row.name in names) and (not seeds or row.seed in seeds))

    def against(self, name: str | None) -> Study:
        """The study with differences to that row; as it is for None."""
        if name is None:
            return self
        self.check_name("against", name)
        return dataclasses.replace(self, reference=name, ceiling=None)


def by_seed(rows: Iterable[Row]) -> list[Row]:
    """All rows of a seed before those of the next: the order in which they are made."""
    return sorted(rows, key=lambda row: row.seed)


def shortness(row: Row) -> tuple[int, bool, bool]:
    """Seed by seed, but of each seed the runs that take longest first: so processes side by side end about together."""
    its = method(row.config.method)
    return row.seed, not its.offline, not its.gan


def stream_title(config: RunConfig) -> str:
    """The stream's name and what of it was changed: rows of one title can be compared."""
    changes = differing(vars(config.stream), vars(base_of(config).stream))
    return config.stream_name + "".join(f", {name} = {value}" for name, value in changes.items())


# ---------------------------------------------------------------------- commands


def base_of(config: RunConfig) -> RunConfig:
    """The same stream, method, preset and seed with nothing changed."""
    return RunConfig.resolve(stream_word(config), config.method, config.preset, config.seed)


def stream_word(config: RunConfig) -> str:
    """What `ordisco run` is given as the stream: its name, or the path of own data."""
    named = config.stream_name in STREAMS or config.stream_name in DATASETS
    return config.stream_name if named else config.stream.dataset


def preset_words(config: RunConfig) -> list[str]:
    """`--preset P` where it is not the one that the stream takes anyway."""
    usual = preset_of(stream_settings(stream_word(config)))
    return [] if config.preset == usual else ["--preset", config.preset]


def options(changes: Mapping[str, Any]) -> list[str]:
    """Settings as options of the command line."""
    words: list[str] = []
    for name, value in changes.items():
        if value is None:
            raise UsageError(f"{name} = None is not allowed: no option says so, leave it out")
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", str(value)]
    return words


def differing(values: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are not the usual ones."""
    return {name: value for name, value in values.items() if value != usual[name]}
