"""`ordisco show`: what a model is, what it has learned and how good it is."""

from __future__ import annotations

import argparse
import json

from ordisco.cli.options import path as path_of
from ordisco.words import percent


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "show",
        usage="ordisco show MODEL [--json] [--png FILE] [--html FILE]",
        help="show a model: classes, deliveries, accuracy over time, what is kept",
        description="Show a model: its classes, its deliveries, its accuracy before learning and on images set aside, "
        "and what it keeps of the images.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--png", type=path_of, metavar="FILE", help="draw the curve")
    parser.add_argument("--html", type=path_of, metavar="FILE", help="write a page to send, all in one file")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Print, and draw what is asked for."""
    from ordisco.errors import readable
    from ordisco.model.model import Model
    from ordisco.model.overview import facts
    from ordisco.report.deliveries import (
        MOST_CLASSES,
        classes_table,
        curve_lines,
        deliveries_table,
        draw_deliveries,
    )

    model = Model.open(args.model)
    found, name = model.overview(), args.model.resolve().name
    if args.png is not None:
        draw_deliveries(args.png, model.history, name)
    if args.html is not None:
        from ordisco.model.page import write_page

        write_page(args.html, model)
    if args.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    for key, value in facts(found, model.about).items():
        print(f"{key + ':':11}{readable(value)}")
    if model.history:
        console = Console()
        console.print(deliveries_table(model.history, console.width >= 100).rich())
        if len(model.classes) > MOST_CLASSES:
            print(f"the {MOST_CLASSES} classes of {len(model.classes):,} that are told worst")
        console.print(classes_table(model.history).rich())
        for line in curve_lines(model.history):
            print(line)
        holdout = model.history[-1]["holdout"]
        if holdout:
            lost = holdout["forgetting"]
            forgotten = "" if lost is None else f", forgotten {percent(lost)}"
            print(f"set aside: {holdout['images']:,} images, {percent(holdout['accuracy'])} right{forgotten}")
    for file in (args.png, args.html):
        if file is not None:
            print(f"written: {file}")
