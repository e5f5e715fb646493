"""Does the paper's order of methods hold here?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any


@dataclass(frozen=True)
class Order:
    """Of one column: how many pairs of rows stand in the paper's order, and whether the paper's best row is best."""

    column: str
    pairs: int
    held: int
    best: bool

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def order_of(column: str, paper: Mapping[str, float], ours: Mapping[str, float]) -> Order | None:
    """Compare the rows that both have; None for fewer than two.

    Rows that the paper has equal make no pair; where ours are equal, no order holds.


    >>> order_of("30 Batch", {"SMB": 73.3, "ORDisCo": 85.5}, {"SMB": 0.9, "ORDisCo": 0.8})
    Order(column='30 Batch', pairs=1, held=0, best=False)
    """
    rows = [row for row in paper if row in ours]
    if len(rows) < 2:
        return None
    pairs = [(a, b) if paper[a] > paper[b] else (b, a) for a, b in combinations(rows, 2) if paper[a] != paper[b]]
    held = sum(ours[higher] > ours[lower] for higher, lower in pairs)
    top = max(rows, key=lambda row: paper[row])
    return Order(column, len(pairs), held, all(ours[top] > ours[row] for row in rows if row != top))
