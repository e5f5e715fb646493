"""What a launcher is given and what it gives back. A new launcher is one file with these two methods.

Whatever the launcher, a run is made by a process of its own from its directory on disk: what it gives does not depend
on the launcher. One that is lost is made again from its last checkpoint, at most `ATTEMPTS` times. One that fails is
told and leaves the others alone. The lock of its directory keeps two processes from making the same run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ordisco.report.board import Board

ATTEMPTS = 3  # to make a run whose process or machine is lost


@dataclass(frozen=True)
class Needs:
    """What one run takes of a machine."""

    cpus: int = 1
    gpus: float = 0.0
    memory: int = 2**30  # bytes


@dataclass(frozen=True)
class Job:
    """A run to be made."""

    name: str
    words: tuple[str, ...]  # after `ordisco`: the command that makes this one run
    needs: Needs = Needs()
    processes: int = 1  # of a data-parallel run


@dataclass(frozen=True)
class Command:
    """The command that makes all the runs, to be given again; what it says goes to `log` when nobody is there."""

    words: tuple[str, ...]  # after `ordisco`
    log: Path

    def with_jobs(self, at_once: int | None) -> tuple[str, ...]:
        """The words with the number of runs at once, where that was asked for."""
        known = at_once is None or "--jobs" in self.words
        return self.words if known else (*self.words, "--jobs", str(at_once))


@dataclass
class Ends:
    """How the jobs ended: what went wrong by name, and whether and by what all were asked to stop."""

    failures: dict[str, str] = field(default_factory=dict)
    stopped_by: str | None = None


class Launcher(Protocol):
    """Makes runs."""

    shared: bool  # do its machines share nothing but the run directories' file system?

    def run(self, jobs: Sequence[Job], at_once: int | None, board: Board) -> Ends:
        """Make all, so many at once (None: as many as there is room for), and show how they go.

        A signal stops all, each after the step under way and saved; a second one at once (KeyboardInterrupt).
        """

    def leave(self, jobs: Sequence[Job], at_once: int | None, command: Command) -> str:
        """Have them made without this process; in words, where they are followed and how they are stopped."""
