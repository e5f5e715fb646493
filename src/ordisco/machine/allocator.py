"""Freed memory is kept for the next tensor, not given back to the system after every operation, but between phases."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's malloc.h
LARGE = 2**30


def keep_freed_memory() -> bool:
    """Tell glibc to reuse large blocks; without it a tenth of a CPU training step is page faults.

    Returns whether the C library took the advice; any other than glibc is left alone.
    """
    mallopt = _of_glibc("mallopt")
    return mallopt is not None and bool(mallopt(M_MMAP_THRESHOLD, LARGE)) and bool(mallopt(M_TRIM_THRESHOLD, LARGE))


def give_back_memory() -> bool:
    """Give all that is free to the system; returns whether there was any.

    Between two phases of work, whose tensors have other sizes: without it, holes of the one stay beside those of the
    other, and a process grows.
    """
    trim = _of_glibc("malloc_trim")
    return trim is not None and bool(trim(0))


def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of the C library, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL("libc.so.6"), name)
    except (OSError, AttributeError):
        return None
    return found
