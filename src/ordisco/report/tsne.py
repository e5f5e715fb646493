"""The paper's picture of coverage: real, remembered and generated images in the features of a judge, by t-SNE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ordisco.report.figure import FAMILIES, INK, new_figure, save_png

REAL_GREY = "#c4c4c4"
Features = NDArray[np.float32]


def draw_tsne(path: Path, real: Features, umb: Features, generated: Features, umb_title: str, seed: int = 0) -> None:
    """Training images in grey under those of a UMB, and under images of G; a row of features for each image."""
    features = (real, umb, generated)
    placed = np.split(embed(np.concatenate(features), seed), np.cumsum([len(part) for part in features])[:-1])
    figure = new_figure(9, 4.4)
    panels = (
        (umb_title, placed[1], FAMILIES["smb+umb"]),
        ("images drawn from G", placed[2], FAMILIES["ordisco"]),
    )
    low, high = np.concatenate(placed).min(0), np.concatenate(placed).max(0)
    margin = 0.03 * (high - low)
    for place, (title, points, colour) in enumerate(panels, start=1):
        axes = figure.add_subplot(1, 2, place)
        axes.scatter(placed[0][:, 0], placed[0][:, 1], s=9, color=REAL_GREY, linewidths=0)
        axes.scatter(points[:, 0], points[:, 1], s=9, color=colour, linewidths=0, alpha=0.8)
        axes.set_title(title, fontsize=12, color=colour, loc="left", parse_math=False)
        axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
        axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
    grey = f"grey: {len(real):,} training images; t-SNE of the features of a jointly trained classifier"
    figure.supxlabel(grey, fontsize=10, color=INK, x=0.01, ha="left")
    save_png(figure, path)


def embed(features: Features, seed: int = 0) -> NDArray[np.float64]:
    """Two coordinates for each row."""
    from sklearn.manifold import TSNE

    perplexity = min(30.0, (len(features) - 1) / 3)
    placed: NDArray[np.float64] = TSNE(init="pca", perplexity=perplexity, random_state=seed).fit_transform(features)
    return placed
