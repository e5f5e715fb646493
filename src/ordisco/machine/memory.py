"""The most memory that a run has held."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import torch


def reset_peak_memory(device: torch.device) -> None:
    """Begin to measure anew: several runs may share a process. On the CPU only Linux can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> int | None:
    """Bytes on the GPU if the run uses one, else in RAM; None on a system that does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
