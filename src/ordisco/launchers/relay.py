"""The child's side: what a run tells whoever has started it, and how it learns that it should stop.

A process writes a line of JSON to its standard output for every call of its display. It reads jobs, a line of JSON
each, from its standard input. When that input ends, it saves its run and stops: the parent closes it when it is asked
to stop, and the system does when the parent has died.
"""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from ordisco.evaluation.record import IncrementRecord
from ordisco.report.terminal import Display, PlainDisplay, Steps
from ordisco.runs.signals import StopRequest

CALLS = ("start", "step", "increment_done", "message")
END = "end"  # told when a job has ended, with its exit code and, unless that is 0, a line


class Relay(PlainDisplay):
    """Tells the parent what a display is told."""

    def start(self, title: str, increments: int, steps: Steps, done_steps: int = 0) -> None:
        """A run begins or goes on."""
        self.tell("start", title, increments, steps, done_steps)

    def step(self, increment: int, step: int, losses: Mapping[str, float], images_per_second: float) -> None:
        """So many steps of the increment are done."""
        self.tell("step", increment, step, losses, images_per_second)

    def increment_done(self, record: IncrementRecord) -> None:
        """An increment is learned and evaluated."""
        self.tell("increment_done", record.to_dict())

    def message(self, text: str) -> None:
        """Something that stays."""
        self.tell("message", text)

    def tell(self, call: str, *arguments: Any) -> None:
        """A line of JSON."""
        super().message(json.dumps({"call": call, "arguments": arguments}))


def show(display: Display, call: str, arguments: list[Any]) -> None:
    """Show what a child has told."""
    if call == "increment_done":
        display.increment_done(IncrementRecord.from_dict(arguments[0]))
    elif call in CALLS:
        getattr(display, call)(*arguments)


class Parent:
    """The process that has started this one, at the other end of a descriptor: jobs, then the wish to stop."""

    def __init__(self, descriptor: int = 0) -> None:
        self.descriptor = descriptor
        self.gone = False
        self._stop: StopRequest | None = None
        self._jobs: queue.Queue[list[str] | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def jobs(self) -> Iterator[list[str]]:
        """The words of each job, until there are no more."""
        while (words := self._jobs.get()) is not None:
            yield words

    def stops(self, stop: StopRequest) -> None:
        """Have the run under way stopped when the parent wishes."""
        self._stop = stop
        if self.gone:
            self._ask()

    def _listen(self) -> None:
        rest = b""
        while piece := os.read(self.descriptor, 1 << 16):  # not sys.stdin, whose lock Python wants when it ends
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._jobs.put(json.loads(line))
        self.gone = True
        self._ask()
        self._jobs.put(None)

    def _ask(self) -> None:
        if self._stop is not None:
            self._stop.reason = self._stop.reason or "the program that started it"
