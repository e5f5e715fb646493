"""Command-line options made from settings dataclasses, with one-line errors and exit code 2."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ordisco.errors import CONTROL, SHOWN, UsageError, shown
from ordisco.settings.fields import Settings, allowed, choices_of, fault_of_path, value_type

LONG_WORD = re.compile(rf"\S{{{2 * SHOWN},}}")


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` instead of printing its usage and exiting.

    Options are written out, and given once: argparse by itself takes any beginning of a name, and of an option that
    is given twice silently the last.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})
        self._given: set[argparse.Action] = set()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, with nothing given yet."""
        self._given = set()
        return super().parse_known_args(args, namespace)

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Called once for each time that an option stands on the command line."""
        if action.option_strings and action in self._given and not isinstance(action, argparse._AppendAction):
            raise argparse.ArgumentError(action, "given more than once")
        if action.option_strings and arg_strings == ["--"]:  # from --option=--, of which argparse makes an empty list
            raise argparse.ArgumentError(action, "'--' is no value")
        self._given.add(action)
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into one line that also says where the help is."""
        short = LONG_WORD.sub(lambda found: f"{found[0][:SHOWN]}… ({len(found[0]):,} characters)", message)
        raise UsageError(f"{short} (see {self.prog} --help)")


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse control characters before anything is made of them: no name, path or number has any."""
    for text in arguments:
        if CONTROL.search(text):
            raise UsageError(f"argument {shown(text)} is not allowed: a text without control characters")


def path(text: str) -> Path:
    """The type of an option that names a file or folder."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text names no file or folder")
    if fault := fault_of_path(text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not allowed: {fault}")
    return Path(text)


def check_ranges(args: argparse.Namespace, **ranges: tuple[int, int]) -> None:
    """Refuse whole numbers that are out of their range; an option that was not given has none."""
    for name, (low, high) in ranges.items():
        value = getattr(args, name, None)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} = {shown(value)} is not allowed: from {low} to {high}")


def flag(name: str) -> str:
    """`labels_per_class` → `--labels-per-class`."""
    return "--" + name.replace("_", "-")


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Settings],
    default: str = "default",
    note: str | None = None,
    only: Sequence[str] = (),
) -> None:
    """One option a field; one that is not given leaves the field to the stream, the preset or the default."""
    title = cls.__doc__.splitlines()[0].rstrip(".") if cls.__doc__ else cls.__name__
    group = parser.add_argument_group(title, note)
    for field in dataclasses.fields(cls):
        if not field.metadata or (only and field.name not in only):
            continue
        kind, _ = value_type(cls, field.name)
        text, choices = described(cls, field, default), choices_of(cls, field.name) or None
        if kind is bool:
            group.add_argument(
                flag(field.name), action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text
            )
        else:
            group.add_argument(
                flag(field.name),
                type=kind,
                choices=choices,
                default=argparse.SUPPRESS,
                metavar=None if choices else kind.__name__.upper(),
                help=text,
            )


def described(cls: type, field: dataclasses.Field[Any], default: str) -> str:
    """The help text of a field with its range and, under the given name, its default."""
    notes = []
    if field.metadata["low"] is not None or field.metadata["high"] is not None:
        notes.append(allowed(cls, field))
    if field.default is not None:
        value = {True: "on", False: "off"}[field.default] if isinstance(field.default, bool) else field.default
        notes.append(f"{default}: {value}")
    text: str = field.metadata["help"] + (f" ({'; '.join(notes)})" if notes else "")
    return text.replace("%", "%%")


def given(args: argparse.Namespace, cls: type[Settings]) -> dict[str, Any]:
    """The fields of `cls` that were given on the command line."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in vars(args).items() if name in names}
