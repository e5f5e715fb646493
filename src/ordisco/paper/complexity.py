"""Table 1 and Fig. 11: time and storage over the increments, measured, and how they grow."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ordisco.paper.items import Item
from ordisco.paper.numbers import printed
from ordisco.paper.place import Found

TABLE = "table-1"


def complexity(item: Item, found: Found) -> list[dict[str, Any]]:
    """One panel: seconds and bytes of each strategy by increment, means over seeds, and how they grow."""
    panels = []
    for panel in item.panels:
        known = printed()[TABLE][panel.name]
        rows = []
        for entry in panel.entries:
            results = list(found.of(entry.lines[0]).values())
            times = [list(accumulate(result["increment_seconds"])) for result in results]
            bytes_kept = [[generators(kept) for kept in result["kept_by_increment"]] for result in results]
            seconds, storage = means(times), means(bytes_kept)
            rows.append(
                {
                    "name": entry.name,
                    "row": entry.row,
                    "paper": dict(zip(known.columns, known.rows[entry.row], strict=True)),
                    "seeds": len(results),
                    "seconds": seconds,
                    "bytes": storage,
                    "time_doubling": doubling(seconds),
                    "storage_doubling": doubling(storage),
                }
            )
        line = panel.entries[0].lines[0]
        panels.append({"name": panel.name, "ours": found.stream_of(line), "rows": rows})
    return panels


def generators(kept: dict[str, int]) -> int:
    """Bytes of the generators among what is kept: G itself, and those saved for offline replay."""
    return sum(kept.get(name, 0) for name in ("G", "G_mean", "generators"))


def means(lists: Sequence[Sequence[float]]) -> list[float]:
    """Of each increment over seeds."""
    return [statistics.fmean(values) for values in zip(*lists, strict=True)]


def doubling(totals: Sequence[float]) -> float | None:
    """By what the total grows when B doubles: 1 is O(1), 2 is O(B), 4 is O(B²); None for fewer than two increments.

    >>> doubling([1.0, 3.0, 6.0, 10.0])  # the sum of 1 … B
    3.3333333333333335
    >>> doubling([7.0, 7.0])
    1.0
    """
    half = len(totals) // 2
    return totals[2 * half - 1] / totals[half - 1] if half and totals[half - 1] > 0 else None
