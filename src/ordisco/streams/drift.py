"""New Instance whose increments differ: images arrive from dark on light to light on dark."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, Split

CHUNK = 8192


def lighter_inside(images: Tensor) -> np.ndarray:
    """How much lighter the middle of each image (n, c, h, w) is than the rest; whole numbers, so exact everywhere."""
    height, width = images.shape[2:]
    middle = images[:, :, height // 4 : height - height // 4, width // 4 : width - width // 4]
    inside, area = middle[0].numel(), images[0].numel()
    sum_inside, sum_all = _sums(middle), _sums(images)
    lighter: np.ndarray = sum_inside * (area - inside) - (sum_all - sum_inside) * inside
    return lighter


def _sums(images: Tensor) -> np.ndarray:
    return torch.cat([part.long().sum(dim=(1, 2, 3)) for part in images.split(CHUNK)]).numpy()


def by_drift(images: Split, increments: int, labels_per_class: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The positions of each increment's images, and of those of them whose labels are shown.

    Each class is sorted by itself and cut into equal parts, so every increment has as many of it.
    """
    labels, score = images.labels.numpy(), lighter_inside(images.images)
    rng = np.random.RandomState([seed, increments])
    parts: list[list[np.ndarray]] = [[] for _ in range(increments)]
    shown: list[list[np.ndarray]] = [[] for _ in range(increments)]
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        members = members[np.argsort(score[members], kind="stable")]
        for index, part in enumerate(np.array_split(members, increments)):
            parts[index].append(part)
            if label != UNLABELED:
                shown[index].append(rng.permutation(part)[:labels_per_class])
    return [(np.concatenate(part), np.concatenate(given)) for part, given in zip(parts, shown, strict=True)]
