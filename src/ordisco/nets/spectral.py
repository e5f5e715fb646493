"""Spectral norm (Miyato et al. 2018): weights divided by their largest singular value.

Unlike `torch.nn.utils.parametrizations.spectral_norm`, the power iteration is a call of its own, made once
a D step, so that a network used several times in a step sees one weight and evaluation has no side effect.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.grow import grow_rows
from ordisco.nets.resample import conv_then_halve


class Spectral(nn.Module):
    """A layer whose `weight` is used as weight / σ(weight)."""

    weight: nn.Parameter
    u: Tensor
    v: Tensor

    def start(self) -> None:
        """Begin the estimate of the singular vectors from a random one."""
        matrix = self.weight.detach().flatten(1)
        for name, length in zip("uv", matrix.shape, strict=True):
            self.register_buffer(name, F.normalize(torch.randn(length), dim=0).to(matrix.device))
        for _ in range(0 if matrix.is_meta else 15):  # shapes without numbers have nothing to follow
            self.power_iteration()

    def power_iteration(self) -> None:
        """One step of the power method for the first singular vectors."""
        power_iteration([self])

    def normalized(self) -> Tensor:
        """Weight / σ, with σ = uᵀ W v differentiable in W."""
        if not self.training:  # as when each image's gradient is measured, under vmap: by operations that it knows
            return self.weight / torch.dot(self.u, torch.mv(self.weight.flatten(1), self.v))
        weight: Tensor = _OverSigma.apply(self.weight, self.u, self.v)  # type: ignore[no-untyped-call]
        return weight


class _OverSigma(torch.autograd.Function):
    """W / σ; the gradient of W is (g − ⟨g, W / σ⟩ u vᵀ) / σ where g is that of W / σ."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, u: Tensor, v: Tensor) -> Tensor:
        sigma = torch.dot(u, torch.mv(weight.flatten(1), v))
        over = weight / sigma
        ctx.save_for_backward(over, sigma, u, v)
        return over

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        over, sigma, u, v = ctx.saved_tensors
        along = torch.dot(gradient.flatten(), over.flatten())
        return (torch.addr(gradient.flatten(1), u * along, v, alpha=-1) / sigma).view_as(over), None, None


class SpectralConv2d(Spectral):
    """A convolution with spectral norm."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, gain: float = 1.0, stride: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, kernel, kernel))
        nn.init.xavier_uniform_(self.weight, gain)
        self.bias = nn.Parameter(torch.zeros(channels_out))
        self.stride, self.padding = stride, (kernel - stride + 1) // 2  # the side stays, or is divided by the stride
        self.start()

    def forward(self, x: Tensor) -> Tensor:
        """Convolve with the normalised weight."""
        return F.conv2d(x, self.normalized(), self.bias, self.stride, self.padding)


class HalvingSpectralConv2d(SpectralConv2d):
    """A 3×3 convolution with spectral norm, averaged over 2×2 pixels."""

    def __init__(self, channels_in: int, channels_out: int, gain: float = 1.0) -> None:
        super().__init__(channels_in, channels_out, 3, gain)

    def forward(self, x: Tensor) -> Tensor:
        """Half the side."""
        return conv_then_halve(x, self.normalized(), self.bias)


class SpectralLinear(Spectral):
    """A linear layer with spectral norm."""

    def __init__(self, features: int, rows: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, features))
        nn.init.xavier_uniform_(self.weight)
        self.bias = nn.Parameter(torch.zeros(rows)) if bias else None
        self.start()

    def forward(self, x: Tensor) -> Tensor:
        """Multiply by the normalised weight."""
        return F.linear(x, self.normalized(), self.bias)

    def grow(self, rows: int) -> None:
        """Add rows for new classes and begin the estimate of σ anew."""
        fresh = torch.empty(rows, self.weight.shape[1])
        nn.init.xavier_uniform_(fresh)
        self.weight = grow_rows(self.weight, fresh)
        self.start()


class SpectralModule(nn.Module):
    """A network with spectral layers, of which the last two are its head."""

    realness: SpectralLinear
    classes: SpectralLinear

    def judged(self, phi: Tensor) -> Tensor:
        """ψ(φ) + ⟨e_y, φ⟩ for every class y: as both are linear in φ, one product with e_y + ψ's weights."""
        rows = self.classes.normalized() + self.realness.normalized()
        assert self.realness.bias is not None
        return F.linear(phi, rows, self.realness.bias.expand(len(rows)))

    def power_iteration(self) -> None:
        """Follow the weights with the spectral norm; once a D step."""
        power_iteration([module for module in self.modules() if isinstance(module, Spectral)])


@torch.no_grad()
def power_iteration(layers: list[Spectral]) -> None:
    """One step of the power method for the first singular vectors of each layer."""
    matrices, u, v = [x.weight.flatten(1) for x in layers], [x.u for x in layers], [x.v for x in layers]
    for matrix, left, right in zip(matrices, u, v, strict=True):
        torch.mv(matrix.t(), left, out=right)
    _to_length_one(v)
    for matrix, left, right in zip(matrices, u, v, strict=True):
        torch.mv(matrix, right, out=left)
    _to_length_one(u)


def _to_length_one(vectors: list[Tensor]) -> None:
    lengths = torch._foreach_norm(vectors)
    torch._foreach_add_(lengths, 1e-12)
    torch._foreach_div_(vectors, lengths)
