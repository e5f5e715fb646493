"""`ordisco run`: learn a stream with one method or several."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.cli.options import add_settings, given
from ordisco.config import MachineSettings, RunConfig
from ordisco.errors import UsageError
from ordisco.methods import METHODS
from ordisco.presets import PRESETS, preset, preset_stream
from ordisco.scenarios import DATASETS, STREAMS, StreamSettings, stream_settings
from ordisco.settings import GROUPS

if TYPE_CHECKING:
    from ordisco.report import MethodResult

DEMO_STREAM, DEMO_METHODS = "digits-5-new-class", ("ordisco", "smb")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "run",
        help="learn a stream and evaluate after each increment",
        description="Learn a stream and evaluate after each increment. Without arguments: ORDisCo and SMB on the "
        "embedded digits, side by side.",
        epilog=f"Streams: {', '.join(STREAMS)}. A data set ({', '.join(DATASETS)}) or a path will do too.",
    )
    parser.add_argument("name", metavar="STREAM", nargs="?", help=f"what to learn (default: {DEMO_STREAM})")
    parser.add_argument(
        "--method", action="append", metavar="M", help="a row of `ordisco methods`; repeat it to compare"
    )
    parser.add_argument("--preset", choices=tuple(PRESETS), help="settings (default: demo for digits, else small)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and of learning (default: 0)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="run N seeds, from --seed on (default: 1)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory of the run (default: below runs/)")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop, saved, after N steps in all")
    parser.add_argument(
        "--dry-run", action="store_true", help="print settings, sizes and an estimate of the time, and stop"
    )
    for group in (StreamSettings, *GROUPS, MachineSettings):
        add_settings(parser, group)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Make the runs that the options ask for."""
    config, methods, seeds = configuration(args)
    if args.dry_run:
        from ordisco.estimate import dry_run

        for name in methods:
            dry_run(dataclasses.replace(config, method=name))
        return
    from ordisco.compare import Comparison
    from ordisco.progress import make_display
    from ordisco.rundir import default_path

    display = make_display()
    try:
        if len(methods) == 1 and len(seeds) == 1:
            from ordisco.launch import new_run

            path = args.out or default_path(config.stream_name, config.method, config.seed)
            with new_run(config, path, display) as single:
                single.go(args.max_steps)
            display.message(f"everything is in {path}; start with {path / 'summary.md'}")
            return
        path = args.out or default_path(config.stream_name, "+".join(methods), config.seed)
        comparison = Comparison(path, config, methods, seeds)
        comparison.start()
        results = comparison.go(display, args.max_steps)
    finally:
        display.close()
    show_comparison(results, comparison.path)


def configuration(args: argparse.Namespace) -> tuple[RunConfig, tuple[str, ...], tuple[int, ...]]:
    """The configuration of the first run, and the methods and seeds to run."""
    if args.seeds < 1:
        raise UsageError(f"seeds = {args.seeds} is not allowed: 1 or more")
    if args.max_steps is not None and args.max_steps < 1:
        raise UsageError(f"max_steps = {args.max_steps} is not allowed: 1 or more")
    name = args.name or DEMO_STREAM
    methods = tuple(dict.fromkeys(args.method or (DEMO_METHODS if args.name is None else ("ordisco",))))
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"method = {method!r} is not allowed: one of {', '.join(METHODS)}")
    stream = stream_settings(name)
    chosen = args.preset or ("demo" if stream.dataset == "digits" else "small")
    stream = dataclasses.replace(preset_stream(chosen, stream), **given(args, StreamSettings))
    changes = {key: value for group in GROUPS for key, value in given(args, group).items()}
    machine = MachineSettings(**given(args, MachineSettings))
    if machine.data_dir is not None:
        machine = dataclasses.replace(machine, data_dir=str(Path(machine.data_dir).resolve()))
    if machine.judge is not None:
        machine = dataclasses.replace(machine, judge=str(Path(machine.judge).resolve()))
    short = name if name in STREAMS or name in DATASETS else Path(name).resolve().stem
    learner = preset(chosen).replace(**changes)
    config = RunConfig(short, stream, methods[0], chosen, args.seed, machine, learner)
    return config, methods, tuple(range(args.seed, args.seed + args.seeds))


def show_comparison(results: list[MethodResult], path: Path) -> None:
    """The table of all methods, and where the pictures are."""
    if not results:
        return
    from rich.console import Console

    from ordisco.report import rich_comparison_table

    console = Console()
    console.print(rich_comparison_table(results, "accuracy on the classes seen"))
    console.print(f"curves: {path / 'comparison.png'}", soft_wrap=True, highlight=False)
    grids = sorted(path.glob("*/samples/*.png"))
    if grids:
        console.print(f"generated images: {grids[-1]}", soft_wrap=True, highlight=False)
