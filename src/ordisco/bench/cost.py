"""A small model of what a data-parallel step costs, for machines that are not here. Needs no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """What joins the processes: seconds of the smallest message, bytes a second of a long one."""

    latency: float
    bandwidth: float

    @staticmethod
    def measured(small: float, size: int, large: float, processes: int) -> Link:
        """From the seconds of a sum of a few bytes and of one of `size` bytes."""
        rounds = 2 * math.ceil(math.log2(processes))
        moved = 2 * (processes - 1) / processes * size
        return Link(small / rounds, moved / max(1e-9, large - small))


def reduce(size: int, processes: int, link: Link) -> float:
    """Seconds of one sum over the processes: up and down a tree, each byte sent and received once (ring).

    >>> round(reduce(1_000_000, 2, Link(1e-4, 1e9)), 5)
    0.0012
    """
    if processes == 1:
        return 0.0
    return 2 * math.ceil(math.log2(processes)) * link.latency + 2 * (processes - 1) / processes * size / link.bandwidth


def told(sizes: Iterable[int], processes: int, link: Link) -> float:
    """Seconds of all sums of a step."""
    return sum(reduce(size, processes, link) for size in sizes)


@dataclass(frozen=True)
class Step:
    """A step of ORDisCo: its work, and what it sends."""

    flop: float  # of the whole mini-batch
    gradients: int  # bytes of all gradients that are summed in a step: D's once for each of its steps
    small: int  # sums of a few kilobytes: batch norm, losses
    images: int  # bytes of the mini-batch's generated and drawn images, which all processes get

    def seconds(self, processes: int, flops: float, link: Link) -> tuple[float, float]:
        """Seconds of work, and of telling each other, where a device makes `flops` operations a second."""
        apart = self.small * reduce(4_096, processes, link)
        return self.flop / processes / flops, reduce(self.gradients, processes, link) + reduce(
            self.images, processes, link
        ) + apart


def importance_seconds(images: float, flop: float, processes: int, flops: float) -> float:
    """Eq. 10 at the end of an increment: a forward and backward pass of D for each image, one by one."""
    return images * flop / processes / flops
