"""Runs side by side, each in a process of its own.

The parent starts the processes and shows what they report: each writes a line of JSON to its standard output for
every call of its display. When its standard input ends, a process saves its run and stops. The parent closes that
input when it is asked to stop; the system closes it when the parent has died.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from ordisco.evaluation.record import IncrementRecord
from ordisco.report.board import Board
from ordisco.report.terminal import Display, PlainDisplay, Steps
from ordisco.runs.signals import StopRequest, signal_name

LOOK_SECONDS = 0.2  # between two looks for a signal
PATIENCE = 30.0  # seconds for a process to save its state when the parent fails
AS_ASKED = (0, 130, -1, -2, -15)  # how a child may end that was asked to: a signal's number is that of its start-up
CALLS = ("start", "step", "increment_done", "message")


# ---------------------------------------------------------------------- the parent's side


@dataclass(frozen=True)
class Job:
    """A run to be made by a process of its own."""

    name: str
    command: Sequence[str]


@dataclass
class Ends:
    """How the jobs ended: what went wrong by name, and whether and by what all were asked to stop."""

    failures: dict[str, str] = field(default_factory=dict)
    stopped_by: str | None = None


def run_jobs(jobs: Sequence[Job], at_once: int, board: Board) -> Ends:
    """Make all runs, so many at once; one that fails leaves the others alone.

    A signal stops all, each after the step under way and saved; a second one at once (KeyboardInterrupt).
    """
    waiting, ends = list(jobs), Ends()
    news: queue.Queue[tuple[_Process, dict[str, Any] | None]] = queue.Queue()
    running: list[_Process] = []
    with StopRequest() as stop:
        try:
            while running or (waiting and stop.reason is None):
                while waiting and len(running) < at_once and stop.reason is None:
                    running.append(_Process(waiting.pop(0), news))
                if stop.reason is not None:
                    for process in running:
                        process.ask_to_stop()
                with contextlib.suppress(queue.Empty):
                    process, event = news.get(timeout=LOOK_SECONDS)
                    if event is not None:
                        tell(board.row(process.job.name), event["call"], event["arguments"])
                        continue
                    running.remove(process)
                    board.remove(process.job.name)
                    failure = process.failure(stopping=stop.reason is not None)
                    if failure is not None:
                        ends.failures[process.job.name] = failure
                        board.row(process.job.name).message(f"failed: {failure}")
        except KeyboardInterrupt:
            for process in running:
                process.child.kill()
            raise
        finally:
            for process in running:
                process.close()
        ends.stopped_by = stop.reason
    return ends


def tell(display: Display, call: str, arguments: list[Any]) -> None:
    """Show what a child has told."""
    if call == "increment_done":
        display.increment_done(IncrementRecord.from_dict(arguments[0]))
    else:
        getattr(display, call)(*arguments)


class _Process:
    """A child with a thread that reads what it tells."""

    def __init__(self, job: Job, news: queue.Queue[tuple[_Process, dict[str, Any] | None]]) -> None:
        self.job, self.news = job, news
        self.complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.child = subprocess.Popen(
            job.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.complaints,
        )
        self.listener = threading.Thread(target=self._listen, daemon=True)
        self.listener.start()

    def _listen(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):  # something else that printed
                    event = json.loads(line)
                    if isinstance(event, dict) and event.get("call") in CALLS:
                        self.news.put((self, event))
        self.child.wait()
        self.news.put((self, None))

    def ask_to_stop(self) -> None:
        """End its input."""
        assert self.child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()

    def failure(self, stopping: bool) -> str | None:
        """What went wrong, in one line; warnings, and the traceback of a fault of the program, are passed on."""
        self.ask_to_stop()
        code = self.child.wait()
        self.complaints.seek(0)
        lines = [line for line in self.complaints.read().decode(errors="replace").splitlines() if line]
        self.complaints.close()
        if stopping and code in AS_ASKED:
            return None
        told = lines.pop() if code and lines and lines[-1].startswith("ordisco: ") else None
        for line in lines:
            print(line, file=sys.stderr, flush=True)
        if code == 0:
            return None
        if told is not None:
            return told.removeprefix("ordisco: ").removeprefix("error: ")
        return f"ended by {signal_name(-code)}" if code < 0 else (lines or [f"exit code {code}"])[-1]

    def close(self) -> None:
        """Whatever happened here: let it save its state, and see it end."""
        self.ask_to_stop()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()
        self.listener.join()
        self.complaints.close()


# ---------------------------------------------------------------------- the child's side


class Relay(PlainDisplay):
    """Tells the parent what a display is told."""

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """A run begins or goes on."""
        self._tell("start", title, increments, steps, done_steps)

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """So many steps of the increment are done."""
        self._tell("step", increment, step, losses, images_per_second)

    def increment_done(self, record: IncrementRecord) -> None:
        """An increment is learned and evaluated."""
        self._tell("increment_done", record.to_dict())

    def message(self, text: str) -> None:
        """Something that stays."""
        self._tell("message", text)

    def _tell(self, call: str, *arguments: Any) -> None:
        super().message(json.dumps({"call": call, "arguments": arguments}))


def stop_with_parent(stop: StopRequest, descriptor: int = 0) -> None:
    """Note the end of standard input, in a thread, as a request to stop."""

    def wait() -> None:
        while os.read(descriptor, 1):  # not sys.stdin, whose lock Python wants when it ends
            pass
        stop.reason = stop.reason or "the program that started it"

    threading.Thread(target=wait, daemon=True).start()
