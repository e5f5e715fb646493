"""What this machine has: cores and memory, and how many runs they are enough for."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Sequence
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")
MEMORY = 2**30  # bytes that a run should have to itself, at least
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor(info: Path = CPU_INFO) -> str:
    """The processor's name, as far as the system tells; with family and model, as in a cloud many share a name."""
    name = entry(info, "model name") or platform.processor() or platform.machine()
    family, model = entry(info, "cpu family"), entry(info, "model")
    return f"{name}, family {family} model {model}" if family and model else name


def bf16_flags(info: Path = CPU_INFO) -> list[str]:
    """The processor's flags that speak of bf16, as far as the system tells; what they promise need not hold."""
    return [word for word in entry(info, "flags", "features").split() if "bf16" in word]


def entry(info: Path, *names: str) -> str:
    """The first entry of one of these names in Linux's description of its processors; empty where there is none."""
    with contextlib.suppress(OSError):
        for line in info.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() in names:
                return value.strip()
    return ""


def memory(limits: Sequence[Path] = LIMITS) -> int | None:
    """Bytes that this machine has, or that its container may use; None where the system does not tell."""
    known = []
    with contextlib.suppress(AttributeError, ValueError, OSError):  # Windows has no sysconf
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in limits:
        with contextlib.suppress(OSError, ValueError):  # no such group, or "max"
            known.append(int(file.read_text(encoding="utf-8")))
    return min((value for value in known if value > 0), default=None)


def usual_jobs(runs: int, threads: int | None) -> int:
    """As many runs at once as there are cores for their threads and memory for all; one where a run takes all cores."""
    if threads is None:
        return 1
    runs = min(runs, (memory() or runs * MEMORY) // MEMORY)
    return max(1, min(runs, cores() // threads))
