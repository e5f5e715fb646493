"""The page of items: ours beside the paper's, curves, pictures, and how all of it was made."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ordisco.files import write_atomically
from ordisco.pages.made import NONE, code_words, facts_table, machine_words
from ordisco.paper import words
from ordisco.paper.outcome import Outcome
from ordisco.paper.words import blocks, cell_text, notes, order_line, title
from ordisco.report.charts import Series, curves
from ordisco.report.html import Html, join, tag
from ordisco.report.page import Section, code, details, figure, image, page, png_in, scrolling, slider, table
from ordisco.report.table import TextTable
from ordisco.words import duration

Panel = Mapping[str, Any]


def write_report(path: Path, outcomes: Sequence[Outcome], pictures: Path) -> None:
    """Write the page of these items; `pictures` is where their files lie."""
    write_atomically(path, report(outcomes, pictures))


def report(outcomes: Sequence[Outcome], pictures: Path) -> bytes:
    """The page of these items."""
    scales = list(dict.fromkeys(of["scale_title"] for of in outcomes))
    done = sum(of["complete"] for of in outcomes)
    whole = f"{len(outcomes)} items" if len(outcomes) > 1 else "one item"
    half = "" if done == len(outcomes) else f", {len(outcomes) - done} of them half-made"
    lead = f"ORDisCo (Wang et al., CVPR 2021), ours beside the paper's: {'; '.join(scales)}. {whole}{half}."
    sections = [section(of, pictures) for of in outcomes]
    if len(outcomes) > 1:
        sections.insert(0, overview(outcomes))
    return page("The paper, table by table and figure by figure", lead, sections)


def overview(outcomes: Sequence[Outcome]) -> Section:
    """All items in a table: how much is done, and in how many pairs of methods the paper's order holds."""
    rows = []
    for of in outcomes:
        orders = [order for panel in of["panels"] for order in panel.get("order", ())]
        pairs, held = sum(order["pairs"] for order in orders), sum(order["held"] for order in orders)
        state = "done" if of["complete"] else f"half-made, {of['done']} of {of['runs']} runs"
        rows.append(
            tag(
                "tr",
                tag("th", tag("a", of["word"], href=f"#{of['item']}"), scope="row"),
                tag("td", of["title"], class_="words"),
                tag("td", f"{held} of {pairs}" if pairs else NONE, class_="yes" if pairs and held == pairs else None),
                tag("td", state, class_="words" if of["complete"] else "words half"),
            )
        )
    names = ("item", "shows", "pairs in the paper's order", "state")
    head = tag("tr", join(tag("th", name, class_="words" if name in ("shows", "state") else None) for name in names))
    note = "A pair is two methods in one column of the paper; chance is half of them."
    body = scrolling(tag("table", tag("thead", head), tag("tbody", join(rows))))
    return Section("overview", "Overview", body, note)


def section(of: Outcome, pictures: Path) -> Section:
    """An item with its notes, its panels and how it was made."""
    parts: list[Html | None] = [
        tag("p", note, class_="note half" if note.startswith("Half-made") else "note") for note in notes(of)
    ]
    panels = [
        tag("div", panel_heading(of, panel), PANELS[of["kind"]](panel, pictures)) for panel in of["panels"]
    ]  # charts stand side by side where there is room
    parts.append(tag("div", join(panels), class_="panels" if of["kind"] == "curves" else None))
    quotes = [block for block in blocks({**of, "panels": []}) if isinstance(block, str)]
    parts += [tag("p", quote, class_="note") for quote in quotes]
    parts.append(details("how it was made", made(of)))
    return Section(of["item"], title(of), join(parts), measure_note(of), of["word"])


def panel_heading(of: Outcome, panel: Panel) -> Html | None:
    """The paper's stream, or loss, and what stands for it here."""
    if of["kind"] == "complexity":  # its table has a heading of its own
        return None
    return tag("h3", panel["name"], tag("small", f" — ours: {panel['ours']}"))


def measure_note(of: Outcome) -> str:
    """What the numbers are."""
    what = {
        "accuracy": "Accuracy on the test images of all classes seen, in %",
        "judged": "Generated images to which a jointly trained classifier gives their class, in %",
        "best": "The best accuracy on the test images over all increments, in %",
    }[of["measure"]]
    if of["kind"] not in ("table", "search", "curves"):
        return ""
    seeds = len(of["seeds"])
    return f"{what}; ours is the mean ± standard deviation of {seeds} seeds." if seeds > 1 else f"{what}; one seed."


def made(of: Outcome) -> Html:
    """Command, code, machine, time, and the commands of all runs."""
    facts = {
        "command": of["command"],
        "code": code_words(of["code"]),
        "machine": machine_words(of["machines"]),
        "time of all runs": duration(of["seconds"]),
        "runs": f"{of['done']} of {of['runs']}",
        "seeds": ", ".join(str(seed) for seed in of["seeds"]),
    }
    return join([facts_table(facts), code(of["commands"])])


# ---------------------------------------------------------------------- kinds


def table_panel(panel: Panel, pictures: Path) -> Html:
    """Two cells for each of the paper's: its own and ours, the best of each in bold."""
    top, below, fields = [tag("th")], [tag("th", "method")], []
    for place, column in enumerate(panel["columns"]):
        cells = [row["cells"][place] for row in panel["rows"]]
        ours = any(cell["ours"] for cell in cells)
        fields += [(place, "paper"), (place, "ours")] if ours else [(place, "paper")]
        top.append(tag("th", column, colspan=2 if ours else 1, class_="over"))
        increment = cells[0]["increment"]
        here = "ours" if increment is None else f"ours at {increment}"
        below.append(tag("th", "paper", class_="paper"))
        below += [tag("th", here, class_="ours")] if ours else []
    bests = {field: best_row(panel["rows"], *field) for field in fields}
    rows = []
    for number, row in enumerate(panel["rows"]):
        cells = [tag("th", row["name"], scope="row")]
        for field in fields:
            kind = f"{field[1]} best" if bests[field] == number else field[1]
            cells.append(tag("td", cell_text(row["cells"][field[0]], field[1]), class_=kind))
        rows.append(tag("tr", join(cells)))
    head = tag("thead", tag("tr", join(top)), tag("tr", join(below)))
    return join([scrolling(tag("table", head, tag("tbody", join(rows)))), order(panel)])


def order(panel: Panel) -> Html | None:
    """Whether the paper's order of methods holds."""
    line = order_line(panel["order"])
    holds = all(one["held"] == one["pairs"] for one in panel["order"])
    return tag("p", line, class_="order yes" if holds else "order") if line else None


def best_row(rows: Sequence[Mapping[str, Any]], place: int, field: str) -> int | None:
    """The row with the best number in a column."""
    values = [row["cells"][place][field] for row in rows]
    scores = [statistics.fmean(v.values()) if isinstance(v, dict) and v else v for v in values]
    numbers = [score if isinstance(score, float) else float("-inf") for score in scores]
    return numbers.index(max(numbers)) if max(numbers) > float("-inf") else None


def curves_panel(panel: Panel, pictures: Path) -> Html:
    """A chart, the paper's printed points as rings."""
    series = []
    for line in panel["lines"]:
        seeds = [[100 * value for value in values] for values in line["seeds"].values()]
        points = {int(place): value for place, value in line["paper"].items()}
        note = f"{line['chosen']}, best of {line['tried']}" if line["chosen"] and line["tried"] > 1 else ""
        series.append(Series(line["name"], seeds, points, note))
    return join([curves(series, panel["x"], marked="printed in the paper's tables"), order(panel)])


def complexity_panel(panel: Panel, pictures: Path) -> Html:
    """The table, and time and storage over the increments."""
    title, block = words.complexity_panel(panel, None)
    rows = [row for row in panel["rows"] if row["seconds"]]
    times = [Series(row["name"], [row["seconds"]]) for row in rows]
    storage = [Series(row["name"], [[size / 1e6 for size in row["bytes"]]]) for row in rows]
    return join(
        [
            tag("p", str(title), class_="note"),
            words_table(block),
            tag("h3", "Time of all increments so far"),
            curves(times, "increment", "s"),
            tag("h3", "Generators kept"),
            curves(storage, "increment", "MB"),
        ]
    )


def samples_panel(panel: Panel, pictures: Path) -> Html:
    """Grids of images; those of all increments under a slider."""
    found = []
    for grid in panel["grids"]:
        frames = [
            (f"increment {n}", png)
            for n, name in enumerate(grid.get("frames", ()), 1)
            if (png := png_in(pictures / name))
        ]
        if len(frames) > 1:
            found.append(slider(frames, grid["name"], min(grid["at"], len(frames))))
            continue
        picture = png_in(pictures / grid["file"])
        missing = tag("p", f"{grid['name']}: {grid['file']} is not there", class_="note")
        found.append(figure(image(picture, grid["name"]), grid["name"]) if picture else missing)
    return tag("div", join(found), class_="grids")


def coverage_panel(panel: Panel, pictures: Path) -> Html:
    """The table of coverage, and the t-SNE picture."""
    [block] = words.coverage_panel(panel, None)
    [grid] = panel["grids"]
    picture = png_in(pictures / grid["file"])
    return join([words_table(block), figure(image(picture, grid["name"]), grid["name"]) if picture else None])


PANELS: dict[str, Callable[[Panel, Path], Html]] = {
    "table": table_panel,
    "search": table_panel,
    "curves": curves_panel,
    "complexity": complexity_panel,
    "samples": samples_panel,
    "coverage": coverage_panel,
}


def words_table(block: str | TextTable) -> Html:
    """A table of words as HTML."""
    assert isinstance(block, TextTable)
    return table(block.header, block.rows)
