"""`ordisco resume`: go on with a run that was interrupted, wherever it was."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from ordisco.cli.launching import add_launcher, launching_of
from ordisco.cli.options import add_settings, given
from ordisco.cli.options import path as path_of
from ordisco.cli.run import check_numbers
from ordisco.errors import UsageError
from ordisco.machine.environment import recognised, started_by
from ordisco.runs.signals import leave_interrupts_to_parent
from ordisco.settings.machine import MachineSettings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "resume",
        help="go on with an interrupted run",
        description="Go on with an interrupted run, or with what is left of a comparison. Needs no options.",
    )
    parser.add_argument("path", type=path_of, metavar="RUN", help="the directory of the run")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop, saved, after N steps in all")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs of a comparison made at once (default: as `run`)")
    add_settings(parser, MachineSettings, only=("devices", "num_nodes"), note="Free to change from what the run had.")
    add_launcher(parser)
    parser.add_argument("--job", help=argparse.SUPPRESS)  # a run of it, in a process that `--jobs` has started
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Find out what the directory holds and finish it."""
    if args.job is not None:
        leave_interrupts_to_parent()
    check_numbers(args)
    from ordisco.cli.run import show_comparison, tell_where
    from ordisco.machine.processes import start
    from ordisco.report.voice import one_voice
    from ordisco.runs.directory import RunDirectory
    from ordisco.runs.launch import read_config, resumed_run
    from ordisco.studies.comparison import Comparison, is_comparison

    path: Path = args.path
    comparison = Comparison.load(path) if is_comparison(path) else None
    config = read_config(path) if comparison is None else comparison.config
    machine = dataclasses.replace(config.machine, **processes(args))
    config = dataclasses.replace(config, machine=recognised(machine))
    if comparison is not None:
        comparison = dataclasses.replace(comparison, config=config)
    directory = RunDirectory(path)
    if comparison is None and directory.summary_json.exists():
        print(f"{path} is finished: see {directory.summary_markdown}")
        return
    if comparison is not None and args.job is not None:
        comparison.engine().job(args.job, args.max_steps, getattr(args, "parent", None))
        return
    launching = launching_of(args, path)
    if comparison is None and launching is not None:
        raise UsageError(f"a launcher is not allowed here: {path} is a single run")
    elsewhere = launching is not None
    fabric = start(dataclasses.replace(config.machine, devices=1, num_nodes=1) if elsewhere else config.machine)
    with one_voice(fabric) as display:
        if comparison is not None:
            table = comparison.go(display, fabric, args.max_steps, args.jobs, launching)
            show_comparison(display, table, path)
            return
        with resumed_run(path, display, fabric) as single:
            complete = single.go(args.max_steps)
        tell_where(display, path, complete)


def processes(args: argparse.Namespace) -> dict[str, Any]:
    """The devices and machines that are asked for; those of torchrun or Slurm whatever the run had before."""
    return ({"devices": 1, "num_nodes": 1} if started_by() else {}) | given(args, MachineSettings)
