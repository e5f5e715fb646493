"""The numbers that the paper prints, read from `numbers.toml`: tables, what the text quotes, contradictions."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

Value = float | str


@dataclass(frozen=True)
class Quote:
    """A number of the text or of a caption; the difference of two rows of a table where these are named.

    `of` judge: how good the judge of generated images is.
    """

    item: str
    where: str
    what: str
    value: float
    unit: str = "%"
    table: str | None = None
    panel: str | None = None
    column: str | None = None
    of: str | None = None
    less: str | None = None


@dataclass(frozen=True)
class Printed:
    """A block of a table: its columns, and its rows by name."""

    columns: tuple[str, ...]
    rows: dict[str, tuple[Value, ...]]

    def cell(self, row: str, column: str) -> Value | None:
        """What the paper prints there, None if nothing."""
        if row not in self.rows or column not in self.columns:
            return None
        return self.rows[row][self.columns.index(column)]


@functools.cache
def content() -> dict[str, Any]:
    """The whole file."""
    return tomllib.loads(files("ordisco.paper").joinpath("numbers.toml").read_text(encoding="utf-8"))


@functools.cache
def printed() -> dict[str, dict[str, Printed]]:
    """Every table by name, every block of it by name."""
    tables = {name: values for name, values in content().items() if name.startswith("table-")}
    return {
        name: {
            panel["name"]: Printed(tuple(panel["columns"]), {row: tuple(cells) for row, cells in panel["rows"].items()})
            for panel in values["panels"]
        }
        for name, values in tables.items()
    }


def caption(item: str) -> str | None:
    """What the table is called here, after the paper's caption; None for a figure."""
    found = content().get(item)
    return None if found is None else str(found["caption"])


def quotes(item: str | None = None) -> list[Quote]:
    """What the text says in numbers, of one item or of all."""
    found = [Quote(**values) for values in content()["quoted"]]
    return [quote for quote in found if item in (None, quote.item)]


def contradictions(item: str | None = None) -> list[str]:
    """Where the paper contradicts itself, in one item or in all."""
    return [str(row["what"]) for row in content()["contradictions"] if item is None or item in row["items"]]
