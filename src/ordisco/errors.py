"""The one error that a user's mistake raises: a single line that says what, where and what to do."""

from __future__ import annotations

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
SHOWN = 80  # characters of a value that an error repeats
LONGEST_LINE = 16_384


def shown(value: object) -> str:
    """A value as an error repeats it: quoted, and only the beginning of a long one."""
    if isinstance(value, str) and len(value) > SHOWN:
        return f"{value[:SHOWN]!r}… ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def one_line(text: str) -> str:
    """A message as it is printed: control characters escaped, so that it stays one line and cannot steer a terminal."""
    text = CONTROL.sub(lambda found: repr(found[0])[1:-1], text)
    return text if len(text) <= LONGEST_LINE else text[:LONGEST_LINE] + "…"


class OrdiscoError(Exception):
    """A mistake in the input, the settings or the surroundings, told in one line.

    The command line prints it without a traceback and exits with `exit_code`.
    """

    exit_code = 1


class UsageError(OrdiscoError):
    """A wrong option or setting: the message names the field and the allowed values."""

    exit_code = 2


class OrdiscoWarning(UserWarning):
    """Something the user should know though the work goes on, told in one line."""
