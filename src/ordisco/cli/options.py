"""Command-line options made from settings dataclasses, with one-line errors and exit code 2."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable
from typing import Any, NoReturn

from ordisco.errors import UsageError
from ordisco.fields import Settings, allowed, value_type


class Parser(argparse.ArgumentParser):
    """An argparse parser that raises `UsageError` instead of printing its usage and exiting."""

    def error(self, message: str) -> NoReturn:
        """Turn argparse's complaint into one line that also says where the help is."""
        raise UsageError(f"{message} (see {self.prog} --help)")


def flag(name: str) -> str:
    """`labels_per_class` → `--labels-per-class`."""
    return "--" + name.replace("_", "-")


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Settings],
    default: str = "default",
    note: str | None = None,
    skip: Iterable[str] = (),
) -> None:
    """One option a field; one that is not given leaves the field to the stream, the preset or the default."""
    title = cls.__doc__.splitlines()[0].rstrip(".") if cls.__doc__ else cls.__name__
    group = parser.add_argument_group(title, note)
    for field in dataclasses.fields(cls):
        if field.name in skip or not field.metadata:
            continue
        kind, _ = value_type(cls, field.name)
        text, choices = described(field, default), field.metadata["choices"]
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


def described(field: dataclasses.Field[Any], default: str) -> str:
    """The help text of a field with its range and, under the given name, its default."""
    notes = []
    if field.metadata["low"] is not None or field.metadata["high"] is not None:
        notes.append(allowed(field))
    if field.default is not None:
        value = {True: "on", False: "off"}[field.default] if isinstance(field.default, bool) else field.default
        notes.append(f"{default}: {value}")
    text = field.metadata["help"] + (f" ({'; '.join(notes)})" if notes else "")
    return text.replace("%", "%%")


def given(args: argparse.Namespace, cls: type[Settings]) -> dict[str, Any]:
    """The fields of `cls` that were given on the command line."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in vars(args).items() if name in names}
