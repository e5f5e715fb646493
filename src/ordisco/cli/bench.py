"""`ordisco bench`: how fast a step is, against its limit and against plain code, and whether a stream slows it down."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ordisco.cli.options import check_ranges, given
from ordisco.settings.machine import MachineSettings
from ordisco.streams.settings import MOST_INCREMENTS

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
    parser.add_argument(
        "--profile", action="store_true", help="print where the time of a step goes instead: operations by their share"
    )
    parser.add_argument(
        "--scale", action="store_true", help="measure launchers and data-parallel steps instead, on two cores"
    )
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Measure and print."""
    check_ranges(args, rounds=(1, 10_000), increments=(1, MOST_INCREMENTS))
    machine = MachineSettings(**given(args, MachineSettings))
    if args.scale:
        print(scaled(tuple(args.preset or ("demo", "small")), args.rounds, args.json))
        return
    presets = tuple(args.preset or PRESETS)
    if args.profile:
        results = {name: profiled(name, machine) for name in presets}
    else:
        results = measurements(presets, machine, args.rounds, args.increments)
    if args.json:
        print(json.dumps(results, indent=2))
    elif args.profile:
        show_profile(results)
    else:
        show(results)


def scaled(presets: tuple[str, ...], rounds: int, as_json: bool) -> str:
    """What launchers and data-parallel processes cost."""
    import importlib.util

    from ordisco.bench import scale

    seconds = scale.launchers(importlib.util.find_spec("ray") is not None)
    cases = [(name, count) for name in presets for count in (2, 4)]
    parallel = [{"preset": name} | scale.parallel(name, count, rounds) for name, count in cases]
    found = {"seconds": seconds, "launchers": scale.ratios(seconds), "parallel": parallel, "taken": scale.taken()}
    return json.dumps(found, indent=2) if as_json else scale.show(found)


def profiled(name: str, machine: MachineSettings) -> list[dict[str, Any]]:
    """The operations of one step of a preset, the longest first."""
    import dataclasses

    from ordisco.bench.profile import profile_step

    return [dataclasses.asdict(part) for part in profile_step(name, with_threads(machine))]


def with_threads(machine: MachineSettings) -> MachineSettings:
    """The settings with all cores, if no threads are named: `growth` leaves torch with one."""
    import dataclasses

    from ordisco.machine.cores import cores

    return dataclasses.replace(machine, threads=machine.threads or cores())


def measurements(presets: tuple[str, ...], machine: MachineSettings, rounds: int, increments: int) -> dict[str, Any]:
    """Everything that the command prints."""
    import platform

    import torch

    from ordisco.bench import measure
    from ordisco.machine.cores import cores, processor

    results: dict[str, Any] = {
        "machine": {"processor": processor(), "cores": cores(), "system": platform.platform()},
        "torch": torch.__version__,
        "presets": {},
    }
    for name in presets:
        few = max(1, rounds // 3) if name == "paper" else rounds
        here = with_threads(machine)
        results["presets"][name] = measure.step_ratios(name, here, few) | measure.throughput(name, here, few)
        results["presets"][name]["peak_memory_bytes"] = measure.peak_of_steps(name, here)
    results |= measure.growth(machine, increments)
    results["offline"] = {name: measure.growth(machine, increments, name) for name in ("offline-all", "offline-last")}
    results |= measure.start_up(min(rounds, 3))
    return results


def show(results: dict[str, Any]) -> None:
    """The same as tables, ready for `docs/benchmarks.md`."""
    from ordisco.bench.measure import slope
    from ordisco.report.table import markdown_table
    from ordisco.words import size

    header = ["", *results["presets"]]
    rows = [
        ("step / its convolutions and matrix products", "step_over_limit", "{:.2f} ×"),
        ("plain code / step", "plain_over_step", "{:.2f} ×"),
        ("plain code's convolutions and matrix products alone / step", "plain_products_over_step", "{:.2f} ×"),
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
    table = [[title, *(form.format(one[key]) for one in measured)] for title, key, form in rows]
    peaks = [one["peak_memory_bytes"] for one in measured]
    table.append(["peak memory of a process", *("unknown" if peak is None else size(peak) for peak in peaks)])
    print(markdown_table(header, table))
    growing = {"ORDisCo": results, "offline (1)": results["offline"]["offline-all"]}
    growing["offline (2)"] = results["offline"]["offline-last"]
    header = ["growth", "increments", "seconds, first", "last", "more an increment", "bytes kept, first", "last"]
    table = []
    for name, values in growing.items():
        seconds, kept = values["seconds_per_increment"], values["bytes_per_increment"]
        more, error = slope(seconds)
        growth = f"{100 * more:+.2f} ± {100 * error:.2f} %"
        ends = [f"{seconds[0]:.3f}", f"{seconds[-1]:.3f}"]
        table.append([name, str(len(seconds)), *ends, growth, size(int(kept[0])), size(int(kept[-1]))])
    print(markdown_table(header, table))
    print(
        f"`ordisco --help` {results['help_seconds']:.2f} s, import {results['import_seconds']:.2f} s. "
        f"{results['machine']['processor']}, {results['machine']['cores']} cores, torch {results['torch']}."
    )


def show_profile(results: dict[str, Any], rows: int = 12) -> None:
    """The longest operations of each preset's step, and the sum of the others."""
    from ordisco.report.table import markdown_table

    for name, parts in results.items():
        first, rest = parts[:rows], parts[rows:]
        others = {key: sum(part[key] for part in rest) for key in ("share", "seconds", "calls")}
        table = [
            [part["name"], f"{100 * part['share']:.1f} %", f"{1000 * part['seconds']:.2f}", f"{part['calls']:.0f}"]
            for part in [*first, {"name": f"{len(rest)} others", **others}]
        ]
        print(markdown_table([f"{name}, operation", "share of the step", "milliseconds", "calls"], table))
