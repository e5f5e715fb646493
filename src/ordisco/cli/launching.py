"""Where several runs are made: the options that `run`, `resume`, `study` and `paper` share."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.cli.options import check_ranges
from ordisco.errors import UsageError, shown

if TYPE_CHECKING:
    from ordisco.launchers.base import Launcher
    from ordisco.studies.launching import Launching

LAUNCHERS = ("local", "ray", "slurm")
MOST_CPUS, MOST_AMOUNT = 4_096, 1e6


def add_launcher(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    group = parser.add_argument_group("Where several runs are made", "docs/scale.md has examples.")
    group.add_argument("--launcher", choices=LAUNCHERS, default="local", help="what makes them (default: local)")
    group.add_argument(
        "--detach", action="store_true", help="leave the runs to the launcher and return; the same command goes on"
    )
    group.add_argument(
        "--ray-address", metavar="ADDRESS", help="of a Ray cluster (default: one that lasts as long as the command)"
    )
    group.add_argument("--run-cpus", type=int, metavar="N", help="CPUs that a run takes (default: its threads)")
    group.add_argument(
        "--run-gpus", type=float, metavar="X", help="GPUs that a run takes (default: its devices if --accelerator cuda)"
    )
    group.add_argument("--run-memory", type=float, metavar="GB", help="memory that a run takes (default: 1 a device)")
    group.add_argument("--run-hours", type=float, metavar="H", help="longest time of a Slurm task (default: 24)")
    group.add_argument(
        "--slurm", action="append", metavar="KEY=VALUE", help="an option of sbatch, such as partition=gpu; repeatable"
    )


def launching_of(args: argparse.Namespace, folder: Path) -> Launching | None:
    """What the options ask for, for runs in this folder; None for processes of this machine."""
    check_ranges(args, run_cpus=(1, MOST_CPUS))
    for name, low in (("run_gpus", 0.0), ("run_memory", 0.001), ("run_hours", 0.02)):
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and low <= value <= MOST_AMOUNT):
            raise UsageError(f"{name} = {shown(value)} is not allowed: from {low:g} to {MOST_AMOUNT:g}")
    for name, launcher in (("ray_address", "ray"), ("run_hours", "slurm"), ("slurm", "slurm")):
        if getattr(args, name) is not None and args.launcher != launcher:
            raise UsageError(f"{name} is not allowed with --launcher {args.launcher}: it is of {launcher}")
    if args.launcher == "local" and not args.detach:
        return None
    from ordisco.studies.launching import Launching

    memory = None if args.run_memory is None else int(args.run_memory * 2**30)
    return Launching(launcher_of(args, folder), args.run_cpus, args.run_gpus, memory, args.detach)


def launcher_of(args: argparse.Namespace, folder: Path) -> Launcher:
    """The launcher of that name."""
    if args.launcher == "ray":
        from ordisco.launchers.ray import Ray

        return Ray(args.ray_address)
    if args.launcher == "slurm":
        from ordisco.launchers.slurm import Slurm

        return Slurm(folder.resolve(), args.run_hours or 24.0, sbatch_options(args.slurm or []))
    from ordisco.launchers.local import Local

    return Local()


def sbatch_options(pairs: list[str]) -> dict[str, str]:
    """`partition=gpu` as sbatch has it."""
    options = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found or not key.replace("-", "").isalnum():
            raise UsageError(f"slurm = {shown(pair)} is not allowed: KEY=VALUE, such as partition=gpu")
        options[key] = value
    return options
