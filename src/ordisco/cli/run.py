"""`ordisco run`: learn a stream with one method or several."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.cli.launching import add_launcher, launching_of
from ordisco.cli.options import add_settings, check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import UsageError, shown
from ordisco.machine.environment import recognised
from ordisco.runs.config import DEMO_STREAM, FIELDS, RunConfig
from ordisco.runs.presets import PRESETS
from ordisco.settings.fields import MOST_SEED
from ordisco.settings.learner import GROUPS
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import METHODS
from ordisco.streams.catalogue import STREAMS
from ordisco.streams.settings import DATASETS, StreamSettings

if TYPE_CHECKING:
    from ordisco.report.table import TextTable
    from ordisco.report.terminal import Display

DEMO_METHODS = ("ordisco", "smb")
MOST_RUNS, MOST_STEPS, MOST_JOBS = 10_000, 10**15, 1_024


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "run",
        usage="ordisco run [STREAM] [--method M ...] [--preset P] [--seed N] [--out DIR] [options]",
        help="learn a stream and evaluate after each increment",
        description="Learn a stream and evaluate after each increment. Without arguments: ORDisCo and SMB on the "
        "embedded digits, side by side.",
        epilog=f"Streams: {', '.join(STREAMS)}. A data set ({', '.join(DATASETS)}) or a path will do too.",
    )
    parser.add_argument("name", metavar="STREAM", nargs="?", help=f"what to learn (default: {DEMO_STREAM})")
    parser.add_argument(
        "--method", action="append", metavar="M", help="a row of `ordisco methods`, or all; repeat it to compare"
    )
    parser.add_argument("--preset", choices=tuple(PRESETS), help="settings (default: demo for digits, else small)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and of learning (default: 0)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="run N seeds, from --seed on (default: 1)")
    parser.add_argument("--out", type=path_of, metavar="DIR", help="directory of the run (default: below runs/)")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop, saved, after N steps in all")
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="runs of a comparison made at once, a process each (default: as many as there are cores, where a run "
        "takes one thread)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print settings, sizes and an estimate of the time, and stop"
    )
    add_launcher(parser)
    add_settings(parser, StreamSettings, note="A named stream sets its own defaults.")
    for group in GROUPS:
        add_settings(parser, group, "paper")
    add_settings(parser, MachineSettings)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Make the runs that the options ask for."""
    config, methods, seeds = configuration(args)
    if args.dry_run:
        from ordisco.runs.estimate import dry_run

        for name in methods:
            dry_run(dataclasses.replace(config, method=name))
        return
    from ordisco.machine.processes import start
    from ordisco.report.voice import one_voice
    from ordisco.runs.directory import default_path

    elsewhere = launching_of(args, Path()) is not None  # options that are wrong are told first
    fabric = start(dataclasses.replace(config.machine, devices=1, num_nodes=1) if elsewhere else config.machine)
    with one_voice(fabric) as display:
        path: Path = fabric.broadcast(args.out or default_path(config.stream_name, title_of(methods), config.seed))
        if len(methods) == 1 and len(seeds) == 1 and not elsewhere:
            from ordisco.runs.launch import new_run

            with new_run(config, path, display, fabric) as single:
                complete = single.go(args.max_steps)
            tell_where(display, path, complete)
            return
        from ordisco.studies.comparison import Comparison
        from ordisco.studies.engine import jobs_at_once

        comparison = Comparison(path, config, methods, seeds)
        jobs = args.jobs
        if not elsewhere:
            jobs = jobs_at_once([config.machine], len(methods) * len(seeds), fabric, args.jobs)
        comparison.start(fabric)
        table = comparison.go(display, fabric, args.max_steps, jobs, launching_of(args, path))
        show_comparison(display, table, path)


def title_of(methods: tuple[str, ...]) -> str:
    """The methods' part of a directory's name."""
    return "+".join(methods) if len(methods) <= 3 else f"{methods[0]}+{len(methods) - 1}-others"


def configuration(args: argparse.Namespace) -> tuple[RunConfig, tuple[str, ...], tuple[int, ...]]:
    """The configuration of the first run, and the methods and seeds to run."""
    check_numbers(args)
    name = DEMO_STREAM if args.name is None else args.name
    asked = args.method or (DEMO_METHODS if args.name is None else ("ordisco",))
    for method in asked:
        if method not in METHODS and method != "all":
            raise UsageError(f"method = {shown(method)} is not allowed: all, or one of {', '.join(METHODS)}")
    methods = tuple(METHODS) if "all" in asked else tuple(dict.fromkeys(asked))
    if len(methods) * args.seeds > MOST_RUNS:
        raise UsageError(f"{len(methods)} methods with {args.seeds} seeds are not allowed: at most {MOST_RUNS} runs")
    changes = {field: value for field, value in vars(args).items() if field in FIELDS}
    at_once = min(args.jobs or 1, len(methods) * args.seeds)
    config = RunConfig.resolve(name, methods[0], args.preset, args.seed, runs_at_once=at_once, **changes)
    config = dataclasses.replace(config, machine=recognised(config.machine))
    dataclasses.replace(config, seed=args.seed + args.seeds - 1)  # refuses a last seed that is too large
    return config, methods, tuple(range(args.seed, args.seed + args.seeds))


def check_numbers(args: argparse.Namespace) -> None:
    """Refuse numbers out of range."""
    check_ranges(args, seed=(0, MOST_SEED), seeds=(1, MOST_RUNS), max_steps=(1, MOST_STEPS), jobs=(1, MOST_JOBS))


def tell_where(display: Display, path: Path, complete: bool) -> None:
    """The last line of a run."""
    if complete:
        display.message(f"everything is in {path}; start with {path / 'summary.md'}")
    else:
        from ordisco.runs.directory import resume_command

        display.message(f"go on with: {resume_command(path)}")


def show_comparison(display: Display, table: TextTable | None, path: Path) -> None:
    """The table of all methods, and where the pictures are."""
    if table is None:
        tell_where(display, path, complete=False)
        return
    display.comparison(table, "accuracy on the classes seen")
    display.message(f"table and curves: {path / 'comparison.md'}, {path / 'comparison.png'}")
    for folder in sorted(path.glob("*/samples"))[:1]:
        display.message(f"generated images: {max(folder.glob('*.png'))}")
