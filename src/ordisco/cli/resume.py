"""`ordisco resume`: go on with a run that was interrupted, wherever it was."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "resume",
        help="go on with an interrupted run",
        description="Go on with an interrupted run, or with what is left of a comparison. Needs no options.",
    )
    parser.add_argument("path", type=Path, metavar="RUN", help="the directory of the run")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Find out what the directory holds and finish it."""
    from ordisco.cli.run import show_comparison, tell_where
    from ordisco.compare import Comparison, is_comparison
    from ordisco.launch import read_config, resumed_run
    from ordisco.processes import one_voice, start
    from ordisco.rundir import RunDirectory

    path: Path = args.path
    comparison = Comparison.load(path) if is_comparison(path) else None
    config = read_config(path) if comparison is None else comparison.config
    directory = RunDirectory(path)
    if comparison is None and directory.summary_json.exists():
        print(f"{path} is finished: see {directory.summary_markdown}")
        return
    fabric = start(config.machine)
    with one_voice(fabric) as display:
        if comparison is not None:
            show_comparison(display, comparison.go(display, fabric), path)
            return
        with resumed_run(path, display, fabric) as single:
            complete = single.go()
        tell_where(display, path, complete)
