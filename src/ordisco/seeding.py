"""Random numbers that depend on nothing but the seed and where we are: step t of a resumed run draws the same."""

from __future__ import annotations

import hashlib


def derive_seed(seed: int, *place: int | str) -> int:
    """A 63-bit seed for a place, such as ("step", 1200): the same on every machine, unrelated for other places."""
    text = ":".join(str(part) for part in (seed, *place)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1
