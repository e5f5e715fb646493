"""Runs as one array job of Slurm, submitted by submitit: a task a run, logs beside the runs.

Each task appends what its run tells to a file, from which this process shows it; nothing else is needed of the login
node, and the runs go on without it. Whether a task is still there is asked of `squeue`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError, UsageError, readable
from ordisco.launchers.base import ATTEMPTS, Command, Ends, Job
from ordisco.launchers.local import note
from ordisco.launchers.relay import END, show
from ordisco.launchers.worker import End, Maker
from ordisco.report.board import Board
from ordisco.runs.signals import StopRequest

LOOK_SECONDS, ASK_SECONDS = 0.5, 5.0  # between two looks at the files, and at the queue
LEASE = 120.0  # seconds for which the lock of a lost machine may last; NFS: 90
FOLDER = "slurm"  # of the logs, beside the runs


@dataclass(frozen=True)
class Slurm:
    """Slurm's options for every run; `hours` is the longest that a task may take before Slurm ends it."""

    folder: Path  # of the runs
    hours: float = 24.0
    more: Mapping[str, str] = field(default_factory=dict)  # as sbatch has them: partition, account, …
    shared = True

    @property
    def logs(self) -> Path:
        """Of Slurm and of what the runs tell."""
        return self.folder / FOLDER

    def run(self, jobs: Sequence[Job], at_once: int | None, board: Board) -> Ends:
        """Submit all, show what they tell, submit again what was lost."""
        with StopRequest() as stop:
            ends, attempt = Ends(), 1
            while jobs and stop.reason is None:
                array = self.submit(jobs, at_once)
                board.row("slurm").message(f"array job {array.number}: {len(jobs)} tasks, logs in {self.logs}")
                jobs = array.follow(ends, board, stop, again=attempt < ATTEMPTS)
                attempt += 1
            ends.stopped_by = stop.reason
        return ends

    def leave(self, jobs: Sequence[Job], at_once: int | None, command: Command) -> str:
        """Submit all and go."""
        number = self.submit(jobs, at_once).number
        return f"array job {number} of {len(jobs)} tasks, logs in {self.logs}; stop it with: scancel {number}"

    def submit(self, jobs: Sequence[Job], at_once: int | None) -> Array:
        """One array job; the run of each task tells into a file of its own."""
        executor = self.executor(jobs, at_once)
        token = uuid.uuid4().hex[:8]
        told = [self.logs / f"{job.name}.{token}.told" for job in jobs]
        try:
            self.logs.mkdir(parents=True, exist_ok=True)
            tasks = executor.map_array(make_in_task, list(jobs), [str(path) for path in told])
        except OSError as error:
            raise OrdiscoError(f"cannot write {self.logs}: {error.strerror or error}") from error
        except Exception as error:  # submitit's own: what sbatch has said is in its words
            said = [line for line in str(error).splitlines() if "sbatch" in line] or [repr(error)]
            raise OrdiscoError(f"Slurm did not take the job: {readable(said[-1])}") from error
        return Array(tasks[0].job_id.split("_")[0], list(zip(jobs, told, strict=True)))

    def executor(self, jobs: Sequence[Job], at_once: int | None) -> Any:
        """Submitit's, with what the runs need."""
        try:
            import submitit
        except ModuleNotFoundError:
            raise OrdiscoError("submitit is not installed: pip install 'ordisco[slurm]'") from None
        if shutil.which("sbatch") is None:
            raise OrdiscoError("there is no Slurm here: `sbatch` is not found; give the command on a login node")
        needs = [job.needs for job in jobs]
        gpus = max(need.gpus for need in needs)
        if gpus != int(gpus):
            raise UsageError(f"run_gpus = {gpus:g} is not allowed: Slurm gives whole GPUs")
        executor = submitit.AutoExecutor(folder=self.logs, cluster="slurm")
        executor.update_parameters(
            name="ordisco",
            timeout_min=max(1, round(self.hours * 60)),
            cpus_per_task=max(need.cpus for need in needs),
            slurm_mem=f"{-(-max(need.memory for need in needs) // 2**20)}M",
            slurm_array_parallelism=at_once or len(jobs),
            stderr_to_stdout=True,
            slurm_additional_parameters={"requeue": True, **self.more},
            **({"gpus_per_node": int(gpus)} if gpus else {}),
        )
        return executor


class Array:
    """An array job that was submitted: each job, and the file of what its run tells."""

    def __init__(self, number: str, tasks: Sequence[tuple[Job, Path]]) -> None:
        self.number, self.tasks = number, tasks

    def follow(self, ends: Ends, board: Board, stop: StopRequest, again: bool) -> list[Job]:
        """Show what is told until all have ended; the jobs to submit again, whose tasks were lost."""
        read = {job.name: 0 for job, _ in self.tasks}
        left, lost, asked, at = list(self.tasks), [], False, time.monotonic()
        while left:
            time.sleep(LOOK_SECONDS)
            if stop.reason is not None and not asked:
                asked = True
                subprocess.run(["scancel", self.number], capture_output=True, check=False)
            gone = False
            if time.monotonic() - at > ASK_SECONDS:
                gone, at = not self.queued(), time.monotonic()
            for job, told in list(left):
                end, read[job.name] = passed_on(board, job, told, read[job.name])
                if end is None and not gone:
                    continue
                left.remove((job, told))
                if asked or (end is not None and end.kind != "stopped"):
                    note(ends, board, job, end or End("stopped"))
                elif again or end is not None:
                    why = "lost" if end is None else "its time was over"
                    board.row(job.name).message(f"{why}, submitted again to go on from its last checkpoint")
                    lost.append(job)
                else:
                    note(ends, board, job, End("failed", f"lost {ATTEMPTS} times (see {told.parent})"))
        return lost

    def queued(self) -> bool:
        """Does Slurm still have tasks of it, waiting, running or about to be made again?"""
        asked = subprocess.run(["squeue", "-h", "-j", self.number], capture_output=True, text=True, check=False)
        if asked.returncode:  # not known any more, or Slurm does not answer
            return "Invalid job id" not in asked.stderr
        return bool(asked.stdout.strip())


def passed_on(board: Board, job: Job, told: Path, start: int) -> tuple[End | None, int]:
    """Show what was told since `start`; how the job ended, if it has, and how far was read."""
    try:
        with told.open("rb") as file:
            file.seek(start)
            text = file.read()
    except FileNotFoundError:
        return None, start
    whole = text[: text.rfind(b"\n") + 1]
    end = None
    for line in whole.splitlines():
        event = json.loads(line)
        if event["call"] == END:
            end = End(*event["arguments"])
        else:
            show(board.row(job.name), event["call"], event["arguments"])
    return end, start + len(whole)


def make_in_task(job: Job, told: str) -> None:
    """The task: have a process on this node make the run; Slurm's signals have it saved."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    for number in (signal.SIGTERM, signal.SIGUSR2):  # scancel; the time is nearly over
        signal.signal(number, ask)
    maker = Maker(LEASE)
    with open(told, "ab", buffering=0) as file:

        def tell(call: str, arguments: list[Any]) -> None:
            file.write(json.dumps({"call": call, "arguments": arguments}).encode() + b"\n")

        try:
            end = maker.surely(job, tell, lambda: asked)
        finally:
            maker.close()
        tell(END, [end.kind, end.reason])
    print(f"{job.name}: {end.kind} {end.reason}", flush=True)
