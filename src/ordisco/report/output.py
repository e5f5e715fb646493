"""Standard output and standard error that never end a run: what cannot be printed is left out.

A character that the terminal lacks, or a file's name that is not UTF-8, is printed as an escape. A stream that is
closed, full or without a reader becomes silent.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class Output:
    """A text stream that swallows its own failure, and remembers the first in `failure`."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream: TextIO = stream if stream is not None else open(os.devnull, "w")  # noqa: SIM115
        self.failure: OSError | None = None
        self._silent = False
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self.stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]

    def write(self, text: str) -> int:
        """Print it, if that is still possible."""
        self._attempt(lambda: self.stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Have everything printed, if that is still possible."""
        self._attempt(self.stream.flush)

    def isatty(self) -> bool:
        """Is it a terminal? One that is closed is none."""
        try:
            return self.stream.isatty()
        except ValueError:
            return False

    def _attempt(self, action: Any) -> None:
        if self._silent:
            return
        try:
            action()
        except OSError as error:
            self.failure, self._silent = error, True
            with contextlib.suppress(OSError, ValueError):  # what Python still holds goes nowhere when it ends
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.stream.fileno())
                os.close(nowhere)
        except ValueError:  # closed by the program that called this one
            self._silent = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guarded(stream: TextIO | None) -> TextIO:
    """The stream as an `Output`, unless it is one."""
    return stream if isinstance(stream, Output) else Output(stream)  # type: ignore[return-value]


@contextlib.contextmanager
def guarded_streams() -> Iterator[Output]:
    """Guard both standard streams, and give the first."""
    keep_descriptors()
    before = sys.stdout, sys.stderr
    output, errors = Output(sys.stdout), Output(sys.stderr)
    sys.stdout, sys.stderr = output, errors
    try:
        yield output
    finally:
        output.flush()
        errors.flush()
        sys.stdout, sys.stderr = before


def keep_descriptors() -> None:
    """Fill closed standard descriptors, so that no file of a run gets their numbers and what a library prints."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
