"""Ctrl-C and a cluster's SIGTERM: noted at once, obeyed after the step under way."""

from __future__ import annotations

import signal
from types import TracebackType
from typing import Any, Self

from ordisco.errors import OrdiscoError

SIGNALS = {"SIGINT": "Ctrl-C", "SIGTERM": "SIGTERM", "SIGHUP": "the end of its terminal"}


def signal_name(number: int) -> str:
    """SIGILL for 4; real-time signals have a number only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def leave_interrupts_to_parent() -> None:
    """The terminal sends Ctrl-C to all its processes, Slurm its warnings; in a run's own process the parent decides."""
    for name in ("SIGINT", "SIGUSR1", "SIGUSR2"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


class Interrupted(OrdiscoError):
    """The run was asked to stop; its state is saved."""

    exit_code = 130


class StopRequest:
    """Notes a signal that asks to stop, while it is entered; a second one interrupts at once.

    What the parent process has switched off (nohup, a shell's background job) stays off.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for name in SIGNALS:
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is None or signal.getsignal(number) == signal.SIG_IGN:
                continue
            try:
                self._old[number] = signal.signal(number, self._note)
            except ValueError:  # not in the main thread: the caller handles signals
                return self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)
        self._old.clear()

    def _note(self, number: int, frame: object) -> None:
        if self.reason is not None:
            raise KeyboardInterrupt
        self.reason = SIGNALS[signal.Signals(number).name]
