"""The confusion matrix: which class is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ordisco.errors import one_line
from ordisco.report.figure import FAINT, INK, new_figure, save_png
from ordisco.words import percent, shortened

NUMBERED, NAMED = 14, 60  # up to so many classes cells carry numbers, ticks carry every name


def confusion_matrix(path: Path, matrix: ArrayLike, class_names: Sequence[str], title: str = "") -> None:
    """Draw a matrix of counts, true class down and predicted class across, as a share of each true class."""
    counts = np.asarray(matrix)
    totals = counts.sum(1, keepdims=True)
    shares = 100 * counts / np.maximum(totals, 1)
    classes = len(class_names)
    side = min(12.0, max(4.5, 1.8 + 0.42 * classes))
    figure = new_figure(side, side)
    axes = figure.add_subplot()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=100)
    if classes <= NUMBERED:
        for row, column in np.argwhere(shares >= 0.5):
            share = shares[row, column]
            ink = "white" if share > 60 else INK
            axes.text(column, row, f"{share:.0f}", ha="center", va="center", fontsize=10, color=ink)
    ticks = range(0, classes, 1 + (classes - 1) // NAMED)
    names = [shortened(class_names[tick], 18) for tick in ticks]
    font = 10 if classes <= 24 else 7
    turned = max(len(name) for name in names) > (3 if classes <= NUMBERED else 1)
    axes.set_xticks(ticks, names, rotation=90 if turned else 0, fontsize=font, color=INK, parse_math=False)
    axes.set_yticks(ticks, names, fontsize=font, color=INK, parse_math=False)
    if classes <= NAMED:
        axes.set_xticks(np.arange(0.5, classes - 1), minor=True)
        axes.set_yticks(np.arange(0.5, classes - 1), minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.set_xlabel("predicted class (cells in % of the true class)", fontsize=11, color=INK)
    axes.set_ylabel("true class", fontsize=11, color=INK)
    correct = percent(counts.trace() / max(1, counts.sum()))
    heading = f"{title} — {correct} correct" if title else f"{correct} correct"
    axes.set_title(one_line(heading), fontsize=12, color=INK, loc="left", pad=10, parse_math=False)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    save_png(figure, path)
