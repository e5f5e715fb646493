"""The deliveries of a model: a table, a curve on the terminal, the same as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordisco.report.curves import decorate
from ordisco.report.figure import INK, new_figure, save_png
from ordisco.report.table import TextTable
from ordisco.words import percent, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]
BEFORE, HOLDOUT, FORGOTTEN = "before learning", "set aside", "forgotten"
COLOURS = {BEFORE: "#0072b2", HOLDOUT: "#e69f00"}
MARKS = {BEFORE: "●", HOLDOUT: "○"}
WIDEST, LINES = 60, 10  # columns and lines of the curve on a terminal
SHIFTED = "⚠"
MOST_CLASSES = 20  # rows of the table of classes on a terminal


def curves_of(history: Sequence[Record]) -> dict[str, list[tuple[int, float]]]:
    """Delivery and accuracy, of both kinds, where they were measured."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, key in ((BEFORE, "before"), (HOLDOUT, "holdout")):
        points = [(record["delivery"], record[key]["accuracy"]) for record in history if record.get(key)]
        if points:
            found[name] = points
    return found


def deliveries_table(history: Sequence[Record], wide: bool = True) -> TextTable:
    """A row a delivery; `wide`: there is room for dates and for what was forgotten."""
    held = any(record.get("holdout") for record in history)
    aside = (HOLDOUT, FORGOTTEN) if held else ()
    header = ("delivery", "when", "images", "labelled", "new classes", "before", *aside, "shift")
    columns = [number for number, name in enumerate(header) if wide or name not in ("when", FORGOTTEN)]
    rows = [_row(record, held) for record in history]
    return TextTable(
        tuple(header[number] for number in columns), tuple(tuple(row[number] for number in columns) for row in rows)
    )


def _row(record: Record, held: bool) -> tuple[str, ...]:
    def accuracy(key: str) -> str:
        return percent(record[key]["accuracy"]) if record.get(key) else "–"

    shift = record.get("shift")
    return (
        f"{record['delivery']} {shortened(Path(str(record['source'])).name, 14)}",
        str(record["time"])[:10],
        f"{record['images']:,}",
        f"{record['labeled'] + record['held_out']:,}",
        in_short(record["new_classes"]) or "–",
        accuracy("before"),
        *((accuracy("holdout"), _forgetting(record)) if held else ()),
        "–" if not shift else f"{shift['mmd2']:.3f}{' ' + SHIFTED if shift['shifted'] else ''}",
    )


def _forgetting(record: Record) -> str:
    lost = (record.get("holdout") or {}).get("forgetting")
    return "–" if lost is None else percent(lost)


@dataclass(frozen=True)
class ClassLine:
    """What the history says of a class: its labels so far, and shares measured when it was last looked at."""

    name: str
    labels: int
    before: float | None
    aside: float | None
    forgotten: float | None

    @property
    def accuracy(self) -> float | None:
        """On images set aside, or else on the last labels before they were learned."""
        return self.before if self.aside is None else self.aside


def class_lines(history: Sequence[Record]) -> list[ClassLine]:
    """The classes in the order they came."""
    labels: dict[str, int] = {}
    before: dict[str, float] = {}
    for record in history:
        for name, count in record["labels_per_class"].items():
            labels[name] = labels.get(name, 0) + count
        before |= (record.get("before") or {}).get("per_class", {})
    last = (history[-1].get("holdout") if history else None) or {}
    aside, forgotten = last.get("per_class", {}), last.get("forgotten", {})
    return [
        ClassLine(name, count, before.get(name), aside.get(name), forgotten.get(name)) for name, count in labels.items()
    ]


def classes_table(history: Sequence[Record]) -> TextTable:
    """A row a class; of many, those that are told worst."""
    lines = class_lines(history)
    if len(lines) > MOST_CLASSES:
        lines = sorted(lines, key=lambda line: 2.0 if line.accuracy is None else line.accuracy)[:MOST_CLASSES]
    held = any(line.aside is not None for line in lines)

    def share(value: float | None) -> str:
        return "–" if value is None else percent(value)

    rows = tuple(
        (shortened(line.name, 30), f"{line.labels:,}", share(line.before))
        + ((share(line.aside), share(line.forgotten)) if held else ())
        for line in lines
    )
    return TextTable(("class", "labels so far", "before", *((HOLDOUT, FORGOTTEN) if held else ())), rows)


def in_short(names: Sequence[str], length: int = 14) -> str:
    """The names as far as there is room, or how many there are."""
    text = ", ".join(names)
    return text if len(text) <= length else f"{len(names)}"


def curve_lines(history: Sequence[Record]) -> list[str]:
    """The accuracies over the deliveries, drawn with characters; nothing before there are two points."""
    curves = curves_of(history)
    if sum(len(points) for points in curves.values()) < 2:
        return []
    last = len(history)
    step = max(1, min(6, WIDEST // last))
    width = min(WIDEST, (last - 1) * step + 1)
    grid = [[" "] * width for _ in range(LINES + 1)]
    for name, points in reversed(list(curves.items())):
        for delivery, share in points:
            column = round((delivery - 1) * (width - 1) / max(1, last - 1))
            grid[LINES - round(share * LINES)][column] = MARKS[name]
    lines = [f"{100 - 10 * number:>4} │ {''.join(row).rstrip()}" for number, row in enumerate(grid)]
    legend = "   ".join(f"{MARKS[name]} {name}" for name in curves)
    return [*lines, "     └" + "─" * (width + 1), f"       delivery 1 to {last}, accuracy in %   {legend}"]


def deliveries_figure(history: Sequence[Record], title: str) -> Figure:
    """The same as a figure; deliveries whose images had shifted are marked."""
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    curves, last = curves_of(history), len(history)
    for name, points in curves.items():
        x, y = [delivery for delivery, _ in points], [100 * share for _, share in points]
        axes.plot(x, y, color=COLOURS[name], linewidth=2, marker="o", markersize=5 if last <= 40 else 0, label=name)
        axes.annotate(f"  {y[-1]:.1f}", (x[-1], y[-1]), color=COLOURS[name], fontsize=10, va="center", weight="bold")
    moved = [record["delivery"] for record in history if record.get("shift") and record["shift"]["shifted"]]
    for number, delivery in enumerate(moved):
        label = "images unlike those before" if not number else None
        axes.axvline(delivery, color="#d55e00", linestyle=":", linewidth=1.5, zorder=0, label=label)
    axes.set_ylim(0, 101)
    axes.set_xlim(0.8, max(2, last) + 0.04 * max(2, last) + 0.2)
    decorate(axes, max(1, last), "delivery", "accuracy in %", title)
    if curves or moved:
        axes.legend(frameon=False, fontsize=10, labelcolor=INK, loc="best")
    return figure


def draw_deliveries(path: Path, history: Sequence[Record], title: str) -> None:
    """The figure as a PNG file."""
    save_png(deliveries_figure(history, title), path)
