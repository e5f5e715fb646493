"""An item in words: tables for a terminal or a document, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordisco.paper.outcome import Outcome, other_code
from ordisco.report.table import TextTable
from ordisco.words import duration, percent_mean, size

NONE = "—"
Block = str | TextTable


def blocks(of: Outcome, pictures: str | None = None) -> list[Block]:
    """The panels of an item, a heading and a table each.

    `pictures` is the way from a document to the folder of the item's pictures, which it shows; None for a terminal,
    which names their files, and shows times of the machine, too.
    """
    parts: list[Block] = []
    for panel in of["panels"]:
        if of["kind"] != "complexity":
            parts.append(f"{panel['name']} (ours: {panel['ours']}):")
        parts += [part for part in PANELS[of["kind"]](panel, pictures) if part]
    parts += [quote_line(quote) for quote in of["quoted"]]
    return parts


def title(of: Outcome) -> str:
    """`Table 3: Ablation with few labels`, and which data set alone is shown."""
    return f"{of['word']}: {of['title']}" + (f", on {of['data']} alone" if of.get("data") else "")


def notes(of: Outcome, now: Mapping[str, Any] | None = None) -> list[str]:
    """What a reader must know: half-made, other code, contradictions in the paper."""
    found = []
    if not of["complete"]:
        found.append(f"Half-made, not a result: {of['done']} of {of['runs']} runs are done.")
    others = other_code(of, now)
    if others:
        found.append(f"Made by another version of the code: {', '.join(other[:12] for other in others)}.")
    return found + [f"In the paper: {line}" for line in of["contradictions"]]


def markdown(of: Outcome, pictures: str) -> str:
    """All of it for a document, from which `pictures` is the way to the folder of the item's pictures."""
    text = [part + "\n" if isinstance(part, str) else part.markdown() for part in blocks(of, pictures)]
    code = ", ".join(str(code.get("commit") or code.get("version"))[:12] for code in of["code"])
    seeds = f"{len(of['seeds'])} seed{'s' if len(of['seeds']) > 1 else ''}"
    text.append(f"`{of['command']}`, {seeds}, {of['runs']} runs, code {code}.\n")
    return "\n".join(text)


# ---------------------------------------------------------------------- kinds


def table_panel(panel: Mapping[str, Any], pictures: str | None) -> list[Block]:
    """Two columns for each of the paper's: its own and ours."""
    header, fields = ["method"], []
    for place, column in enumerate(panel["columns"]):
        cells = [row["cells"][place] for row in panel["rows"]]
        header.append(f"{column}, paper")
        fields.append((place, "paper"))
        if any(cell["ours"] for cell in cells):
            increment = cells[0]["increment"]
            header.append("ours" if increment is None else f"ours at {increment}")
            fields.append((place, "ours"))
    rows = []
    for row in panel["rows"]:
        rows.append((row["name"], *(cell_text(row["cells"][place], field) for place, field in fields)))
    return [TextTable(tuple(header), tuple(rows)), order_line(panel["order"])]


def cell_text(cell: Mapping[str, Any], field: str) -> str:
    """A number of the paper, or ours as mean ± std."""
    value = cell[field]
    if field == "paper":
        return NONE if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    return mean_of(list(value.values())) if value else NONE


def mean_of(shares: Sequence[float]) -> str:
    """`90.3 ± 1.2`, in percent as the paper has it."""
    return percent_mean(shares).removesuffix(" %")


def order_line(orders: Sequence[Mapping[str, Any]]) -> str:
    """Whether the paper's order holds, in a line."""
    if not orders:
        return ""
    pairs, held = sum(order["pairs"] for order in orders), sum(order["held"] for order in orders)
    if held == pairs:
        return f"The paper's order holds in all {pairs} pairs."
    best = [str(order["column"]) for order in orders if order["best"]]
    tops = f"; its best is best at {', '.join(best)}" if best else "; its best is best nowhere"
    return f"The paper's order holds in {held} of {pairs} pairs{tops}."


def curves_panel(panel: Mapping[str, Any], pictures: str | None) -> list[Block]:
    """A row a method: a few increments, and the points that the paper's tables print."""
    lengths = [len(values) for line in panel["lines"] for values in line["seeds"].values()]
    if not lengths:
        return []
    last = min(lengths)
    points = sorted({int(place) for line in panel["lines"] for place in line["paper"]})
    places = sorted({1, last} | {place for place in points if place <= last})
    header = ["method", "λ"]
    for place in places:
        header.append(f"{panel['x']} {place}")
        if place in points:
            header.append("paper")
    rows = []
    for line in panel["lines"]:
        row = [line["name"], str(line["chosen"] or NONE).removeprefix("λ = ")]
        for place in places:
            shares = [values[place - 1] for values in line["seeds"].values()]
            row.append(mean_of(shares) if shares else NONE)
            if place in points:
                value = line["paper"].get(str(place))
                row.append(NONE if value is None else f"{value:.2f}")
        rows.append(tuple(row))
    if all(row[1] == NONE for row in rows):
        header.pop(1)
        rows = [(row[0], *row[2:]) for row in rows]
    return [TextTable(tuple(header), tuple(rows)), order_line(panel["order"])]


def complexity_panel(panel: Mapping[str, Any], pictures: str | None) -> list[Block]:
    """A row a strategy."""
    header = [
        "strategy",
        "time, paper",
        "grows, B → 2B",
        "storage, paper",
        "grows, B → 2B",
        "generators kept at the end",
    ]
    rows = []
    for row in panel["rows"]:
        grown = [NONE if row[key] is None else f"× {row[key]:.1f}" for key in ("time_doubling", "storage_doubling")]
        kept = size(row["bytes"][-1]) if row["bytes"] else NONE
        rows.append([row["name"], row["paper"]["Time"], grown[0], row["paper"]["Storage"], grown[1], kept])
    if pictures is None:
        header.append("time")
        for line, row in zip(rows, panel["rows"], strict=True):
            line.append(duration(row["seconds"][-1]) if row["seconds"] else NONE)
    increments = max((len(row["seconds"]) for row in panel["rows"]), default=0)
    title = f"{panel['ours']}, B = {increments}; × 1 is O(1), × 2 is O(B), × 4 is O(B²):"
    return [title, TextTable(tuple(header), tuple(tuple(row) for row in rows))]


def samples_panel(panel: Mapping[str, Any], pictures: str | None) -> list[Block]:
    """The pictures, or where they are."""
    if pictures is None:
        return [f"{grid['name']}: {grid['file']}." for grid in panel["grids"]]
    return [f"{grid['name']}:\n\n![{grid['name']}]({pictures}/{grid['file']})" for grid in panel["grids"]]


def coverage_panel(panel: Mapping[str, Any], pictures: str | None) -> list[Block]:
    """A row a set of points, a column for test and for training images."""
    found: dict[str, dict[str, str]] = {}
    for row in panel["rows"]:
        cells = found.setdefault(row["points_of"], {})
        cells[row["reference"]] = f"{mean_of(list(row['ours'].values()))} ({row['points']:,})"
    rows = tuple((name, cells.get("test", NONE), cells.get("train", NONE)) for name, cells in found.items())
    table = TextTable(("points (how many)", "test images covered, %", "training images covered, %"), rows)
    return [table] if pictures is None else [table, *samples_panel(panel, pictures)]


PANELS: dict[str, Callable[[Mapping[str, Any], str | None], list[Block]]] = {
    "table": table_panel,
    "search": table_panel,
    "curves": curves_panel,
    "complexity": complexity_panel,
    "samples": samples_panel,
    "coverage": coverage_panel,
}


def quote_line(quote: Mapping[str, Any]) -> str:
    """`Caption of Fig. 5: ORDisCo over SMB at the final batch of SVHN-1: 12.20 points; ours +3.10.`"""
    sign = "+" if quote["unit"] == "points" else ""
    ours = "" if quote["ours"] is None else f"; ours {quote['ours']:{sign}.2f}".replace("-", "−")
    return (
        f"{quote['where'][0].upper()}{quote['where'][1:]}: {quote['what']}: {quote['value']:.2f} {quote['unit']}{ours}."
    )
