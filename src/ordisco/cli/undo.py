"""`ordisco undo`: a model as it was before its last delivery."""

from __future__ import annotations

import argparse

from ordisco.cli.options import path as path_of


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "undo",
        help="go back to the state before the last delivery",
        description="Drop the delivery under way, or else go back to the state before the last delivery. The last "
        "three states are kept.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Undo and say what."""
    from ordisco.model.model import Model

    print(Model.open(args.model).undo())
