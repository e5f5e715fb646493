"""The accuracies over the deliveries as SVG, which follows the light or dark colours of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordisco.report.charts import BOTTOM, HEIGHT, TOP, WIDTH, Axes, grid, look, pairs, ticks
from ordisco.report.deliveries import COLOURS, SHIFTED, curves_of
from ordisco.report.html import Html, join, tag

DOTS = 40  # points that are marked; of more, the line alone
STYLE = """
.chart svg { width: 100%; height: auto; display: block }
.chart text { font-size: 13px; fill: var(--soft) }
.chart .rule { stroke: var(--line) }
.chart .series { --d: var(--c) }
.chart polyline { stroke: var(--d); stroke-width: 2.2; stroke-linejoin: round; fill: none }
.chart circle { fill: var(--d) }
.chart .shift { stroke: #d55e00; stroke-width: 1.5; stroke-dasharray: 2 4 }
.chart ul { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; list-style: none; margin: .4rem 0 0; padding: 0 }
.chart li { color: var(--soft); font-size: .9rem }
.chart li i { display: inline-block; width: 1.2rem; height: 3px; border-radius: 2px; background: var(--d);
  vertical-align: middle; margin-right: .4rem }
.chart li b { color: var(--ink); font-variant-numeric: tabular-nums }
@media (prefers-color-scheme: dark) { .chart .series { --d: color-mix(in srgb, var(--c) 62%, white) } }
@media (max-width: 34rem) { .chart text { font-size: 22px } }
"""


def deliveries_chart(history: Sequence[Mapping[str, Any]]) -> Html:
    """Both accuracies, where they were measured, and the deliveries whose images had shifted."""
    axes, curves = Axes(max(2, len(history)), 0, 100), curves_of(history)
    parts = [grid(axes, "%"), *ticks(axes, "delivery")]
    moved = [record["delivery"] for record in history if record.get("shift") and record["shift"]["shifted"]]
    for delivery in moved:
        x = axes.x(delivery)
        parts.append(tag("line", class_="shift", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM))
        parts.append(tag("text", SHIFTED, x=x, y=TOP - 6, text_anchor="middle"))
    legend = []
    for name, points in curves.items():
        line = [(axes.x(delivery), axes.y(100 * share)) for delivery, share in points]
        dots = [tag("circle", cx=x, cy=y, r=4) for x, y in line] if len(line) <= DOTS else []
        style = look(COLOURS[name])
        parts.append(tag("g", tag("polyline", points=pairs(line)), join(dots), class_="series", style=style))
        last = tag("b", f"{100 * points[-1][1]:.1f} %")
        legend.append(tag("li", tag("i"), f"{name} ", last, class_="series", style=style))
    if moved:
        legend.append(tag("li", f"{SHIFTED} images unlike those before"))
    svg = tag(
        "svg",
        tag("title", "accuracy over the deliveries"),
        join(parts),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
    )
    return tag("div", svg, tag("ul", join(legend)), class_="chart")
