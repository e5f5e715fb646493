"""`ordisco nets`: parameters and multiply–adds of the networks of each preset."""

from __future__ import annotations

import argparse
import json

from ordisco.cli.options import add_settings, check_ranges, given
from ordisco.runs.presets import PRESET_IMAGES, PRESETS, preset
from ordisco.settings.learner import ClassifierSettings, GanSettings


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "nets",
        help="sizes of the networks of each preset",
        description="Print parameters and multiply–adds an image of C, G and D.",
    )
    parser.add_argument("--preset", choices=tuple(PRESETS), action="append", help="only this preset (repeatable)")
    parser.add_argument("--side", type=int, choices=(8, 16, 32, 64), help="side of the images (default: the preset's)")
    parser.add_argument("--channels", type=int, choices=(1, 3), help="channels of the images (default: the preset's)")
    parser.add_argument("--num-classes", type=int, default=10, metavar="INT", help="classes (default: 10)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    for group in (ClassifierSettings, GanSettings):
        add_settings(parser, group, "paper")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Count the networks; none is built."""
    check_ranges(args, num_classes=(1, 10**6))
    from ordisco.nets.count import preset_sizes

    rows = []
    for name in args.preset or PRESETS:
        channels, side, _ = PRESET_IMAGES[name]
        shape = (args.channels or channels, args.side or side, args.side or side)
        settings = preset(name).replace(**given(args, ClassifierSettings), **given(args, GanSettings))
        for net, size in preset_sizes(settings, shape, args.num_classes).items():
            rows.append({"preset": name, "image": list(shape), "net": net, **vars(size)})
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"networks for {args.num_classes} classes")
    for column in ("preset", "image", "net", "parameters", "multiply–adds an image"):
        table.add_column(column, justify="left" if column in ("preset", "image", "net") else "right")
    for row in rows:
        image = "×".join(str(size) for size in row["image"])
        table.add_row(row["preset"], image, row["net"], f"{row['parameters']:,}", f"{row['multiply_adds']:,}")
    Console().print(table)
