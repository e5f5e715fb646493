"""The page of a model: one HTML file to send, with its pictures inside and no script."""

from __future__ import annotations

import base64
import html
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordisco.errors import readable
from ordisco.files import text_bytes, write_atomically
from ordisco.model.drawing import draw_classes
from ordisco.model.overview import facts
from ordisco.report.deliveries import class_lines, deliveries_table
from ordisco.report.delivery_chart import STYLE as CHART_STYLE
from ordisco.report.delivery_chart import deliveries_chart
from ordisco.words import percent

if TYPE_CHECKING:
    from ordisco.model.model import Model

SAMPLES = 10  # of each class
MOST_CLASSES = 40  # drawn
STYLE = """
:root { color-scheme: light dark; --ground: #f5f6f8; --card: #fff; --ink: #1d2330; --soft: #5b6475; --line: #e3e6ec;
  --blue: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #131417; --card: #1c1e23; --ink: #eceef1; --soft: #979da8; --line: #30333b; --blue: #5eb1e8; }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--ground);
  color: var(--ink); font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif }
main { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.9rem; margin: 0 0 .2rem } h2 { font-size: 1.15rem; margin: 0 0 .8rem }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 1.2rem 1.4rem; margin: 1rem 0; overflow-x: auto }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1.2rem 0 }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: .8rem 1rem }
.tile b { display: block; font-size: 1.55rem; color: var(--blue); line-height: 1.3 }
.tile span, .soft { color: var(--soft); font-size: .9rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; margin: 0 }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th { text-align: left; color: var(--soft); font-weight: 600 }
th, td { padding: .4rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap }
td:not(:first-child), th:not(:first-child) { text-align: right }
td.bar { width: 45%; min-width: 5rem; text-align: left }
.bar i { display: block; height: .7rem; border-radius: 4px; background: var(--blue) }
.bar i { min-width: 2px }
img { max-width: 100%; display: block; border-radius: 8px } img.pixels { image-rendering: pixelated }
tr:last-child td { border-bottom: 0 }
@media (max-width: 34rem) {
  main { margin: 1rem auto } section { padding: 1rem } th, td { padding: .4rem .4rem } .wide { display: none }
  dl { grid-template-columns: 1fr; gap: 0 } dd { margin-bottom: .6rem }
  .tiles { grid-template-columns: 1fr 1fr }
}
"""


def write_page(path: Path, model: Model) -> None:
    """Write it, whole or not at all."""
    write_atomically(path, text_bytes(page(model)))


def page(model: Model) -> str:
    """The HTML of the page."""
    name = html.escape(readable(model.path.resolve().name if model.path else "a model"))
    found = model.overview()
    parts = [f"<h1>{name}</h1>", f"<p class=soft>{summary(found)}</p>", tiles(found)]
    if model.history:
        parts.append(section("Accuracy over the deliveries", deliveries_chart(model.history)))
        parts += per_class(model.history)
    if model.history and model.learner.has_generator and len(model.classes) <= MOST_CLASSES:
        note = "<p class=soft>Drawn by the generator, which stands for the images that are not kept.</p>"
        parts.append(section("What it remembers", note + picture(samples_png(model), "generated images", "pixels")))
    told = "".join(
        f"<dt>{key}</dt><dd>{html.escape(readable(value))}</dd>" for key, value in facts(found, model.about).items()
    )
    parts.append(section("The model", f"<dl>{told}</dl>"))
    if model.history:
        parts.append(section("Deliveries", deliveries(model)))
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}{CHART_STYLE}</style>'
        f"</head><body><main>\n{body}\n</main></body></html>\n"
    )


def section(title: str, content: str) -> str:
    """A box with a title."""
    return f"<section><h2>{title}</h2>{content}</section>"


def tiles(found: dict[str, Any]) -> str:
    """The few numbers that count."""
    history = found["deliveries"]
    values = [("classes", str(len(found["classes"]))), ("deliveries", str(len(history)))]
    values.append(("images seen", f"{sum(record['images'] for record in history):,}"))
    if found["kept"]:
        values.append(("images kept", f"{found['kept']['labeled_images'] + found['kept']['held_out_images']:,}"))
    before = next((record["before"] for record in reversed(history) if record["before"]), None)
    if before:
        values.append(("right before learning", percent(before["accuracy"])))
    if history and history[-1]["holdout"]:
        values.append(("right of those set aside", percent(history[-1]["holdout"]["accuracy"])))
    inside = "".join(f"<div class=tile><b>{value}</b><span>{key}</span></div>" for key, value in values)
    return f"<div class=tiles>{inside}</div>"


def summary(found: dict[str, Any]) -> str:
    """When it last learned."""
    history = found["deliveries"]
    return f"after the delivery of {str(history[-1]['time'])[:10]}" if history else "has learned nothing yet"


def per_class(history: list[dict[str, Any]]) -> list[str]:
    """A bar a class, of images set aside or else of the last labels before they were learned."""
    lines = [line for line in class_lines(history) if line.accuracy is not None]
    if not lines:
        return []
    held = any(line.aside is not None for line in lines)
    lost = "<th class=wide>forgotten</th>" if held else ""
    head = f"<tr><th>class</th><th>labels</th><th></th><th>right</th>{lost}</tr>"
    rows = "".join(
        f"<tr><td>{html.escape(readable(line.name))}</td><td>{line.labels:,}</td>"
        f"<td class=bar><i style='width:{100 * (line.accuracy or 0):.0f}%'></i></td>"
        f"<td>{percent(line.accuracy or 0)}</td>"
        + (f"<td class=wide>{'–' if line.forgotten is None else percent(line.forgotten)}</td>" if held else "")
        + "</tr>"
        for line in lines
    )
    title = "Images set aside, by class" if held else "Last labels before learning, by class"
    return [section(title, f"<table>{head}{rows}</table>")]


def deliveries(model: Model) -> str:
    """The table of deliveries."""
    table = deliveries_table(model.history)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
    rows = ("".join(f"<td>{html.escape(readable(cell))}</td>" for cell in row) for row in table.rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def picture(data: bytes, words: str, kind: str = "") -> str:
    """An image inside the page."""
    return f'<img class="{kind}" alt="{words}" src="data:image/png;base64,{base64.b64encode(data).decode()}">'


def samples_png(model: Model) -> bytes:
    """A row of generated images of every class."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "samples.png"
        draw_classes(file, model.about, model.learner, SAMPLES)
        return file.read_bytes()
