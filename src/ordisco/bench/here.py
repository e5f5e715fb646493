"""The machine by name: processor, instructions, cores, torch, commit; and the name of its file."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

from ordisco.machine.cores import CPU_INFO, cores, entry, processor
from ordisco.words import file_name

# what decides how fast products are, the widest first: a name, and the flag of Linux that tells
INSTRUCTIONS = (
    ("AMX-bf16", "amx_bf16"),
    ("AVX-512-bf16", "avx512_bf16"),
    ("AVX-512", "avx512f"),
    ("AVX2", "avx2"),
    ("SVE", "sve"),
    ("bf16", "bf16"),
)

# what a user can set so that torch and oneDNN use fewer instructions than the processor has
LIMITS = ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA")


def instructions(info: Path = CPU_INFO) -> list[str]:
    """Those of the processor, as far as the system tells."""
    flags = entry(info, "flags", "features").split()
    return [name for name, flag in INSTRUCTIONS if flag in flags]


def machine(accelerator: str, precision: str) -> dict[str, Any]:
    """Everything that a figure needs beside it."""
    import torch

    from ordisco.runs.made import code_now

    gpu = torch.cuda.get_device_name() if accelerator == "cuda" and torch.cuda.is_available() else None
    return {
        "processor": processor(),
        "instructions": instructions(),
        "limits": {name: os.environ[name] for name in LIMITS if name in os.environ},
        "cores": cores(),
        "gpu": gpu,
        "precision": precision,
        "system": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_uses": torch.backends.cpu.get_cpu_capability(),
        **code_now(),
    }


def words(of: dict[str, Any]) -> str:
    """One line."""
    commit = of.get("commit")
    code = f"commit {commit[:7]}" + (" with changes" if of.get("dirty") else "") if commit else f"{of.get('version')}"
    gpu = [of["gpu"]] if of.get("gpu") else []
    parts = [*gpu, of.get("processor"), " ".join(of.get("instructions", [])), f"{of.get('cores')} cores"]
    parts += [f"held back by {name}={value}" for name, value in of.get("limits", {}).items()]
    parts += [of.get("precision"), f"torch {of.get('torch')}", code]
    return ", ".join(str(part) for part in parts if part)


def file_of(of: dict[str, Any]) -> str:
    """The name of the machine's file, as `amd-epyc-avx-512-bf16.json`: processors may share the first part."""
    widest = [] if of.get("gpu") else of["instructions"][:1]
    held = [f"held to {value}" for value in sorted({value.lower() for value in of.get("limits", {}).values()})]
    name = [
        of.get("gpu") or of["processor"],
        *widest,
        *held,
        *([] if of["precision"] == "32-true" else [of["precision"]]),
    ]
    return file_name(" ".join(name).replace("(R)", "")).lower().strip("-") + ".json"
