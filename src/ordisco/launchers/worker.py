"""The parent's side of a process that makes runs: one after the other, as torch takes seconds to be loaded.

A data-parallel run has a process of its own, which starts the others of the run by the same command.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any, Literal

from ordisco.launchers.base import ATTEMPTS, Job
from ordisco.launchers.relay import CALLS, END
from ordisco.runs.directory import BUSY
from ordisco.runs.signals import signal_name

PROGRAM = (sys.executable, "-m", "ordisco")
LOOK_SECONDS = 0.2  # between two looks whether to stop
PATIENCE = 30.0  # seconds for a process to save its state when the parent fails
BUSY_SECONDS = 2.0  # between two looks whether a run is still locked
STOPPED = 130  # the exit code of a run that was asked to stop
AS_ASKED = (0, STOPPED, -1, -2, -15)  # how a child may end that was asked to: a signal's number in its start-up

Tell = Callable[[str, list[Any]], None]


@dataclass(frozen=True)
class End:
    """How one attempt ended."""

    kind: Literal["done", "stopped", "failed", "lost"]
    reason: str = ""


class Worker:
    """A process that makes the jobs it is given; `alone`: it is the one job's own process."""

    def __init__(self, alone: Job | None = None) -> None:
        self.complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.read = 0  # bytes of them
        words = ("worker",) if alone is None else alone.words
        self.child = subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
        )
        self.news: queue.Queue[dict[str, Any] | None] = queue.Queue()  # None: it has ended
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # something else that printed
                    event = json.loads(line)
                    if isinstance(event, dict) and event.get("call") in (*CALLS, END):
                        self.news.put(event)
        self.child.wait()
        self.news.put(None)

    @property
    def alive(self) -> bool:
        """Can it make another job?"""
        return self.child.poll() is None and self.child.stdin is not None and not self.child.stdin.closed

    def give(self, job: Job) -> None:
        """Have it make a job."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # that it has ended is told
            self.child.stdin.write(json.dumps(job.words).encode() + b"\n")
            self.child.stdin.flush()

    def ask_to_stop(self) -> None:
        """End its input."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def said(self) -> list[str]:
        """New lines of its standard error."""
        self.complaints.seek(self.read)
        text = self.complaints.read()
        self.read += len(text)
        return [line for line in text.decode(errors="replace").splitlines() if line]

    def close(self) -> None:
        """Whatever happened here: let it save its state, and see it end."""
        self.ask_to_stop()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
        self.listener.join()
        self.complaints.close()


def make(worker: Worker, job: Job, tell: Tell, stopping: Callable[[], bool]) -> End:
    """Have a worker make a job, and tell what it tells."""
    if job.processes == 1:
        worker.give(job)
    code: int | None = None
    line = ""
    while True:
        if stopping():
            worker.ask_to_stop()
        try:
            event = worker.news.get(timeout=LOOK_SECONDS)
        except queue.Empty:
            continue
        if event is None:
            code = worker.child.wait()
            break
        if event["call"] == END:
            code, line = event["arguments"]
            break
        tell(event["call"], event["arguments"])
    lines = worker.said()
    if event is None and code and lines and lines[-1].startswith("ordisco: "):
        line = lines.pop()
    for other in lines:  # warnings, and the traceback of a fault of the program
        print(other, file=sys.stderr, flush=True)
    if stopping() and code in AS_ASKED:
        return End("done" if code == 0 and event is not None else "stopped")
    if code == 0:
        return End("done") if event is not None or job.processes > 1 else End("lost", "its process has ended")
    if code is not None and code < 0:
        return End("lost", f"ended by {signal_name(-code)}")
    reason = line or (lines or [f"exit code {code}"])[-1]
    return End("failed", reason.removeprefix("ordisco: ").removeprefix("error: "))


class Maker:
    """Makes jobs one after the other: with a worker that is kept, anew where one was lost.

    `patience`: seconds to wait for the lock of a run. A machine that was lost may hold it until its lease ends.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self.patience = patience
        self.worker: Worker | None = None

    def surely(self, job: Job, tell: Tell, stopping: Callable[[], bool]) -> End:
        """Make a job, again where its process is lost."""
        attempt, until = 1, time.monotonic() + self.patience
        while True:
            end = self.once(job, tell, stopping)
            if end.kind == "lost" and attempt < ATTEMPTS and not stopping():
                attempt += 1
                tell("message", [f"lost ({end.reason}), made again from its last checkpoint"])
                continue
            if end.kind == "failed" and end.reason.startswith(BUSY) and time.monotonic() < until and not stopping():
                time.sleep(BUSY_SECONDS)
                continue
            return End("failed", end.reason) if end.kind == "lost" else end

    def once(self, job: Job, tell: Tell, stopping: Callable[[], bool]) -> End:
        """Make a job once."""
        if job.processes > 1:
            alone = Worker(job)
            try:
                return make(alone, job, tell, stopping)
            finally:
                alone.close()
        if self.worker is None or not self.worker.alive:
            self.close()
            self.worker = Worker()
        return make(self.worker, job, tell, stopping)

    def kill(self) -> None:
        """End it at once."""
        if self.worker is not None:
            with contextlib.suppress(OSError):
                self.worker.child.kill()

    def close(self) -> None:
        """The last job is made."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None
