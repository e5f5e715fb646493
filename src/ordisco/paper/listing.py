"""The list of items: what each shows, what it would cost at each scale, how much of it is done."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ordisco.paper.cost import cost_of
from ordisco.paper.items import items, on_data
from ordisco.paper.place import Place, missing
from ordisco.paper.scales import Plan, scales
from ordisco.report.table import TextTable
from ordisco.words import duration


def listing(out: Path, seeds: int | None = None, data: str | None = None) -> list[dict[str, Any]]:
    """An entry for each item, and one for all together, whose runs they share; of one data set's panels, or of all."""
    plans = {name: Plan.of(name, seeds) for name in scales()}
    found = []
    every = on_data(items().values(), data)
    for name, chosen in {**{item.name: [item] for item in every}, "all": every}.items():
        entry: dict[str, Any] = {
            "item": name,
            "title": chosen[0].title if name != "all" else "every item",
            "scales": {},
        }
        for scale, plan in plans.items():
            rows = plan.rows(chosen)
            left = missing(rows, Place(out / scale, out / scale / "items"))
            cost = cost_of(rows, plan, out)
            entry["scales"][scale] = {
                "runs": len(rows),
                "done": len(rows) - len(left),
                "seconds": round(cost.seconds),
                "counted": cost.counted,
                "seconds_left": round(cost_of(left, plan, out).seconds),
            }
        found.append(entry)
    return found


def table(entries: list[dict[str, Any]]) -> TextTable:
    """The list for people: runs done and time of each scale."""
    header = ("item", *scales())
    rows = []
    for entry in entries:
        cells = [cell(at) for at in entry["scales"].values()]
        rows.append((f"{entry['item']}: {entry['title']}", *cells))
    return TextTable(header, tuple(rows), (len(rows) - 1,))


def cell(at: Mapping[str, Any]) -> str:
    """Of an item at a scale: `0/9, 5 min`, `4/9, 3 min of 5 min left`, `9/9, done`."""
    left, time = duration(at["seconds_left"]), duration(at["seconds"]) + (" (GPU)" if at["counted"] else "")
    if at["done"] == at["runs"]:
        return f"{at['done']}/{at['runs']}, done"
    return f"{at['done']}/{at['runs']}, " + (f"{left} of {time} left" if at["done"] else time)
