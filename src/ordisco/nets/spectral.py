"""Spectral norm (Miyato et al. 2018): weights divided by their largest singular value.

Unlike `torch.nn.utils.parametrizations.spectral_norm`, the power iteration is a call of its own, made once
a D step, so that a network used several times in a step sees one weight and evaluation has no side effect.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.grow import grow_rows


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

    @torch.no_grad()
    def power_iteration(self) -> None:
        """One step of the power method for the first singular vectors."""
        matrix = self.weight.flatten(1)
        torch.mv(matrix.t(), self.u, out=self.v)
        self.v.div_(self.v.norm() + 1e-12)
        torch.mv(matrix, self.v, out=self.u)
        self.u.div_(self.u.norm() + 1e-12)

    def normalized(self) -> Tensor:
        """Weight / σ, with σ = uᵀ W v differentiable in W."""
        sigma = torch.dot(self.u, torch.mv(self.weight.flatten(1), self.v))
        return self.weight / sigma


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
    """A network with spectral layers."""

    def power_iteration(self) -> None:
        """Follow the weights with the spectral norm; once a D step."""
        for module in self.modules():
            if isinstance(module, Spectral):
                module.power_iteration()
