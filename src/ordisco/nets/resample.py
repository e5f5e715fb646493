"""A 3×3 convolution together with the change of size before or after it, as one convolution of stride 2.

The mean over 2×2 pixels of a 3×3 convolution is a 4×4 convolution of stride 2: 16 products for a small pixel instead
of 4 · 9. Nearest upsampling followed by a 3×3 convolution is its transpose: 4 products for a large pixel instead of 9.
The kernel is K W Kᵀ with K below, the sum of W at the four places of a 2×2 window; the weights stay 3×3.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

K = ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 1.0, 1.0), (0.0, 0.0, 1.0))


def conv_then_halve(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`avg_pool2d(conv2d(x, weight, bias, padding=1), 2)`."""
    return F.conv2d(x, _widened(weight, 0.25), bias, stride=2, padding=1)


def double_then_conv(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`conv2d(interpolate(x, scale_factor=2), weight, bias, padding=1)`."""
    kernel = _widened(weight, 1.0, turned=True).transpose(0, 1)
    return F.conv_transpose2d(x, kernel, bias, stride=2, padding=1)


class DoublingConv2d(nn.Conv2d):
    """A 3×3 convolution of a map whose side is doubled before, each pixel four times."""

    def forward(self, x: Tensor) -> Tensor:
        """Twice the side."""
        return double_then_conv(x, self.weight, self.bias)


def _widened(weight: Tensor, factor: float, turned: bool = False) -> Tensor:
    """Factor · K W Kᵀ for each pair of channels, (out, in, 4, 4), turned by 180° if asked."""
    out, channels = weight.shape[:2]
    matrix = _matrix(factor, turned, weight.dtype, weight.device)
    return (weight.reshape(-1, 9) @ matrix).view(out, channels, 4, 4)


@functools.lru_cache(maxsize=16)
def _matrix(factor: float, turned: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(9, 16): W as a row → factor · K W Kᵀ as a row."""
    k = torch.tensor(K, dtype=dtype, device=device)
    matrix = factor * torch.kron(k, k)
    return (matrix.flip(0) if turned else matrix).t().contiguous()
