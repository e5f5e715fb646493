"""Accuracy against CPU-seconds, a line a method, a point a budget of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ordisco.errors import one_line
from ordisco.report.figure import DASHES, FAINT, INK, new_figure, save_png, styles

MARKS = dict(zip(DASHES, "os^D", strict=True))  # variants of a family differ by their marks, too: one point has no dash


def frontier_figure(path: Path, curves: Mapping[str, Sequence[tuple[float, float, float, int]]], title: str) -> None:
    """Draw curves of (CPU-seconds, accuracy, its standard deviation, steps); the number at a point is its steps."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    for (name, curve), (colour, dash) in zip(curves.items(), styles(list(curves)), strict=True):
        seconds = [point[0] for point in curve]
        accuracies, spreads = ([100 * point[at] for point in curve] for at in (1, 2))
        axes.errorbar(
            seconds,
            accuracies,
            yerr=spreads,
            color=colour,
            linestyle=dash,
            linewidth=2,
            marker=MARKS[dash],
            markersize=5 if dash == DASHES[0] else 7,
            markerfacecolor=colour if dash == DASHES[0] else "white",
            capsize=3,
            elinewidth=1,
            label=one_line(name),
        )
        for (x, _, _, steps), y in zip(curve, accuracies, strict=True):
            axes.annotate(f"{steps:,}", (x, y), xytext=(5, -11), textcoords="offset points", fontsize=8, color=colour)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    ticks = [value * 10**power for power in range(6) for value in (1, 2, 5)]
    low, high = (chosen(point[0] for curve in curves.values() for point in curve) for chosen in (min, max))
    axes.set_xlim(low / 1.25, high * 1.35)
    axes.set_xticks([tick for tick in ticks if low / 1.25 <= tick <= high * 1.35])
    axes.set_title(one_line(title), fontsize=13, color=INK, loc="left", pad=12, parse_math=False)
    axes.set_xlabel("CPU-seconds of the whole stream; at a point, its steps an increment", fontsize=11, color=INK)
    axes.set_ylabel("final accuracy in %, mean ± std", fontsize=11, color=INK)
    axes.tick_params(which="both", labelsize=10, colors=INK, length=0)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    axes.legend(frameon=False, fontsize=10, loc="best")
    save_png(figure, path)
