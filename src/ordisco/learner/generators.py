"""Generators kept from earlier increments, for the paper's two ways of offline replay, and the noise they take."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ordisco.nets.flat import Flat, frozen
from ordisco.nets.gan import AnyGenerator
from ordisco.nets.generator import ConditionalBatchNorm


def draw_noise(count: int, z_dim: int, num_classes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Z ~ N(0, 1) and y′ uniform over the classes seen so far."""
    y = torch.randint(num_classes, (count,), device=device)
    return torch.randn(count, z_dim, device=device), y


class SavedGenerators:
    """Generators kept from earlier increments.

    Strategy (1), `offline-all`: one of every increment, storage O(B). Strategy (2), `offline-last`: only the
    last one, storage O(1). Both replay as many images of each old increment as there are new ones, so the steps of
    increment b grow as b and the time of the stream as O(B²) when C is evaluated after every increment.
    """

    def __init__(self, keep_all: bool) -> None:
        self.keep_all = keep_all
        self.saved: list[tuple[Flat, int]] = []  # each generator, and how many classes had been seen

    def __len__(self) -> int:
        return len(self.saved)

    @property
    def bytes(self) -> int:
        """Storage of the saved generators."""
        return sum(flat.theta.nbytes + flat.buffers.nbytes for flat, _ in self.saved)

    def save(self, G: nn.Module, num_classes: int) -> None:
        """Keep the generator as it is now."""
        entry = (frozen(G), num_classes)
        self.saved = [*self.saved, entry] if self.keep_all else [entry]

    @torch.no_grad()
    def draw(self, count: int, z_dim: int) -> tuple[Tensor, Tensor]:
        """Images and class slots from a saved generator chosen at random."""
        flat, num_classes = self.saved[int(torch.randint(len(self.saved), (1,)))]
        z, y = draw_noise(count, z_dim, num_classes, flat.theta.device)
        return flat.module(z, y), y

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        capacities = [len(_rows(flat.module)) for flat, _ in self.saved]
        counts = [count for _, count in self.saved]
        tensors = {"saved.classes": torch.tensor([counts, capacities], dtype=torch.int64)}
        for i, (flat, _) in enumerate(self.saved):
            tensors |= flat.state(f"saved.{i}")
        return tensors

    def load(self, tensors: dict[str, Tensor], build: Callable[[int], AnyGenerator]) -> None:
        """Take over saved tensors; `build(capacity)` makes an empty generator."""
        self.saved = []
        for i, (count, capacity) in enumerate(tensors["saved.classes"].t().tolist()):
            flat = Flat(build(capacity).eval().requires_grad_(False))
            flat.load(f"saved.{i}", tensors)
            self.saved.append((flat, count))


def _rows(G: nn.Module) -> Tensor:
    """A parameter of G with one row a class."""
    return next(part.scale for part in G.modules() if isinstance(part, ConditionalBatchNorm))
