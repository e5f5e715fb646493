"""Random numbers that depend on nothing but the seed and where we are: step t of a resumed run draws the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derive_seed(seed: int, *place: int | str) -> int:
    """A 63-bit seed for a place, such as ("step", 1200): the same on every machine, unrelated for other places.

    >>> derive_seed(0, "step", 1200) == derive_seed(0, "step", 1200) != derive_seed(0, "step", 1201)
    True
    """
    text = ":".join(str(part) for part in (seed, *place)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def set_seed(seed: int, device: torch.device) -> None:
    """As `torch.manual_seed`, which on a machine without a GPU takes a millisecond to note where it was called."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        torch.manual_seed(seed)


@contextmanager
def seeded(device: torch.device, seed: int, *place: int | str) -> Iterator[None]:
    """Seed torch for a place, and leave the caller's random state as it was."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        set_seed(derive_seed(seed, *place), device)
        yield
