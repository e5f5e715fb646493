"""The one error that a user's mistake raises: a single line that says what, where and what to do."""

from __future__ import annotations

import re

LONGEST_WORD, LONGEST_LINE = 400, 2000  # characters of a message; the middle of what is longer is left out
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # what no name of a setting's value may have
SHOWN = 80  # characters of a value that an error repeats


def shown(value: object) -> str:
    """A value as an error repeats it: quoted, and only the beginning of a long one."""
    if isinstance(value, str) and len(value) > SHOWN:
        return f"{value[:SHOWN]!r}… ({len(value):,} characters)"
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def one_line(text: str) -> str:
    """The text with everything that is not printable escaped, such as a newline or a colour code in a file's name."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def readable(text: object) -> str:
    """One line, in which long names and what is too long as a whole are shortened in the middle."""
    line = re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: _cut(word[0], LONGEST_WORD), one_line(str(text)))
    return _cut(line, LONGEST_LINE)


def _cut(text: str, length: int) -> str:
    half = (length - 1) // 2
    return text if len(text) <= length else f"{text[:half]}…{text[-half:]}"


class OrdiscoError(Exception):
    """A mistake in the input, the settings or the surroundings, told in one line.

    The command line prints it without a traceback and exits with `exit_code`.
    """

    exit_code = 1

    def __str__(self) -> str:
        return readable(super().__str__())


class UsageError(OrdiscoError):
    """A wrong option or setting: the message names the field and the allowed values."""

    exit_code = 2


class OrdiscoWarning(UserWarning):
    """Something the user should know though the work goes on, told in one line."""

    def __str__(self) -> str:
        return readable(super().__str__())
