"""`ordisco methods`: the table of methods, each a choice of parts."""

from __future__ import annotations

import argparse
import dataclasses
import json

from ordisco.settings.methods import TABLE, Method


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "methods",
        help="list the methods and their parts",
        description="List ORDisCo and every baseline of the paper with its parts and where the paper uses it.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Print the table."""
    if args.json:
        print(json.dumps([dataclasses.asdict(row) for row in TABLE], indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{len(TABLE)} methods", caption="every method runs with every --unlabeled-loss and --c-net")
    for column in ("name", "memory", "penalty on C", "generative replay", "in the paper"):
        table.add_column(column, no_wrap=column == "name")
    for row in TABLE:
        table.add_row(*cells(row))
    Console().print(table)


def cells(row: Method) -> tuple[str, ...]:
    """A method in words."""
    memory = {"none": "–", "labels": "labels", "herding": "200 labels by mean of feature", "all": "all images"}
    kept = [memory[row.memory]]
    if row.has_umb:
        kept.append(f"UMB of {row.umb_images:,} images" if row.umb_images else f"UMB of {row.umb_of_G:g} × G's bytes")
    if row.head == "cosine":
        kept.append("Unified Classifier")
    penalty = "–" if row.penalty == "none" else f"{row.penalty.upper()} on {row.penalty_on}"
    replay: list[str] = ["–"] if not row.gan else ["no replay"] if row.replay == "none" else [row.replay]
    if row.stabilize:
        replay.append("D stabilised")
    return row.name, ", ".join(kept), penalty, ", ".join(replay), row.where
