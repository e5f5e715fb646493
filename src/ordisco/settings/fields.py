"""Settings are frozen dataclasses whose fields carry a help text, a type and a range.

One declaration serves the check, the command line (`ordisco.cli.options`) and the TOML file of a run.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from dataclasses import dataclass
from typing import Any

from ordisco.errors import CONTROL, UsageError, shown

LONGEST = 4_096  # characters of a text, as many as a path may have
LONGEST_NAME, MOST_NAMES = 255, 200  # bytes of a file's name; names in a path
MOST_SEED = 2**32 - 1  # what numpy's generator takes


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    longest: int = LONGEST,
) -> Any:
    """A dataclass field with its help text and the values it allows: a closed range, or a text so long.

    A choice is a `Literal` type.
    """
    metadata = {"help": help, "low": low, "high": high, "longest": longest}
    return dataclasses.field(default=default, metadata=metadata)


def allowed(cls: type, field: dataclasses.Field[Any]) -> str:
    """The allowed values of a field in words, as shown in help texts and errors."""
    if choices := choices_of(cls, field.name):
        return "one of " + ", ".join(choices)
    low, high = field.metadata.get("low"), field.metadata.get("high")
    if low is not None and high is not None:
        return f"from {low} to {high}"
    if low is not None:
        return f"{low} or more"
    return f"{high} or less" if high is not None else "any value"


def fault_of_text(text: str, longest: int = LONGEST) -> str | None:
    """What forbids a name or a path, in words: its length, control characters, or what UTF-8 cannot write."""
    if len(text) > longest:
        return f"at most {longest:,} characters"
    if CONTROL.search(text):
        return "a text without control characters"
    return None if text.isascii() or is_unicode(text) else "a text in UTF-8"


def fault_of_path(text: str) -> str | None:
    """What forbids a path whatever there is on the disk: its length, that of a name in it, or the number of names."""
    names = text.encode(errors="replace").split(b"/")
    if len(text) > LONGEST or len(names) > MOST_NAMES or max(map(len, names)) > LONGEST_NAME:
        return f"at most {LONGEST:,} characters, {LONGEST_NAME} for a name, {MOST_NAMES} names"
    return None


def is_unicode(text: str) -> bool:
    """Can it be written in UTF-8? What a shell gave in another encoding cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def value_type(cls: type, name: str) -> tuple[type, bool]:
    """The plain type of a field and whether it may also be None."""
    hint = _hints(cls)[name]
    if isinstance(hint, types.UnionType):
        plain = [part for part in typing.get_args(hint) if part is not types.NoneType]
        return plain[0], len(plain) < len(typing.get_args(hint))
    return str if typing.get_origin(hint) is typing.Literal else hint, False


def choices_of(cls: type, name: str) -> tuple[str, ...]:
    """The values of a field that is a choice; none for any other."""
    hint = _hints(cls)[name]
    return typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()


@dataclass(frozen=True)
class Settings:
    """Base of all settings: every value is checked for type and range when the object is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.metadata:
                self._check(field)

    def _check(self, field: dataclasses.Field[Any]) -> None:
        value = getattr(self, field.name)
        kind, optional = value_type(type(self), field.name)
        if value is None and optional:
            return
        if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
            object.__setattr__(self, field.name, value := float(value))
        low, high, choices = field.metadata["low"], field.metadata["high"], choices_of(type(self), field.name)
        right_type = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if (
            not right_type
            or (choices and value not in choices)
            or (low is not None and not value >= low)  # `not >=` also refuses NaN
            or (high is not None and not value <= high)
            or (kind is float and not math.isfinite(value))
        ):
            expected = allowed(type(self), field)
            if not (right_type or choices):
                expected = f"{kind.__name__}, {expected}"
            raise UsageError(f"{field.name} = {shown(value)} is not allowed: {expected}")
        if kind is str and (fault := fault_of_text(value, field.metadata["longest"])):
            raise UsageError(f"{field.name} = {shown(value)} is not allowed: {fault}")
