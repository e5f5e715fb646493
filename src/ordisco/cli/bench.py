"""`ordisco bench`: how fast a step is, whether a stream slows it down, start-up and memory; against a saved report."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import get_args

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import UsageError
from ordisco.settings.machine import Accelerator, MachineSettings
from ordisco.streams.settings import MOST_INCREMENTS

PRESETS = ("demo", "small", "small-colour", "paper")
STDOUT = Path("-")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "bench",
        help="measure speed, memory, start-up and growth; compare with a saved report",
        description="Measure a training step against its convolutions and against plain code, growth over a stream, "
        "start-up and memory. Ratios are medians of turns taken in one process. About six minutes on two quiet cores.",
    )
    parser.add_argument(
        "--preset", choices=PRESETS, action="append", help="repeatable (default: all but paper, which is slow on a CPU)"
    )
    parser.add_argument(
        "--threads", type=int, action="append", metavar="N", help="CPU threads, repeatable (default: 1, and 2)"
    )
    parser.add_argument("--rounds", type=int, default=15, metavar="N", help="turns of a measurement (default: 15)")
    parser.add_argument("--increments", type=int, default=300, metavar="N", help="of the growing stream (default: 300)")
    parser.add_argument(
        "--json", type=path_of, metavar="FILE", help="save as JSON; in a folder, by the processor's name; - prints it"
    )
    parser.add_argument(
        "--against", type=path_of, metavar="FILE", help="compare with a saved report; in a folder, this processor's"
    )
    parser.add_argument(
        "--accelerator",
        choices=get_args(Accelerator),
        default="cpu",
        help="where to compute (default: cpu)",
    )
    parser.add_argument("--precision", default="32-true", help="32-true or bf16-mixed (default: 32-true)")
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
    threads = tuple(args.threads or ())
    for count in threads:
        MachineSettings(threads=count)  # refuses what is out of range
    machine = MachineSettings(accelerator=args.accelerator, precision=args.precision)
    if args.against is not None and (args.profile or args.scale):
        raise UsageError("--against is not for --profile or --scale")
    if args.scale:
        tell(*scaled(tuple(args.preset or ("demo", "small")), args.rounds), args.json)
    elif args.profile:
        tell(*profiled(tuple(args.preset or ("small",)), machine, threads or (1,)), args.json)
    else:
        report(args, machine, threads)


def report(args: argparse.Namespace, machine: MachineSettings, threads: tuple[int, ...]) -> None:
    """All measurements, their tables, and the comparison."""
    from ordisco.bench import here
    from ordisco.bench.against import compared
    from ordisco.bench.everything import USUAL, Plan, measured, usual_threads
    from ordisco.bench.tables import tables
    from ordisco.bench.values import read_report

    name = here.file_of(here.machine(machine.accelerator, machine.precision))
    then = None if args.against is None else read_report(in_folder(args.against, name))
    plan = Plan(
        tuple(args.preset or USUAL), threads or usual_threads(machine.accelerator), args.rounds, args.increments
    )
    now = measured(plan, machine)
    text = (
        tables(now) if then is None else f"{tables(now)}\n\nAgainst {here.words(then.machine)}\n\n{compared(now, then)}"
    )
    tell(now.to_dict(), text, None if args.json is None else in_folder(args.json, name))


def in_folder(path: Path, name: str) -> Path:
    """The file of this machine in a folder, or the file that was given."""
    return path / name if path.is_dir() else path


def tell(found: object, text: str, file: Path | None) -> None:
    """Tables on standard output, JSON into a file; with `-`, JSON in their place."""
    from ordisco.bench.values import write_report

    as_json = json.dumps(found, indent=1, ensure_ascii=False)
    if file == STDOUT:
        print(as_json)
        return
    if file is not None:
        write_report(file, as_json + "\n")
    print(text)


def scaled(presets: tuple[str, ...], rounds: int) -> tuple[object, str]:
    """What launchers and data-parallel processes cost."""
    import importlib.util

    from ordisco.bench import scale

    seconds = scale.launchers(importlib.util.find_spec("ray") is not None)
    cases = [(name, count) for name in presets for count in (2, 4)]
    parallel = [{"preset": name} | scale.parallel(name, count, rounds) for name, count in cases]
    found = {"seconds": seconds, "launchers": scale.ratios(seconds), "parallel": parallel, "taken": scale.taken()}
    return found, scale.show(found)


def profiled(presets: tuple[str, ...], machine: MachineSettings, threads: tuple[int, ...]) -> tuple[object, str]:
    """The operations of one step of each preset, the longest first."""
    from ordisco.bench.profile import profile_step
    from ordisco.bench.tables import profile_tables

    found = {
        name: [dataclasses.asdict(p) for p in profile_step(name, dataclasses.replace(machine, threads=threads[0]))]
        for name in presets
    }
    return found, profile_tables(found)
