"""`ordisco bench`: how fast a step is, against its limit and against plain code, and whether a stream slows it down."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ordisco.cli.options import given
from ordisco.config import MachineSettings
from ordisco.errors import UsageError

PRESETS = ("small", "paper")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "bench",
        help="measure speed, memory and growth",
        description="Measure a training step against its convolutions and against plain code, and the growth of time "
        "and storage over a stream. Times are ratios taken in turn in one process.",
    )
    parser.add_argument(
        "--preset", choices=("demo", "small", "paper"), action="append", help="repeatable (default: small and paper)"
    )
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns of each measurement (default: 5)")
    parser.add_argument("--increments", type=int, default=30, metavar="N", help="of the growing stream (default: 30)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--threads", type=int, default=argparse.SUPPRESS, metavar="N", help="CPU threads (default: all)"
    )
    parser.add_argument("--precision", default=argparse.SUPPRESS, help="32-true or bf16-mixed (default: 32-true)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Measure and print."""
    for name in ("rounds", "increments"):
        if getattr(args, name) < 1:
            raise UsageError(f"{name} = {getattr(args, name)} is not allowed: 1 or more")
    machine = MachineSettings(**given(args, MachineSettings))
    results = measurements(tuple(args.preset or PRESETS), machine, args.rounds, args.increments)
    if args.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


def measurements(presets: tuple[str, ...], machine: MachineSettings, rounds: int, increments: int) -> dict[str, Any]:
    """Everything that the command prints."""
    import os
    import platform

    import torch

    from ordisco.bench import measure
    from ordisco.peak import peak_memory

    results: dict[str, Any] = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "torch": torch.__version__,
        "presets": {},
    }
    for name in presets:
        few = max(1, rounds // 3) if name == "paper" else rounds
        results["presets"][name] = measure.step_ratios(name, machine, few) | measure.throughput(name, machine, few)
    results |= measure.growth(machine, increments)
    offline = max(2, increments // 3)
    results["offline"] = {name: measure.growth(machine, offline, name) for name in ("offline-all", "offline-last")}
    results |= measure.start_up(min(rounds, 3))
    results["peak_memory_bytes"] = peak_memory(torch.device("cpu"))
    return results


def show(results: dict[str, Any]) -> None:
    """The same in words."""
    from ordisco.report.table import markdown_table
    from ordisco.report.words import size

    header = ["", *results["presets"]]
    rows = [
        ("step / its convolutions and matrix products", "step_over_limit", "{:.2f} ×"),
        ("plain code / step", "plain_over_step", "{:.2f} ×"),
        ("step, seconds", "step_seconds", "{:.3f}"),
        ("generated images a step", "batch", "{}"),
        ("threads", "threads", "{}"),
        ("precision", "precision", "{}"),
        ("images evaluated a second", "evaluated_images_per_second", "{:,.0f}"),
        ("images sampled a second", "sampled_images_per_second", "{:,.0f}"),
        ("checkpoint saved, seconds", "checkpoint_save_seconds", "{:.3f}"),
        ("checkpoint loaded, seconds", "checkpoint_load_seconds", "{:.3f}"),
    ]
    measured = results["presets"].values()
    print(markdown_table(header, [[title, *(form.format(one[key]) for one in measured)] for title, key, form in rows]))
    print()
    growing = {"ORDisCo": results, "offline (1)": results["offline"]["offline-all"]}
    growing["offline (2)"] = results["offline"]["offline-last"]
    header = ["growth", "increments", "last / first increment's seconds", "bytes kept, first", "last"]
    table = []
    for name, values in growing.items():
        seconds, kept = values["seconds_per_increment"], values["bytes_per_increment"]
        third = max(1, len(seconds) // 3)
        slower = sum(seconds[-third:]) / sum(seconds[:third])
        table.append([name, str(len(seconds)), f"{slower:.2f} ×", size(int(kept[0])), size(int(kept[-1]))])
    print(markdown_table(header, table))
    print(
        f"\nordisco --help {results['help_seconds']:.2f} s, import {results['import_seconds']:.2f} s, "
        f"peak memory {size(results['peak_memory_bytes'])}, {results['machine']['cores']} cores, "
        f"torch {results['torch']}"
    )
