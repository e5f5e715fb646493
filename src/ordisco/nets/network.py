"""One network with its flat vector and, while it learns, its optimiser."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ordisco.nets.adam import Adam
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

    def copy_new(self, of: nn.Module, to: nn.Module) -> None:
        """The rows that were added to one network, as they are in another that grew alike."""
        for mine, its, old, new in zip(to.parameters(), of.parameters(), self.old, self.new, strict=True):
            if old != new:
                mine.data[old[0] :] = its.data[old[0] :]


class Network:
    """One network, its flat vector and, while it learns, its optimiser."""

    def __init__(self, module: nn.Module, device: torch.device) -> None:
        self.module = module.to(device)
        self.flat = Flat(self.module)
        self.optimizer: Adam | None = None
        self._modules = tuple(self.module.modules())

    def modules(self) -> tuple[nn.Module, ...]:
        """All modules inside; found once, as growing changes parameters and no module."""
        return self._modules

    def start_optimizer(self, lr: float, betas: tuple[float, float], keep: bool = False) -> None:
        """Adam on the flat vector, from scratch; with `keep`, one that is there goes on."""
        if self.optimizer is None or not keep:
            self.optimizer = Adam(self.flat.vector, lr, betas)

    def learn_at(self, share: float) -> None:
        """Take that share of the rate from now on."""
        assert self.optimizer is not None
        self.optimizer.share = share

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
        layout = Layout(old, [p.shape for p in self.module.parameters()])
        if self.optimizer is not None:
            moments, lr, betas = self.optimizer.moments, self.optimizer.lr, self.optimizer.betas
            self.optimizer = Adam(self.flat.vector, lr, betas)
            self.optimizer.moments = {
                key: layout.relay(value) if value.dim() else value for key, value in moments.items()
            }
        return layout

    @property
    def moments(self) -> dict[str, Tensor]:
        """What the optimiser remembers of earlier steps."""
        return {} if self.optimizer is None else dict(self.optimizer.moments)

    def state(self, name: str) -> dict[str, Tensor]:
        """Weights, buffers and the optimiser's moments."""
        return self.flat.state(name) | {f"{name}.adam.{key}": value for key, value in self.moments.items()}

    def load(self, name: str, tensors: dict[str, Tensor]) -> None:
        """Put a checkpoint back; the optimiser must have been started as it was."""
        self.flat.load(name, tensors)
        prefix = f"{name}.adam."
        moments = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
        if self.optimizer is not None and moments:
            device = self.flat.vector.device  # copies, as Adam changes its moments in place
            self.optimizer.moments = {k: v.to(device, copy=True) for k, v in moments.items()}
