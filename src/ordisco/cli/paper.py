"""`ordisco paper`: the tables and figures of the paper, ours beside the paper's."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordisco.cli.launching import add_launcher, launching_of
from ordisco.cli.options import add_settings, check_ranges
from ordisco.cli.options import path as path_of
from ordisco.cli.run import MOST_JOBS, MOST_STEPS
from ordisco.errors import OrdiscoError, UsageError
from ordisco.runs.config import FIELDS
from ordisco.runs.signals import leave_interrupts_to_parent
from ordisco.settings.learner import GROUPS
from ordisco.settings.machine import MachineSettings

if TYPE_CHECKING:
    from ordisco.paper.make import Making
    from ordisco.paper.outcome import Outcome

SCALES = ("digits", "small", "paper")
DATA = ("svhn", "cifar10", "tiny-imagenet")
OUT = Path("runs/paper")
MOST_SEEDS = 1_000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "paper",
        usage="ordisco paper [--json]\n"
        "       ordisco paper ITEM [ITEM ...] [--scale digits|small|paper] [--data NAME] [--seeds N]\n"
        "                     [--jobs N] [--show]\n"
        "       ordisco paper --fill DOCUMENT --items DIR [--check]",
        help="the paper's tables and figures, ours beside the paper's",
        description="Without ITEM, list the paper's tables and figures, what each would cost and how much is done. "
        "With items, such as table-3 or figure-5, or all: make what is missing and show ours beside the paper's. "
        "Runs are shared between items; the same command goes on after an interruption.",
    )
    parser.add_argument("names", nargs="*", metavar="ITEM", help="table-1 to table-10, figure-1 to figure-12, or all")
    parser.add_argument("--scale", choices=SCALES, default="digits", help="how large (default: digits)")
    parser.add_argument("--data", choices=DATA, help="only what the items show on this data set (default: all)")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of every run (default: the scale's, 3)")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs made at once, a process each (default: as `run`)")
    parser.add_argument("--out", type=path_of, default=OUT, metavar="DIR", help=f"of runs and results (default: {OUT})")
    parser.add_argument("--items", type=path_of, metavar="DIR", help="of finished items (default: OUT/SCALE/items)")
    parser.add_argument("--show", action="store_true", help="make no run, show what is there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--report", type=path_of, metavar="HTML", help="the page (default: OUT/SCALE/report.html)")
    parser.add_argument("--max-steps", type=int, metavar="N", help="stop every run, saved, after N steps")
    parser.add_argument("--measure", action="store_true", help="measure the cost of every kind of run at --scale")
    parser.add_argument("--fill", type=path_of, metavar="DOCUMENT", help="put finished items into a Markdown document")
    parser.add_argument("--check", action="store_true", help="with --fill: only tell whether it is up to date")
    parser.add_argument("--job", help=argparse.SUPPRESS)  # a run, in a process that `--jobs` has started
    add_launcher(parser)
    for group in GROUPS:
        add_settings(parser, group, "paper", note="For all runs, but where an item itself asks for another value.")
    add_settings(parser, MachineSettings)
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit code is 1 if a document that was checked is out of date."""
    if args.job is not None:
        leave_interrupts_to_parent()
    check_ranges(args, jobs=(1, MOST_JOBS), seeds=(1, MOST_SEEDS), max_steps=(1, MOST_STEPS))
    if args.check and args.fill is None:
        raise UsageError("--check is only for --fill")
    if args.fill is not None:
        return fill(args)
    if args.measure:
        return measure(args)
    if not args.names:
        return show_list(args)
    making = making_of(args)
    from ordisco.paper.make import checked, make, make_one

    if args.job is not None:
        make_one(making, args.job, args.max_steps, getattr(args, "parent", None))
        return 0
    if not args.show:
        make(making, args.max_steps, launching_of(args, making.place.root))
        if args.detach:
            return 0
    outcomes = making.outcomes()
    show(args, making, outcomes)
    if not args.show and args.max_steps is None:
        checked(outcomes)
    return 0


def making_of(args: argparse.Namespace) -> Making:
    """What the options ask for."""
    from ordisco.paper.items import chosen, on_data
    from ordisco.paper.make import Making
    from ordisco.paper.scales import Plan

    changes = {name: value for name, value in vars(args).items() if name in FIELDS}
    plan = Plan.of(args.scale, args.seeds, changes, args.jobs or 1)
    return Making(on_data(chosen(args.names), args.data), plan, args.out, args.seeds, args.jobs, args.items)


def show_list(args: argparse.Namespace) -> int:
    """The list of items."""
    from ordisco.paper.listing import listing, table

    entries = listing(args.out, args.seeds, args.data)
    if args.json:
        print(json.dumps(entries, indent=2, ensure_ascii=False))
        return 0
    print_block(table(entries))
    print("Runs done and in all, and the time of all: at digits and small with two runs at once on two cores, at paper")
    print("of a GPU that keeps up 20 TFLOP/s. Items share runs. Make one with: ordisco paper table-3 --scale digits")
    return 0


def show(args: argparse.Namespace, making: Making, outcomes: list[Outcome]) -> None:
    """Every item, and the page of all."""
    from ordisco.pages.items import write_report
    from ordisco.paper.words import blocks, notes, title

    report = args.report or making.place.root / "report.html"
    write_report(report, outcomes, making.place.pictures)
    if args.json:
        print(json.dumps(outcomes, indent=2, ensure_ascii=False))
        return
    for of in outcomes:
        print(f"\n{title(of)} — {of['scale_title']}\n")
        for block in blocks(of):
            print_block(block)
        for note in notes(of):
            print(note)
    print(f"\npage: {report}")


def print_block(block: Any) -> None:
    """A line, or a table: drawn on a terminal, Markdown elsewhere."""
    if isinstance(block, str):
        print(block + "\n")
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(block.rich())
    else:
        print(block.markdown())


def measure(args: argparse.Namespace) -> int:
    """Measure the seconds a step of every kind of run, and write them down for later estimates."""
    from ordisco.files import text_bytes, write_atomically
    from ordisco.machine.cores import processor
    from ordisco.paper.cost import FILE, costs_text
    from ordisco.paper.cost import measure as measured
    from ordisco.paper.make import check_data

    args.names = args.names or ["all"]
    making = making_of(args)
    rows = making.plan.rows(making.items)
    if args.scale != "paper":
        check_data(rows, rows[0].config.machine.data_dir)
    file = args.out / FILE
    before = tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found = {**{name: before[name] for name in SCALES if name in before}, args.scale: measured(rows, args.scale)}
    write_atomically(file, text_bytes(costs_text(str(processor()), found)))
    print(file)
    return 0


def fill(args: argparse.Namespace) -> int:
    """Fill a document, or tell what of it is out of date."""
    from ordisco.paper.outcome import PICTURES, read
    from ordisco.paper.words import markdown
    from ordisco.studies import documents

    if args.names or args.items is None:
        raise UsageError("--fill takes no ITEM, and needs --items DIR: where finished items are kept")

    def block(words: str) -> str:
        parts = words.split()
        if len(parts) != 2 or parts[1] not in SCALES:
            raise UsageError(f"an item and a scale are needed, such as table-3 digits, not {words!r}")
        file = args.items / parts[1] / f"{parts[0]}.json"
        if not file.is_file():
            raise OrdiscoError(f"it has no result yet: {file} is not there")
        return markdown(read(file), Path(os.path.relpath(file.parent / PICTURES, args.fill.parent)).as_posix())

    return documents.tell(args.fill, "paper", documents.fill(args.fill, "paper", block, args.check), args.check)
