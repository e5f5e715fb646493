"""The processes of a data-parallel run: sums over them, and the rows of a tensor shared out and put together again.

Whatever is not shared out is computed by every process alike, from the same numbers. The two functions keep it so in
the backward pass: what every process has, has the whole gradient in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """All processes of the run; this one is number `rank` of `size`."""

    rank: int
    size: int

    def rows(self, count: int) -> slice:
        """The rows of so many that are this process's; the shares differ by one row at most.

        >>> [Group(rank, 3).rows(7) for rank in range(3)]
        [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
        """
        return slice(self.rank * count // self.size, (self.rank + 1) * count // self.size)

    def sum_(self, tensor: Tensor) -> Tensor:
        """Add up a tensor over the processes, in place; the result is the same in all, bit for bit."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def whole(self, part: Tensor, count: int) -> Tensor:
        """All rows, where each process has its own."""
        full = part.new_zeros(count, *part.shape[1:])
        full[self.rows(count)] = part
        return self.sum_(full)

    def alike(self, checksum: int, device: torch.device) -> bool:
        """Do all processes have the same checksum (63 bits)?"""
        own = torch.zeros(self.size, dtype=torch.int64, device=device)
        own[self.rank] = checksum
        return bool((self.sum_(own) == checksum).all())


ALONE = Group(0, 1)


def share_out(x: Tensor, group: Group) -> Tensor:
    """The rows that are this process's, of what every process has."""
    part: Tensor = _ShareOut.apply(x, group)  # type: ignore[no-untyped-call]
    return part


def put_together(part: Tensor, count: int, group: Group) -> Tensor:
    """All rows, in every process."""
    full: Tensor = _PutTogether.apply(part, count, group)  # type: ignore[no-untyped-call]
    return full


# Gradients of parameters are averaged over the processes at the end of a step. Those of a part are sums over its own
# rows, so they are weighed by the number of processes here, and those of the whole come out as they are.


class _ShareOut(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group) -> Tensor:
        ctx.count, ctx.group = len(x), group
        return x[group.rows(len(x))].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.group.whole(gradient, ctx.count) / ctx.group.size, None


class _PutTogether(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, count: int, group: Group) -> Tensor:
        ctx.rows, ctx.group = group.rows(count), group
        return group.whole(part, count)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient[ctx.rows] * ctx.group.size, None, None
