"""Time of augmenting 256 images of CIFAR-10's size on one core: python benchmarks/bench_augment.py."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from ordisco.data import augment

REPEATS = 100


def milliseconds(call: Callable[[], object]) -> float:
    """Median over the repeats, after a warm-up."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times)


def main() -> None:
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(256, 3, 32, 32, generator=generator) * 2 - 1
    for layout in (torch.contiguous_format, torch.channels_last):
        batch = images.contiguous(memory_format=layout)
        weak = milliseconds(lambda batch=batch: augment.weak(batch, 4, True, generator))
        strong = milliseconds(lambda batch=batch: augment.strong(batch, 4, True, generator))
        print(f"{layout!s:24} weak {weak:5.2f} ms   strong {strong:5.2f} ms")


if __name__ == "__main__":
    main()
