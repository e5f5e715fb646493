"""All parameters of a network as views of one vector, and so their gradients and their float buffers.

An optimiser step, the moving average and an importance-weighted penalty are then single operations on one
tensor, a checkpoint is a few vectors, and data-parallel training reduces one gradient a network.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn


def frozen(module: nn.Module) -> Flat:
    """A copy as it is now, in evaluation mode, that gets no gradient."""
    return Flat(copy.deepcopy(module).eval().requires_grad_(False))


class Flat:
    """One vector behind the parameters of `module` and one behind its float buffers."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        parameters = list(module.parameters())
        vector = torch.cat([p.detach().reshape(-1) for p in parameters])
        self.vector = nn.Parameter(vector)
        self.vector.grad = torch.zeros_like(vector)
        offset = 0
        for p in parameters:
            part = slice(offset, offset + p.numel())
            p.data = vector[part].view(p.shape)
            p.grad = self.vector.grad[part].view(p.shape)
            offset += p.numel()
        self.buffers = self._flatten_buffers()

    def _flatten_buffers(self) -> Tensor:
        owners = [
            (owner, name)
            for owner in self.module.modules()
            for name, buffer in owner.named_buffers(recurse=False)
            if buffer.is_floating_point()
        ]
        if not owners:
            return torch.zeros(0, device=self.vector.device)
        old = [getattr(owner, name) for owner, name in owners]
        flat = torch.cat([buffer.reshape(-1) for buffer in old])
        offset = 0
        for (owner, name), buffer in zip(owners, old, strict=True):
            setattr(owner, name, flat[offset : offset + buffer.numel()].view(buffer.shape))
            offset += buffer.numel()
        return flat

    @property
    def theta(self) -> Tensor:
        """The parameters as one detached vector that shares their memory."""
        return self.vector.data

    @property
    def grad(self) -> Tensor:
        """The gradients as one vector that shares their memory."""
        assert self.vector.grad is not None
        return self.vector.grad

    @torch.no_grad()
    def average(self, other: Flat, decay: float) -> None:
        """θ ← decay·θ + (1 − decay)·θ_other. Buffers stay: statistics of other weights are not those of an average."""
        self.theta.lerp_(other.theta, 1.0 - decay)

    def state(self, name: str) -> dict[str, Tensor]:
        """What a checkpoint holds of this network."""
        return {f"{name}.theta": self.theta, f"{name}.buffers": self.buffers}

    @torch.no_grad()
    def load(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Put a checkpoint's vectors back."""
        self.theta.copy_(tensors[f"{name}.theta"])
        self.buffers.copy_(tensors[f"{name}.buffers"])
