"""Eqs. 8–10: D's parameters that matter for judging (old unlabelled image, pseudo-label) pairs stay near."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ordisco.data import normalize
from ordisco.losses import pair
from ordisco.per_image import mean_per_image_gradient


def penalty(theta: Tensor, anchor: Tensor, xi: Tensor, weight: float) -> Tensor:
    """The second term of Eq. 8: λ Σ_i ξ_i (θ_i − θ_i*)²."""
    return weight * torch.dot(xi, (theta - anchor).square())


def add_penalty_gradient_(grad: Tensor, theta: Tensor, anchor: Tensor, xi: Tensor, weight: float) -> None:
    """Add the gradient of `penalty`, 2 λ ξ (θ − θ*), to `grad` in place."""
    grad.addcmul_(xi, theta - anchor, value=2.0 * weight)


def running_mean(old: Tensor, new: Tensor, count: int) -> Tensor:
    """Eq. 9: ξ_1:b = ((b − 1) ξ_1:b−1 + ξ_b) / b, with `count` = b."""
    return ((count - 1) * old + new) / count


def importance(D: nn.Module, images: Tensor, labels: Tensor, chunk: int) -> Tensor:
    """Eq. 10: ξ_b = E_x |∂ ‖D(x, C(x))‖² / ∂θ|, the mean of absolute per-image gradients.

    `images` are the increment's unlabelled images (uint8) and `labels` their pseudo-labels; `chunk` bounds the memory.
    """

    def squared(network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return pair(network(x), y).square().sum()

    batches = zip(images.split(chunk), labels.split(chunk), strict=True)
    return mean_per_image_gradient(D, squared, ((normalize(x), y) for x, y in batches), power=1, chunk=chunk)
