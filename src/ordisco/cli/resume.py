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
    from ordisco.cli.run import show_comparison
    from ordisco.compare import Comparison, is_comparison
    from ordisco.launch import resumed_run
    from ordisco.progress import make_display

    display = make_display()
    try:
        if is_comparison(args.path):
            comparison = Comparison.load(args.path)
            results = comparison.go(display)
        else:
            with resumed_run(args.path, display) as single:
                if single.finished:
                    display.message(f"{args.path} is finished: see {single.directory.summary_markdown}")
                    return
                single.go()
            display.message(f"everything is in {args.path}; start with {args.path / 'summary.md'}")
            return
    finally:
        display.close()
    show_comparison(results, comparison.path)
