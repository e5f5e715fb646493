"""One network with its flat vector and, while it learns, its optimiser."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.optim import Adam

from ordisco.nets.flat import Flat


@dataclass(frozen=True)
class Layout:
    """The shapes of a network's parameters before and after it grew, to lay flat vectors anew."""

    old: list[torch.Size]
    new: list[torch.Size]

    def relay(self, vector: Tensor) -> Tensor:
        """A vector over the old parameters as one over the new; new entries are 0."""
        parts = []
        pieces = vector.split([shape.numel() for shape in self.old])
        for piece, old, new in zip(pieces, self.old, self.new, strict=True):
            part = vector.new_zeros(new)
            part[tuple(slice(0, size) for size in old)] = piece.view(old)
            parts.append(part.reshape(-1))
        return torch.cat(parts)


class Network:
    """One network, its flat vector and, while it learns, its optimiser."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.module = module.to(device)
        self.flat = Flat(self.module)
        self.optimizer: Adam | None = None

    def start_optimizer(self, lr: float, betas: tuple[float, float]) -> None:
        """Adam on the flat vector, from scratch: moments are not carried from one increment to the next."""
        self.optimizer = Adam([self.flat.vector], lr=lr, betas=betas, fused=True)

    def step(self) -> None:
        """One optimiser step; the gradient is set to zero for the next."""
        assert self.optimizer is not None
        self.optimizer.step()
        self.flat.grad.zero_()

    def grow(self, num_classes: int) -> Layout:
        """Make room for more classes and lay the flat vectors anew."""
        old = [p.shape for p in self.module.parameters()]
        self.module.grow(num_classes)  # type: ignore[operator]
        self.flat = Flat(self.module)
        return Layout(old, [p.shape for p in self.module.parameters()])

    def state(self, name: str) -> dict[str, Tensor]:
        """Weights, buffers and the optimiser's moments."""
        tensors = self.flat.state(name)
        if self.optimizer is not None:
            for key, value in self.optimizer.state.get(self.flat.vector, {}).items():
                tensors[f"{name}.adam.{key}"] = value
        return tensors

    def load(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Put a checkpoint back; the optimiser must have been started as it was."""
        self.flat.load(name, tensors)
        prefix = f"{name}.adam."
        moments = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        if self.optimizer is not None and moments:
            device = self.flat.vector.device  # copies, as Adam changes its moments in place
            self.optimizer.state[self.flat.vector] = {k: v.to(device, copy=True) for k, v in moments.items()}
