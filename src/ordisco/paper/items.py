"""The tables and figures as data: an item has panels, a panel has lines, a line is a method on a stream."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Literal, get_args

from ordisco.errors import UsageError, shown
from ordisco.settings.methods import METHODS, method

Kind = Literal["table", "search", "curves", "complexity", "samples", "coverage"]
Measure = Literal["accuracy", "judged", "best"]
DATA = ("svhn", "cifar10", "tiny-imagenet")  # the paper's data sets


@dataclass(frozen=True)
class Line:
    """A method on one of the paper's streams, with changes of settings: a run for each seed."""

    method: str
    stream: str
    changes: tuple[tuple[str, Any], ...] = ()
    plain: bool = False
    judged: bool = False


@dataclass(frozen=True)
class Entry:
    """What is compared under one name: a line, or several of which the best is shown.

    `row` is its name in the paper's table, `name` the one that is shown.
    """

    row: str
    name: str
    lines: tuple[Line, ...]
    column: str | None = None  # of a search, whose columns are lines of their own


@dataclass(frozen=True)
class Panel:
    """A block of an item: its entries on one stream."""

    name: str
    stream: str
    entries: tuple[Entry, ...]
    image_class: str | None = None  # the class that is drawn, where one is

    @property
    def rows(self) -> dict[str, list[Entry]]:
        """The entries of each row."""
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.row, []).append(entry)
        return found


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper."""

    name: str
    title: str
    kind: Kind
    panels: tuple[Panel, ...]
    measure: Measure = "accuracy"
    at: tuple[int, ...] = ()  # increments of the paper's stream
    points: str | None = None
    data: str | None = None  # the one data set of the paper that is asked for

    @property
    def file(self) -> str:
        """`table-3`, or `table-3-svhn` where only this data set's panels are asked for."""
        return self.name if self.data is None else f"{self.name}-{self.data}"

    @property
    def word(self) -> str:
        """`Table 3`."""
        kind, _, number = self.name.partition("-")
        return f"{kind.capitalize()} {number}"

    @property
    def lines(self) -> Iterator[Line]:
        """All lines that the item needs."""
        for panel in self.panels:
            for entry in panel.entries:
                yield from entry.lines


@functools.cache
def content() -> dict[str, Any]:
    """The whole file."""
    return tomllib.loads(files("ordisco.paper").joinpath("items.toml").read_text(encoding="utf-8"))


@functools.cache
def items() -> dict[str, Item]:
    """Every item by its name, tables first."""
    return {name: item_of(name, values) for name, values in content()["items"].items()}


def chosen(names: Iterable[str]) -> list[Item]:
    """The items of these names, `all` for all, each once; an unknown name is told with the nearest ones."""
    found: dict[str, Item] = {}
    for name in names:
        if name == "all":
            found |= items()
        elif name in items():
            found[name] = items()[name]
        elif name == "figure-3":
            raise UsageError(
                "item = 'figure-3' is not allowed: Fig. 3 is a drawing of the method, there is nothing to make"
            )
        else:
            near = difflib.get_close_matches(name.lower().replace("fig-", "figure-"), items(), n=3, cutoff=0.5)
            there = f"did you mean {' or '.join(near)}?" if near else f"all, or one of {', '.join(items())}"
            raise UsageError(f"item = {shown(name)} is not allowed: {there}")
    return list(found.values())


def on_data(chosen: Iterable[Item], data: str | None) -> list[Item]:
    """The items with only those of their panels that the paper has on a data set; all of them for None."""
    if data is None:
        return list(chosen)
    asked = list(chosen)
    panels = {item.name: tuple(panel for panel in item.panels if data_of(panel.stream) == data) for item in asked}
    found = [replace(item, panels=panels[item.name], data=data) for item in asked if panels[item.name]]
    if not found:
        raise UsageError(f"data = {shown(data)} is not allowed: {', '.join(panels)} has nothing on it in the paper")
    return found


def data_of(stream: str) -> str:
    """The data set of one of the paper's streams, by its name here.

    >>> data_of("SVHN-1, New Class"), data_of("CIFAR10-5"), data_of("Tiny-ImageNet-5, 10 classes, 32×32")
    ('svhn', 'cifar10', 'tiny-imagenet')
    """
    return next(name for name in DATA if stream.lower().startswith(name))


def increments_of(stream: str) -> int:
    """The increments of one of the paper's streams."""
    return int(content()["streams"][stream])


# ---------------------------------------------------------------------- reading


def item_of(name: str, values: Mapping[str, Any]) -> Item:
    """An item made of its table in the file."""
    if values["kind"] not in get_args(Kind):
        raise UsageError(f"{name}: kind = {shown(values['kind'])} is not allowed: one of {', '.join(get_args(Kind))}")
    entries = searched if values["kind"] == "search" else listed
    panels = tuple(
        Panel(panel["name"], panel["stream"], tuple(entries(values, panel)), panel.get("class"))
        for panel in values["panels"]
    )
    return Item(
        name,
        values["title"],
        values["kind"],
        panels,
        values.get("measure", "accuracy"),
        tuple(values.get("at", ())),
        values.get("points"),
    )


def listed(values: Mapping[str, Any], panel: Mapping[str, Any]) -> Iterator[Entry]:
    """An entry for each row of the item."""
    for row in values["rows"]:
        given = {"method": row, "name": row} if isinstance(row, str) else row
        loss = given.get("loss", panel.get("loss"))
        chosen = method(given["method"])
        grid = content()["grids"].get(chosen.penalty, ()) if values.get("best") else ()
        changes: list[dict[str, Any]] = [{"c_penalty": value} for value in grid] or [{}]
        lines = tuple(line_of(values, panel["stream"], chosen.name, loss, change) for change in changes)
        name = chosen.title if given["name"] in METHODS else given["name"]
        yield Entry(given["name"], name, lines)


def searched(values: Mapping[str, Any], panel: Mapping[str, Any]) -> Iterator[Entry]:
    """An entry for each λ and loss."""
    for strength in content()["grids"][method(panel["method"]).penalty]:
        for loss in values["losses"]:
            line = line_of(values, panel["stream"], panel["method"], loss, {"c_penalty": strength})
            yield Entry(f"{strength:g}", f"λ = {strength:g}", (line,), loss)


def line_of(values: Mapping[str, Any], stream: str, name: str, loss: str | None, changes: Mapping[str, Any]) -> Line:
    """A line of the item."""
    more = {} if loss is None else {"unlabeled_loss": content()["losses"][loss]}
    judged = values.get("judged", False) and method(name).gan
    return Line(name, stream, tuple({**more, **changes}.items()), values.get("plain", False), judged)
