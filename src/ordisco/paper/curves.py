"""Figures of accuracy over the increments, with the points of the paper's curves that its tables print."""

from __future__ import annotations

import re
import statistics
from typing import Any

from ordisco.paper.items import Entry, Item, Line, Panel
from ordisco.paper.numbers import printed
from ordisco.paper.order import order_of
from ordisco.paper.place import Found
from ordisco.streams.settings import name_of_increment
from ordisco.studies.results import Result


def curves(item: Item, found: Found) -> list[dict[str, Any]]:
    """The panels of a figure: a line for each method, a list of accuracies for each seed."""
    panels = []
    for panel in item.panels:
        config = found.plan.config(panel.entries[0].lines[0], 0)
        lines = [line_of(entry, item, panel, found) for entry in panel.entries]
        x_label = name_of_increment(config.stream.scenario)
        panels.append(
            {
                "name": panel.name,
                "ours": found.stream_of(panel.entries[0].lines[0]),
                "x": x_label,
                "lines": lines,
                "order": orders(lines, x_label),
            }
        )
    return panels


def orders(lines: list[dict[str, Any]], x_label: str) -> list[dict[str, Any]]:
    """Whether the paper's order holds at the increments of which its tables print two lines or more."""
    found = []
    for place in dict.fromkeys(place for line in lines for place in line["paper"]):
        known = {line["name"]: line for line in lines if place in line["paper"]}
        ours = {
            name: statistics.fmean(values[int(place) - 1] for values in line["seeds"].values())
            for name, line in known.items()
            if line["seeds"]
        }
        paper = {name: line["paper"][place] for name, line in known.items()}
        order = order_of(f"{x_label} {place}", paper, ours) if len(ours) == len(known) else None
        if order is not None:
            found.append(order.to_dict())
    return found


def line_of(entry: Entry, item: Item, panel: Panel, found: Found) -> dict[str, Any]:
    """One method; of several λ the best, once all have their results."""
    line, results = best_of(entry, found)
    strength = dict(line.changes).get("c_penalty")
    return {
        "name": entry.name,
        "chosen": None if strength is None or not results else f"λ = {strength:g}",
        "tried": len(entry.lines),
        "seeds": {str(seed): result["accuracies"] for seed, result in results.items()},
        "paper": points(entry, item, panel, found),
    }


def best_of(entry: Entry, found: Found) -> tuple[Line, dict[int, Result]]:
    """The line with the best mean accuracy at the end, and its results; none before all lines have theirs."""
    every = [(line, found.of(line)) for line in entry.lines]
    if any(len(results) < len(found.plan.seeds) for _, results in every):
        return every[0] if len(every) == 1 else (every[0][0], {})
    return max(every, key=lambda pair: statistics.fmean(result["last_accuracy"] for result in pair[1].values()))


def points(entry: Entry, item: Item, panel: Panel, found: Found) -> dict[str, float]:
    """What the paper's tables print of this curve, by our increment."""
    known = printed().get(item.points or "", {}).get(panel.name)
    if known is None or entry.row not in known.rows:
        return {}
    at = [int(re.sub(r"\D", "", column)) for column in known.columns]
    places = [str(found.plan.increment(panel.stream, number)) for number in at]
    return {place: float(value) for place, value in zip(places, known.rows[entry.row], strict=True)}
