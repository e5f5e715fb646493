"""Making runs: those that are not finished, one after the other here or side by side in processes.

The same engine makes the runs of a comparison and the rows of a study. What one run gives does not depend on the
others, nor on how many are made at once. One that fails, or that another process is at, leaves the others alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import filelock

from ordisco.errors import OrdiscoError, UsageError
from ordisco.files import told_in_one_line
from ordisco.launchers.base import Command, Job
from ordisco.launchers.local import Local
from ordisco.launchers.relay import Parent, Relay
from ordisco.machine.cores import usual_jobs
from ordisco.machine.fabric import Fabric
from ordisco.machine.mounts import lock_fault
from ordisco.machine.processes import start, together
from ordisco.report.board import make_board
from ordisco.report.terminal import Display, SilentDisplay
from ordisco.report.voice import one_voice
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import BUSY, RunDirectory
from ordisco.runs.launch import new_run, resumed_run, stream_of
from ordisco.runs.made import code_now
from ordisco.runs.precision import BF16, check_precision
from ordisco.runs.run import Run
from ordisco.runs.signals import Interrupted
from ordisco.settings.machine import COMPUTING, MachineSettings
from ordisco.studies.judge import cached_judge
from ordisco.studies.launching import Launching
from ordisco.studies.results import Results, note_code, result_of
from ordisco.studies.study import Row, shortness
from ordisco.words import duration, percent

LOG = "log.txt"  # of runs that are made without the command that has asked for them


@dataclass(frozen=True)
class Task:
    """A run to be made: the row, its directory, and what it is called while it is made."""

    row: Row
    path: Path
    name: str

    @property
    def finished(self) -> bool:
        """Is it made?"""
        return RunDirectory(self.path).summary_json.exists()


@dataclass
class Made:
    """What became of the tasks: all finished, or what failed and what others are at, by name and reason."""

    complete: bool = True
    failures: dict[str, str] = field(default_factory=dict)
    busy: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, reason: str) -> None:
        """A run was not made."""
        self.complete = False
        (self.busy if reason.startswith(BUSY) else self.failures)[name] = reason


@dataclass(frozen=True)
class Engine:
    """Makes tasks.

    words       after `ordisco`, the command that goes on with all tasks; with `--job KEY`, that makes one
    go_on       in words, how to go on after an interruption
    definition  the file that says which tasks there are: without it, no further task is begun
    results     where the result of each row is written, beside whose runs the code is noted; None: nowhere
    judges      where judges of generated images are kept, for rows that are judged
    """

    tasks: Sequence[Task]
    words: Sequence[str]
    go_on: str
    definition: Path
    results: Results | None = None
    judges: Path | None = None

    def go(
        self,
        display: Display,
        fabric: Fabric,
        max_steps: int | None = None,
        jobs: int | None = None,
        launching: Launching | None = None,
    ) -> Made:
        """Make every task that is not finished, `jobs` at once; a failure is an error when all others are made."""
        left = [task for task in self.tasks if not task.finished]
        launching = launching or Launching(Local())
        if not launching.here:
            made = self.elsewhere(left, display, fabric, launching, jobs, max_steps)
        else:
            at_once = jobs_at_once([task.row.config.machine for task in self.tasks], len(left), fabric, jobs)
            self.try_precision(left, fabric)
            if at_once > 1:
                display.message(f"{len(left)} runs, {at_once} at once")
                made = self.side_by_side(left, display, fabric, launching, at_once, max_steps)
            else:
                made = self.one_after_the_other(display, fabric, max_steps)
        if made.failures:
            name, reason = next(iter(made.failures.items()))
            others = "" if "ordisco resume" in reason else f"; what is done stays, {self.go_on}"
            raise OrdiscoError(f"{len(made.failures)} of {len(self.tasks)} runs failed ({name}: {reason}){others}")
        return made

    def try_precision(self, left: Sequence[Task], fabric: Fabric) -> None:
        """Here once, not in every process; what is resumed may be on another machine."""
        for task in left:
            if task.row.config.machine.precision == BF16:
                check_precision(BF16, fabric, task.row.config.learner, stream_of(task.row.config).image_shape)
                return

    # ------------------------------------------------------------------ one after the other

    def one_after_the_other(self, display: Display, fabric: Fabric, max_steps: int | None) -> Made:
        """In this process, or in the processes of data-parallel training."""
        made, machine = Made(), self.tasks[0].row.config.machine
        try:
            for task in self.tasks:
                if not alike(machine, task.row.config.machine):
                    machine = task.row.config.machine
                    fabric = start(machine)
                try:
                    made.complete &= self.one(task, display, fabric, max_steps)
                except Interrupted:
                    raise
                except OrdiscoError as error:
                    if fabric.world_size > 1:  # the other processes may be anywhere in it
                        raise
                    made.note(task.name, str(error))
                    display.message(f"{task.name}: {told(str(error))}")
        except KeyboardInterrupt:
            raise Interrupted(f"stopped between two runs; {self.go_on}") from None
        return made

    def one(self, task: Task, display: Display, fabric: Fabric, max_steps: int | None) -> bool:
        """Make one task; True if it is finished."""
        if fabric.broadcast(task.finished):
            self.tell_finished(task, display)
            self.keep(task, display, fabric)
            return True
        with self.ready(task, display, fabric) as run:
            complete = run.go(max_steps)
            asked = run.asked_to_stop()
            if complete:
                self.keep(task, display, fabric)
        if asked and task is not self.tasks[-1]:
            raise Interrupted(f"stopped as asked after this run; {self.go_on}")
        return complete

    @contextlib.contextmanager
    def ready(self, task: Task, display: Display, fabric: Fabric) -> Iterator[Run]:
        """The run of a task, new or as its last checkpoint left it, locked."""
        if fabric.broadcast(not self.definition.is_file()):
            raise OrdiscoError(f"{self.definition} is gone, so no more runs are made: start them again")
        with self.claimed(task, fabric):
            if self.results is not None:
                together(fabric, lambda: note_code(task.path, code_now()))
            begun = fabric.broadcast(RunDirectory(task.path).settings_file.exists())
            ready = (
                resumed_run(task.path, display, fabric)
                if begun
                else new_run(self.with_judge(task, fabric), task.path, display, fabric)
            )
            with ready as run:
                run.go_on = self.go_on
                yield run

    @contextlib.contextmanager
    def claimed(self, task: Task, fabric: Fabric) -> Iterator[None]:
        """Where rows of several studies share directories, a row is one process's from its judge to its result."""
        if self.results is None:
            yield
            return
        lock = filelock.FileLock(task.path.with_name(f".{task.path.name}.lock"), timeout=0)

        def acquire() -> None:
            with told_in_one_line("create", task.path.parent):
                task.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                lock.acquire()
            except filelock.Timeout:
                raise OrdiscoError(f"{BUSY} {task.path}: wait until it ends") from None

        together(fabric, acquire)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.release()

    def with_judge(self, task: Task, fabric: Fabric) -> RunConfig:
        """The configuration with the judge of its images, trained if there is none yet."""
        config, judges = task.row.config, self.judges
        if not task.row.judged or judges is None:
            return config
        trained = together(fabric, lambda: str(cached_judge(config, stream_of(config), judges)[0].resolve()))
        judge = fabric.broadcast(trained)
        return dataclasses.replace(config, machine=dataclasses.replace(config.machine, judge=judge))

    def keep(self, task: Task, display: Display, fabric: Fabric) -> None:
        """Write the result of a finished task."""
        results = self.results
        if results is None:
            return

        def write() -> None:
            code = note_code(task.path, code_now())
            result = result_of(task.row, RunDirectory.open(task.path), code)
            file = results.write(task.row, result)
            display.message(f"{percent(result['last_accuracy'])} in {duration(result['seconds'])}: {file}")

        together(fabric, write)

    # ------------------------------------------------------------------ side by side

    def elsewhere(
        self,
        left: Sequence[Task],
        display: Display,
        fabric: Fabric,
        launching: Launching,
        at_once: int | None,
        max_steps: int | None,
    ) -> Made:
        """On a cluster, or without this process."""
        for task in left:
            if task.row.config.machine.num_nodes > 1:
                raise UsageError("num_nodes is not allowed with a launcher: a run has one machine, or use torchrun")
            if launching.launcher.shared and (fault := lock_fault(task.path.parent)):
                raise OrdiscoError(
                    f"{fault}: two could make the same run; mount it with locks, or use --launcher local"
                )
        if not left or not launching.detach:
            if left:
                display.message(f"{len(left)} runs" + ("" if at_once is None else f", at most {at_once} at once"))
            return self.side_by_side(left, display, fabric, launching, at_once, max_steps)
        jobs = self.jobs(left, launching, max_steps)
        more = () if max_steps is None else ("--max-steps", str(max_steps))
        command = Command((*self.words, *more), left[0].path.parent.resolve() / LOG)
        display.message(f"{len(left)} runs: {launching.launcher.leave(jobs, at_once, command)}")
        return Made(complete=False)

    def jobs(self, tasks: Sequence[Task], launching: Launching, max_steps: int | None) -> list[Job]:
        """The tasks as a launcher is given them."""
        more = () if max_steps is None else ("--max-steps", str(max_steps))
        machines = [task.row.config.machine for task in tasks]
        return [
            Job(task.name, (*self.words, *more, "--job", task.path.name), launching.needs(machine), machine.world)
            for task, machine in zip(tasks, machines, strict=True)
        ]

    def side_by_side(
        self,
        left: Sequence[Task],
        display: Display,
        fabric: Fabric,
        launching: Launching,
        at_once: int | None,
        max_steps: int | None,
    ) -> Made:
        """A process for each."""
        for task in self.tasks:
            if task not in left:
                self.tell_finished(task, display)
                self.keep(task, display, fabric)
        if not left:
            return Made()
        longest = sorted(left, key=lambda task: shortness(task.row))
        board = make_board()
        try:
            ends = launching.launcher.run(self.jobs(longest, launching, max_steps), at_once, board)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped at once, without checkpoints of this moment; {self.go_on}") from None
        finally:
            board.close()
        made = Made(all(task.finished for task in left))
        for name, reason in ends.failures.items():
            made.note(name, reason)
        if ends.stopped_by is not None and not made.complete and not made.failures:
            raise Interrupted(f"stopped by {ends.stopped_by}, all is saved; {self.go_on}")
        return made

    def job(self, key: str, max_steps: int | None = None, parent: Parent | None = None) -> None:
        """For a launcher: make the task whose directory has this name, tell the parent, stop with it."""
        for task in self.tasks:
            if task.path.name == key:
                break
        else:
            raise UsageError(f"job = {key!r} is not allowed: a run of {self.tasks[0].path.parent}")
        fabric = start(task.row.config.machine)
        chief = fabric.is_global_zero
        display = Relay(sys.stdout) if chief else SilentDisplay(sys.stdout)
        with one_voice(fabric, display):
            if fabric.broadcast(task.finished):  # by a process that was lost before it could say so
                self.keep(task, display, fabric)
                return
            with self.ready(task, display, fabric) as run:
                if chief:
                    (parent or Parent()).stops(run.stop)
                if run.go(max_steps):
                    self.keep(task, display, fabric)

    def tell_finished(self, task: Task, display: Display) -> None:
        """A run that need not be made."""
        display.message(f"{task.row.title}: finished before, in {task.path}")


def jobs_at_once(machines: Sequence[MachineSettings], runs: int, fabric: Fabric, asked: int | None) -> int:
    """How many runs at once: as asked, else as many as the cores allow; one after the other on GPUs."""
    devices = max(machine.world for machine in machines)
    if asked is None:
        if devices > 1 or fabric.device.type != "cpu":
            return 1
        threads = [machine.threads for machine in machines]
        return usual_jobs(runs, None if None in threads else max(count or 1 for count in threads))
    if asked > 1 and devices > 1:
        raise UsageError(f"jobs = {asked} is not allowed: 1, as each run takes {devices} devices")
    return max(1, min(asked, runs))


def alike(a: MachineSettings, b: MachineSettings) -> bool:
    """Do both need the same processes, device, number format and threads?"""
    return all(getattr(a, name) == getattr(b, name) for name in COMPUTING)


def told(reason: str) -> str:
    """Why a run was not made, in words."""
    return "another process is at it" if reason.startswith(BUSY) else f"failed: {reason}"
