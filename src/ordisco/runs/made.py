"""What a run is made with: the code and the machine."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ordisco.machine.cores import processor
from ordisco.settings.machine import MachineSettings


def code_now() -> dict[str, Any]:
    """The version, the commit of its checkout, and whether the package differs from it; None outside a checkout."""
    package = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(package), *words], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    if not git("ls-files", "--", "__init__.py"):  # installed somewhere below a checkout of something else
        return {"version": version_of("ordisco"), "commit": None, "dirty": None}
    changed = git("status", "--porcelain", "--", ".")
    dirty = None if changed is None else bool(changed)
    return {"version": version_of("ordisco"), "commit": git("rev-parse", "HEAD"), "dirty": dirty}


def machine_now(settings: MachineSettings) -> dict[str, Any]:
    """The processor and what numbers depend on beside it."""
    return {
        "torch": version_of("torch"),
        "python": platform.python_version(),
        "processor": processor(),
        "threads": settings.threads,
        "precision": settings.precision,
    }


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
