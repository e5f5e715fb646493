"""What must hold whatever is given: an exit code that means something, one line of error, no traceback, an end."""

import contextlib
import io
import signal
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest import mock

from ordisco.cli import main
from ordisco.errors import OrdiscoError

CODES = (0, 1, 2, 130)
SECONDS = 20.0  # for one command
LONGEST = 20_000  # characters of a line on standard error


class Failure(Exception):
    """Something that must not happen; the text says what."""


class TooLong(BaseException):
    """The time for a command is over; no `except Exception` holds it."""


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TooLong` in the block when the time is over."""

    def over(number: int, frame: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def no_network(*args: object, **kwargs: object) -> None:
    """In the place of a download."""
    raise OrdiscoError("cannot download: there is no network here")


def ask(argv: Sequence[str]) -> Answer:
    """Run a command in this process and hold its answer against what must hold."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch("ordisco.data.sources.fetch", no_network),
            time_limit(SECONDS),
        ):
            warnings.simplefilter("default")
            code = main(list(argv))
    except SystemExit as end:
        code = int(end.code or 0)  # --help
    except TooLong:
        raise Failure(f"no end within {SECONDS:.0f} s") from None
    except BaseException:
        raise Failure("exception\n" + traceback.format_exc(limit=-12)[-4000:]) from None
    answer = Answer(code, out.getvalue(), err.getvalue())
    check(answer, may_be_silent=list(argv[:1]) == ["data"])
    return answer


def check(answer: Answer, may_be_silent: bool = False) -> None:
    """Exit code and standard error; `ordisco data check` tells what is damaged on standard output."""
    lines = [line for line in answer.err.splitlines() if not line.startswith("ordisco: warning: ")]
    told = [line for line in lines if line.startswith("ordisco: ")]
    problems = {
        f"exit code {answer.code}": answer.code not in CODES,
        "a traceback": "Traceback" in answer.out + answer.err,
        "more than one line of error": len(lines) > 1 or len(lines) != len(told),
        "a failure without a word": answer.code != 0 and not told and not (may_be_silent and answer.out),
        "an error with exit code 0": answer.code == 0 and bool(told),
        "a line without end": any(len(line) > LONGEST for line in answer.err.splitlines()),
    }
    found = [text for text, wrong in problems.items() if wrong]
    if found:
        raise Failure(f"{', '.join(found)}: code {answer.code}, stderr {answer.err[-3000:]!r}")
