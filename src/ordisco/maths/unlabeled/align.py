"""Distribution alignment (ReMixMatch, Berthelot et al. 2020): targets that have the class frequencies expected.

Unlabelled images may come from several increments, as in joint training. What is expected, and what the model says on
average, is known for the images of each.
"""

from __future__ import annotations

import torch
from torch import Tensor

DECAY = 0.99  # of the running sums, at each step


def align_distribution(p: Tensor, target: Tensor, mean: Tensor) -> Tensor:
    """Distribution alignment (ReMixMatch): normalise(p · target / mean).

    `target` is the class distribution to expect, `mean` the one that the model gives; both (k,), or a row an image.
    """
    # A p that underflowed to 0 in every expected class must not leave an all-zero row.
    scaled = p.clamp(min=1e-12) * (target / mean.clamp(min=1e-6))
    return scaled / scaled.sum(1, keepdim=True)


def running_sums(old: Tensor | None, p: Tensor, increments: Tensor, count: int) -> Tensor:
    """Decaying sums of the predictions (n, k) for the images of each of `count` increments, and of their number.

    Row i is Σ p over the images of increment i, then how many they were; an older step counts 0.99 of the next.

    >>> running_sums(None, torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([1, 1]), 2).tolist()
    [[0.0, 0.0, 0.0], [1.5, 0.5, 2.0]]
    """
    new = p.new_zeros(count, p.shape[1] + 1)
    new.index_add_(0, increments, torch.cat([p, torch.ones_like(p[:, :1])], dim=1))
    return new if old is None else DECAY * old + new


def mean_of(sums: Tensor) -> Tensor:
    """The mean prediction (count, k) of each increment: that of the images so far, the recent ones more."""
    return sums[:, :-1] / sums[:, -1:].clamp(min=1e-6)
