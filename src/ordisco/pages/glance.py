"""Runs at a glance, for lists of a thousand: what a directory tells in a millisecond, read again when it changes."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.files import json_of, read_plain
from ordisco.streams.settings import name_of_increment

SETTINGS, METRICS, SUMMARY = "settings.toml", "metrics.jsonl", "summary.json"
WANTED = (
    "method",
    "preset",
    "seed",
    "stream_name",
    "scenario",
    "increments",
    "classes_per_task",
    "num_classes",
    "steps",
)
MOST_SETTINGS, DEPTH = 1 << 20, 3
INCREMENT, STEP = b'{"kind": "increment"', b'{"kind": "step"'
Sign = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Glance:
    """A run in short; `accuracies` are shares, `place` says how far it is, `fault` what cannot be read."""

    path: Path
    sign: Sign
    settings: dict[str, Any] = field(default_factory=dict)
    accuracies: tuple[float, ...] = ()
    place: str = ""
    finished: bool = False
    changed: float = 0.0  # when metrics.jsonl was last written
    fault: str = ""


def find_runs(roots: Iterable[Path]) -> Iterator[Path]:
    """The run directories among these paths and, to a small depth, below them."""
    for root in roots:
        yield from below(root, DEPTH)


def below(path: Path, depth: int) -> Iterator[Path]:
    """The directory itself if it is a run, else the runs below it, by name; links are not followed."""
    if (path / SETTINGS).is_file():
        yield path
        return
    if depth:
        try:
            with os.scandir(path) as found:
                names = sorted(entry.name for entry in found if entry.is_dir(follow_symlinks=False))
        except OSError:
            return
        for name in names:
            if not name.startswith("."):
                yield from below(path / name, depth - 1)


def check_roots(roots: Iterable[Path]) -> None:
    """Refuse a path that is no directory."""
    for root in roots:
        if not root.is_dir():
            raise OrdiscoError(f"no directory at {root}: give run directories, or folders of them")


def sign_of(path: Path) -> Sign:
    """Size and time of the files that tell: the same as long as nothing has changed."""
    found = []
    for name in (SETTINGS, METRICS, SUMMARY):
        try:
            status = os.stat(path / name)
            found.append((status.st_size, status.st_mtime_ns))
        except OSError:
            found.append((-1, -1))
    return tuple(found)


def glance(path: Path, sign: Sign | None = None) -> Glance:
    """Read a run in short; what is damaged is told and not raised."""
    sign = sign_of(path) if sign is None else sign
    try:
        settings = short_settings(read_plain(path / SETTINGS, MOST_SETTINGS))
        lines = read_plain(path / METRICS).split(b"\n")[:-1] if sign[1][0] >= 0 else []
        records = [json_of(line) for line in lines if line.startswith(INCREMENT)]
        accuracies = tuple(float(record["accuracy"]) for record in records)
        last = json_of(lines[-1]) if lines and lines[-1].startswith(STEP) else None
    except (OSError, ValueError, KeyError, TypeError) as error:
        return Glance(path, sign, fault=f"cannot be read: {getattr(error, 'strerror', None) or error}")
    finished = sign[2][0] >= 0
    place = where(settings, len(accuracies), last, finished)
    return Glance(path, sign, settings, accuracies, place, finished, max(0, sign[1][1]) / 1e9)


def short_settings(data: bytes) -> dict[str, Any]:
    """The few settings that a list shows; reading all of them would take ten times as long."""
    starts = tuple(f"{name} = ".encode() for name in WANTED)
    lines = [line for line in data.split(b"\n") if line.startswith(starts)]
    return tomllib.loads(b"\n".join(dict.fromkeys(lines)).decode())


def where(settings: dict[str, Any], done: int, last: dict[str, Any] | None, finished: bool) -> str:
    """`7/10`, with the steps of the increment under way."""
    scenario = settings.get("scenario", "new-instance")
    total = settings.get("increments", 10)
    if scenario == "new-class":
        total = -(-settings.get("num_classes", 10) // settings.get("classes_per_task", 2))
    words = f"{name_of_increment(scenario)} {done}/{total}"
    if not finished and last is not None and last.get("increment") == done + 1:
        words += f", step {last.get('step')}/{settings.get('steps', '?')}"
    return words


class Glances:
    """What is known of runs, read again only where files have changed."""

    def __init__(self, roots: Iterable[Path]) -> None:
        self.roots = tuple(roots)
        self.known: dict[Path, Glance] = {}

    def now(self) -> list[Glance]:
        """All runs there are at the moment."""
        found: dict[Path, Glance] = {}
        for path in find_runs(self.roots):
            sign, before = sign_of(path), self.known.get(path)
            found[path] = before if before is not None and before.sign == sign else glance(path, sign)
        self.known = found
        return list(found.values())
