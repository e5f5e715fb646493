"""The memory that this process holds, and the most that a run has held."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

STATUS = Path("/proc/self/status")


def reset_peak_memory(device: torch.device) -> None:
    """Begin to measure anew: several runs may share a process. On the CPU only Linux can."""
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: torch.device) -> int | None:
    """Bytes on the GPU if the run uses one, else in RAM; None on a system that does not tell."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return most_resident()


def most_resident() -> int | None:
    """The most bytes of RAM; `getrusage` begins with what the program that started this one held, so Linux is asked."""
    if (peak := told_by_linux("VmHWM")) is not None:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_memory() -> int | None:
    """Bytes of RAM now; None on a system that does not tell."""
    return told_by_linux("VmRSS")


def told_by_linux(name: str, status: Path = STATUS) -> int | None:
    """A size of this process by its name in Linux; None elsewhere."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith(f"{name}:"):
                return 1024 * int(line.split()[1])
    return None
