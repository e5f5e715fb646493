"""Replay that knows more than y′, beyond the paper: soft targets of an older classifier, trust in each image."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.maths.losses import pair


def soft_targets(y: Tensor, p_old: Tensor, classes: int, share: float) -> Tensor:
    """Class probabilities (n, classes) to learn replayed images by (distillation: Hinton et al. 2015; Li & Hoiem 2016).

    For y′ of an old class, a column of `p_old`: share · onehot(y′) + (1 − share) · p_old, 0 for new classes. For y′ of
    a new class, of which the old classifier knows nothing: onehot(y′). The cross entropy with them is that of Eq. 7
    with softened labels; up to a constant it is KL(p_old ‖ C(x)) where `share` is 0.
    """
    hard = F.one_hot(y, classes).to(p_old.dtype)
    soft = share * hard + (1 - share) * F.pad(p_old, (0, classes - p_old.shape[1]))
    return soft.where((y < p_old.shape[1])[:, None], hard)


def trust(p: Tensor, y: Tensor) -> Tensor:
    """The weight (n,) of each replayed image, 1 in the mean: w_i = p_i(y′_i) / mean_j p_j(y′_j), without a gradient.

    An image in which the classifier does not see the class that it was drawn for counts less than the others.

    >>> trust(torch.tensor([[0.75, 0.25], [0.75, 0.25]]), torch.tensor([0, 1])).tolist()
    [1.5, 0.5]
    """
    own = pair(p.detach(), y)
    return own / own.mean().clamp(min=torch.finfo(own.dtype).tiny)
