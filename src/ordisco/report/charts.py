"""Curves as SVG: a line for each method, a band for its seeds, and the values under the pointer."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ordisco.report.figure import styles
from ordisco.report.html import Html, join, tag

WIDTH, HEIGHT = 720, 340
LEFT, RIGHT, TOP, BOTTOM = 48, 14, 32, 40
FEW = 5  # lines whose bands can be told apart
DASHES = {"-": None, "--": "7 4", ":": "2 4", "-.": "8 4 2 4"}


@dataclass(frozen=True)
class Series:
    """A line: values of each seed by increment, and points that are marked beside it, by increment."""

    name: str
    seeds: Sequence[Sequence[float]]
    points: Mapping[int, float] = field(default_factory=dict)
    note: str = ""

    @property
    def length(self) -> int:
        """Increments that all seeds have."""
        return min(len(values) for values in self.seeds)

    def mean(self, place: int) -> float:
        """Of the seeds at an increment, counted from 0."""
        return statistics.fmean(values[place] for values in self.seeds)

    def spread(self, place: int) -> float:
        """Their sample standard deviation."""
        return statistics.stdev(values[place] for values in self.seeds) if len(self.seeds) > 1 else 0.0


@dataclass(frozen=True)
class Axes:
    """Where a value lies on the sheet."""

    last: int
    low: float
    high: float

    def x(self, place: int) -> float:
        """Of an increment, counted from 1."""
        share = (place - 1) / (self.last - 1) if self.last > 1 else 0.5
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def curves(series: Sequence[Series], x_label: str, unit: str = "%", marked: str = "the paper's") -> Html:
    """The chart with its legend; nothing for no series."""
    shown = [one for one in series if one.seeds and one.length]
    if not shown:
        return Html("")
    last = max(one.length for one in shown)
    axes = Axes(last, *limits(shown, percent=unit == "%"))
    looks = styles([one.name for one in shown])
    parts = [grid(axes, unit), *ticks(axes, x_label)]
    for number in reversed(range(len(shown))):
        parts.append(drawn(shown[number], axes, *looks[number], number))
    parts.append(tag("line", class_="guide", x1=0, x2=0, y1=TOP, y2=HEIGHT - BOTTOM, hidden=True))
    ends = ", ".join(f"{one.name} {one.mean(one.length - 1):.1f}" for one in shown)
    svg = tag(
        "svg",
        tag("title", f"after {x_label} {last}: {ends}"),
        join(parts),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        preserveAspectRatio="xMidYMid meet",
    )
    values = {
        "x": [axes.x(place) for place in range(1, last + 1)],
        "label": x_label,
        "unit": unit,
        "width": WIDTH,
        "series": [values_of(one, colour) for one, (colour, _) in zip(shown, looks, strict=True)],
    }
    legend = [entry(one, *looks[number], unit, number) for number, one in enumerate(shown)]
    if any(one.points for one in shown):
        legend.append(tag("li", tag("span", "○", class_="ring"), f" {marked}"))
    return tag(
        "div",
        svg,
        tag("ul", join(legend), class_="legend"),
        tag("div", class_="tip", hidden=True),
        class_="chart" if len(shown) <= FEW else "chart many",
        data_values=json.dumps(values, ensure_ascii=False),
    )


def values_of(one: Series, colour: str) -> dict[str, object]:
    """What is shown under the pointer."""
    rows = [f"{one.mean(place):.1f}" for place in range(one.length)]
    if len(one.seeds) > 1:
        rows = [f"{row} ± {one.spread(place):.1f}" for place, row in enumerate(rows)]
    return {
        "name": one.name,
        "colour": ink(colour),
        "values": rows,
        "points": {str(k): v for k, v in one.points.items()},
    }


def limits(series: Sequence[Series], percent: bool) -> tuple[float, float]:
    """Round numbers around all that is drawn, from 0 where it comes near."""
    lows = [one.mean(p) - one.spread(p) for one in series for p in range(one.length)]
    highs = [one.mean(p) + one.spread(p) for one in series for p in range(one.length)]
    points = [value for one in series for value in one.points.values()]
    low, high = min([*lows, *points]), max([*highs, *points])
    step = nice((high - low) or 1.0)
    bottom = step * math.floor(low / step)
    if percent:
        bottom = max(0.0, bottom)
    top = step * math.ceil(high / step + 1e-9)
    if percent:
        top = min(100.0, top)
    return (0.0 if bottom <= 2 * step else bottom), max(top, bottom + step)


def nice(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, of which there are about five."""
    raw = span / 5
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)


def grid(axes: Axes, unit: str) -> Html:
    """Horizontal lines with their values."""
    step = nice(axes.high - axes.low)
    parts, value = [], axes.low
    while value <= axes.high + 1e-9:
        y = axes.y(value)
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="rule"))
        parts.append(tag("text", f"{value:g}", x=LEFT - 8, y=y + 4, text_anchor="end"))
        value += step
    parts.append(tag("text", unit, x=LEFT - 8, y=14, text_anchor="end"))
    return join(parts)


def ticks(axes: Axes, x_label: str) -> list[Html]:
    """Increments below the axis."""
    every = 1 if axes.last <= 12 else 5 * math.ceil(axes.last / 50)
    places = [place for place in range(1, axes.last + 1) if place % every == 0 or place == 1]
    marks = [tag("text", str(place), x=axes.x(place), y=HEIGHT - BOTTOM + 18, text_anchor="middle") for place in places]
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*marks, tag("text", x_label, x=middle, y=HEIGHT - 4, text_anchor="middle", class_="unit")]


def drawn(one: Series, axes: Axes, colour: str, dash: str, number: int) -> Html:
    """Band, line, dots and the marked points of one series."""
    places = range(one.length)
    upper = [(axes.x(p + 1), axes.y(min(axes.high, one.mean(p) + one.spread(p)))) for p in places]
    lower = [(axes.x(p + 1), axes.y(max(axes.low, one.mean(p) - one.spread(p)))) for p in places]
    line = [(axes.x(p + 1), axes.y(one.mean(p))) for p in places]
    parts = []
    if len(one.seeds) > 1:
        parts.append(tag("polygon", points=pairs([*upper, *reversed(lower)]), class_="band"))
    parts.append(tag("polyline", points=pairs(line), stroke_dasharray=DASHES[dash], class_="line"))
    if one.length <= 12:
        parts += [tag("circle", cx=x, cy=y, r=3) for x, y in line]
    for place, value in one.points.items():
        if place <= axes.last and axes.low <= value <= axes.high:
            ring = tag("circle", cx=axes.x(place), cy=axes.y(value), r=5.5, class_="point")
            parts.append(ring)
    return tag("g", join(parts), class_="series", style=look(colour), data_line=number)


def look(colour: str) -> str:
    """The colour as the style takes it, which makes it lighter on a dark page."""
    return f"--c:{ink(colour)}"


def ink(colour: str) -> str:
    """Black is the page's ink."""
    return "var(--ink)" if colour == "#000000" else colour


def pairs(points: Sequence[tuple[float, float]]) -> str:
    """`1,2 3,4`."""
    return " ".join(f"{x},{y}" for x, y in points)


def entry(one: Series, colour: str, dash: str, unit: str, number: int) -> Html:
    """A line of the legend: the look, the name and the last value; under the pointer the others step back."""
    line = tag("line", x1=1, x2=25, y1=6, y2=6, stroke_dasharray=DASHES[dash], class_="line")
    swatch = tag(
        "svg",
        tag("g", line, class_="series", style=look(colour)),
        viewBox="0 0 26 12",
        class_="swatch",
        aria_hidden="true",
    )
    last = one.length - 1
    value = f"{one.mean(last):.1f}" + (f" ± {one.spread(last):.1f}" if len(one.seeds) > 1 else "")
    note = tag("small", f" {one.note}") if one.note else None
    return tag("li", swatch, " ", one.name, note, " ", tag("b", f"{value} {unit}"), data_line=number)
