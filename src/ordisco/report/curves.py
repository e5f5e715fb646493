"""Accuracy after each increment, a line a method."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ordisco.errors import one_line
from ordisco.report.figure import FAINT, INK, new_figure, save_png, styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = Sequence[float] | Sequence[Sequence[float]]
LABEL_SIZE = 10


def accuracy_curves(path: Path, curves: Mapping[str, Curve], xlabel: str = "increment", title: str = "") -> None:
    """Draw accuracies, given as shares from 0 to 1, in percent.

    A method has a list of values, one per increment, or such a list per seed: then the line is their mean and the
    band one sample standard deviation. Seeds of different length are cut to the shortest.
    """
    runs = {name: percentages(curve) for name, curve in curves.items()}
    figure = new_figure(8, 4.5)
    axes = figure.add_subplot()
    for values, (colour, dash) in reversed(list(zip(runs.values(), styles(list(runs)), strict=True))):
        x, mean, std = np.arange(1, values.shape[1] + 1), values.mean(0), spread(values)
        marker = "o" if len(x) <= 12 else ""
        axes.plot(x, mean, color=colour, linestyle=dash, linewidth=2, marker=marker, markersize=5)
        axes.fill_between(x, mean - std, mean + std, color=colour, alpha=0.15, linewidth=0)
    last = max(values.shape[1] for values in runs.values())
    axes.set_xlim(1 - 0.02 * last, last + 0.02 * last)
    axes.set_ylim(limits(list(runs.values())))
    seeds = max(len(values) for values in runs.values())
    ylabel = "accuracy in %" + (f", mean ± std of {seeds} seeds" if seeds > 1 else "")
    decorate(axes, last, xlabel, ylabel, title)
    label_ends(axes, runs)
    save_png(figure, path)


def percentages(curve: Curve) -> NDArray[np.float64]:
    """A row per seed, a column per increment."""
    seeds = curve if np.ndim(curve[0]) else [curve]
    shortest = min(np.size(row) for row in seeds)
    return 100 * np.stack([np.asarray(row, dtype=float)[:shortest] for row in seeds])


def spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sample standard deviation over seeds, 0 for a single one."""
    return values.std(0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


def limits(runs: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Full tens around means and bands, from 0 where they come near it."""
    low = min(float((values.mean(0) - spread(values)).min()) for values in runs)
    high = max(float((values.mean(0) + spread(values)).max()) for values in runs)
    bottom = 10 * math.floor((low - 1) / 10)
    return (0.0 if bottom <= 10 else float(bottom)), min(101.0, 10.0 * math.ceil((high + 1) / 10))


def decorate(axes: Axes, last: int, xlabel: str, ylabel: str, title: str) -> None:
    """Title, axis names, whole increments, a faint grid, no box."""
    from matplotlib.ticker import MaxNLocator

    axes.set_title(one_line(title), fontsize=13, color=INK, loc="left", pad=12, parse_math=False)
    axes.set_xlabel(xlabel, fontsize=11, color=INK, parse_math=False)
    axes.set_ylabel(ylabel, fontsize=11, color=INK)
    every = 1 if last <= 12 else 5 * math.ceil(last / 50)
    axes.set_xticks([1, *range(every, last + 1, every)] if every > 1 else range(1, last + 1))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=9, steps=[1, 2, 5, 10], integer=True))
    axes.tick_params(labelsize=10, colors=INK, length=0)
    axes.grid(axis="y", color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)


def label_ends(axes: Axes, runs: Mapping[str, NDArray[np.float64]]) -> None:
    """Each line's name and last value beside its end, pushed apart where ends meet."""
    bottom, top = axes.get_ylim()
    gap = (top - bottom) * 1.4 * LABEL_SIZE / 72 / 3.5  # a line of text on axes about 3.5 inches high
    ends = [float(values.mean(0)[-1]) for values in runs.values()]
    heights = pushed_apart(ends, gap, bottom + gap / 2, top)
    for (name, values), (colour, dash), end, height in zip(
        runs.items(), styles(list(runs)), ends, heights, strict=True
    ):
        axes.annotate(
            f"{name}  {end:.1f}",
            xy=(values.shape[1], end),
            xytext=(1.04, height),
            textcoords=axes.get_yaxis_transform(),
            annotation_clip=False,
            va="center",
            color=colour,
            fontsize=LABEL_SIZE,
            fontweight="bold",
            parse_math=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linestyle": dash,
                "linewidth": 0.9,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 4,
            },
        )


def pushed_apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The nearest heights (least squares) that are `gap` apart, in the same order and from `low` to `high`.

    Less rank × gap, that is a monotone regression: neighbours in the wrong order are pooled at their mean.
    """
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    pools: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        mean, count = heights[index] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    level = [mean for mean, count in pools for _ in range(count)]
    ceiling = max(low, high - gap * (len(heights) - 1))
    placed = list(heights)
    for rank, index in enumerate(order):
        placed[index] = min(max(level[rank], low), ceiling) + rank * gap
    return placed
