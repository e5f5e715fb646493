"""Weights in fewer bits: float16, or whole numbers of 8 bits with a scale for each block of 64."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64  # weights that share a scale
MOST = 127  # the largest code


def in_half(vector: Tensor) -> Tensor:
    """A copy in 16 bits (float16): |x̂ − x| ≤ 2⁻¹¹ |x| + 2⁻²⁵; what is beyond its range becomes its end."""
    most = torch.finfo(torch.float16).max
    return vector.clamp(-most, most).to(torch.float16)


def in_eight(vector: Tensor) -> tuple[Tensor, Tensor]:
    """Codes (int8) of a vector and the scales (bfloat16) of its blocks: x̂ = code · scale, off by half a scale or so.

    A block's scale is its largest entry / 127. What was rounded once stays as it is.

    >>> codes, scales = in_eight(torch.tensor([0.0, 1.0, -127.0]))
    >>> codes.tolist(), scales.tolist()
    ([0, 1, -127], [1.0])
    """
    blocks = _blocks(vector)
    scales = (blocks.abs().amax(1) / MOST).to(torch.bfloat16)
    divisors = scales.float().clamp(min=torch.finfo(torch.float32).tiny)
    codes = (blocks / divisors[:, None]).round()  # ±127.25 at the most, as a scale is off by 2⁻⁹ of it
    return codes.to(torch.int8).flatten()[: len(vector)], scales


def from_eight(codes: Tensor, scales: Tensor) -> Tensor:
    """The weights that codes and scales stand for."""
    return (_blocks(codes.float()) * scales.float()[:, None]).flatten()[: len(codes)]


def rounded(vector: Tensor, bits: int) -> Tensor:
    """What so many bits leave of a vector, in 32 bits again."""
    if bits == 8:
        return from_eight(*in_eight(vector))
    return in_half(vector).float() if bits == 16 else vector


def bytes_of(weights: int, bits: int) -> int:
    """What so many weights take.

    >>> [bytes_of(100, bits) for bits in (32, 16, 8)]
    [400, 200, 104]
    """
    return weights * bits // 8 + (2 * blocks_of(weights) if bits == 8 else 0)


def blocks_of(weights: int) -> int:
    """How many blocks so many weights are."""
    return -(-weights // BLOCK)


def _blocks(vector: Tensor) -> Tensor:
    return F.pad(vector, (0, -len(vector) % BLOCK)).view(-1, BLOCK)
