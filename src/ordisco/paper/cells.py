"""Tables: a column for each increment, or for each loss of a search; ours beside the paper's, cell by cell."""

from __future__ import annotations

import statistics
from typing import Any

from ordisco.paper.items import Entry, Item, Measure, Panel
from ordisco.paper.numbers import Printed, printed
from ordisco.paper.order import order_of
from ordisco.paper.place import Found
from ordisco.studies.results import Result

Body = dict[str, Any]


def table(item: Item, found: Found) -> list[Body]:
    """The panels of a table whose columns are increments; columns without one are the paper's alone."""
    panels = []
    for panel in item.panels:
        known = printed()[item.name][panel.name]
        increments = [found.plan.increment(panel.stream, at) for at in item.at]
        columns = dict(zip(known.columns, [*increments, *[None] * len(known.columns)], strict=False))
        rows = []
        for entry in panel.entries:
            cells = [cell(entry, found, known, item.measure, name, at) for name, at in columns.items()]
            rows.append({"name": entry.name, "row": entry.row, "cells": cells})
        panels.append(panel_of(panel, found, known.columns, rows))
    return panels


def search(item: Item, found: Found) -> list[Body]:
    """The panels of a search: every cell is a line of its own."""
    panels = []
    for panel in item.panels:
        known = printed()[item.name][panel.name]
        rows = []
        for row, entries in panel.rows.items():
            cells = [cell(entry, found, known, item.measure, str(entry.column)) for entry in entries]
            rows.append({"name": entries[0].name, "row": row, "cells": cells})
        panels.append(panel_of(panel, found, known.columns, rows))
    return panels


def cell(entry: Entry, found: Found, known: Printed, measure: Measure, column: str, increment: int | None = -1) -> Body:
    """The paper's percentage and our shares by seed; `increment` None: the paper's alone, −1: no one increment."""
    results = {} if increment is None else found.of(entry.lines[0])
    values = {seed: measured(result, measure, increment or 0) for seed, result in results.items()}
    return {
        "paper": known.cell(entry.row, column),
        "ours": {str(seed): value for seed, value in values.items() if value is not None},
        "increment": increment if increment != -1 else None,
    }


def measured(result: Result, measure: Measure, increment: int) -> float | None:
    """One number of a run."""
    if measure == "best":
        return float(max(result["accuracies"]))
    values = result["accuracies" if measure == "accuracy" else "generated_accuracies"]
    value = values[min(increment, len(values)) - 1]
    return None if value is None else float(value)


def panel_of(panel: Panel, found: Found, columns: tuple[str, ...], rows: list[Body]) -> Body:
    """A block with its rows, and whether the paper's order holds in each column."""
    orders = []
    for place, column in enumerate(columns):
        cells = {row["row"]: row["cells"][place] for row in rows}
        ours = {name: statistics.fmean(c["ours"].values()) for name, c in cells.items() if c["ours"]}
        paper = {name: c["paper"] for name, c in cells.items() if c["paper"] is not None}
        order = order_of(column, paper, ours) if len(ours) == len(rows) else None
        if order is not None:
            orders.append(order.to_dict())
    return {
        "name": panel.name,
        "judge": judges_of(panel, found),
        "ours": found.stream_of(panel.entries[0].lines[0]),
        "columns": list(columns),
        "rows": rows,
        "order": orders,
    }


def judges_of(panel: Panel, found: Found) -> dict[str, float]:
    """By seed, how much of the test images the judge of the panel's images gets right; empty where none judges."""
    judged = [line for entry in panel.entries for line in entry.lines if line.judged]
    results = {seed: result for line in judged for seed, result in found.of(line).items()}
    accuracies = {seed: result.get("judge_accuracy") for seed, result in sorted(results.items())}
    return {str(seed): value for seed, value in accuracies.items() if value is not None}
