"""`ordisco stream`: show a stream, and save its manifest or compare it with a saved one."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from ordisco.cli.options import add_settings, check_ranges, given
from ordisco.cli.options import path as path_of
from ordisco.settings.fields import MOST_SEED
from ordisco.streams.build import build_stream
from ordisco.streams.catalogue import STREAMS, short_name, stream_settings
from ordisco.streams.settings import DATASETS, StreamSettings, name_of_increment

if TYPE_CHECKING:
    from ordisco.streams.stream import Stream

CLASSES_SHOWN = 10


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "stream",
        help="show the increments of a stream",
        description="Show the increments of a stream: images, labels and classes in order of arrival.",
        epilog=f"Streams: {', '.join(STREAMS)}. A data set ({', '.join(DATASETS)}) or a path will do too.",
    )
    parser.add_argument("name", metavar="NAME", help="a stream, a data set, or the path of your own data")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split (default: 0)")
    parser.add_argument(
        "--data-dir", type=path_of, help="folder of the data files (default: ORDISCO_DATA, else a cache)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--save", type=path_of, metavar="FILE", help="write the manifest: indices, seed, data checksum")
    parser.add_argument(
        "--check", type=path_of, metavar="FILE", help="fail unless this saved manifest is the same stream"
    )
    add_settings(parser, StreamSettings, note="A named stream sets its own defaults.")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Build the stream and show it."""
    check_ranges(args, seed=(0, MOST_SEED))
    settings = dataclasses.replace(stream_settings(args.name), **given(args, StreamSettings))
    stream = build_stream(settings, short_name(args.name), args.seed, args.data_dir)
    if args.check:
        stream.check(args.check)
    if args.save:
        stream.save(args.save)
    if args.json:
        print(json.dumps(stream.summary(), indent=2, ensure_ascii=False))
    else:
        _print_table(stream)


def _print_table(stream: Stream) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ordisco.words import shortened, some_of

    summary = stream.summary()
    scenario = "New Class" if stream.scenario == "new-class" else "New Instance"
    title = f"{shortened(stream.name, 60)} · {scenario} · seed {stream.seed}"
    table = Table(title=Text(title, style="table.title"))
    for column in (name_of_increment(stream.scenario), "images", "labelled", "a class"):
        table.add_column(column, justify="right")
    table.add_column("classes")
    for index, row in enumerate(summary["increments"], start=1):
        counts = sorted(set(row["labels_per_class"].values()))
        names = [shortened(name, 40) for name in row["classes"]]
        table.add_row(
            str(index),
            f"{row['images']:,}",
            f"{row['labeled']:,}",
            "–".join(str(count) for count in (counts[0], counts[-1])[: len(counts)]),
            Text(some_of(names, CLASSES_SHOWN)),
        )
    table.add_section()
    images = sum(row["images"] for row in summary["increments"])
    labeled = sum(row["labeled"] for row in summary["increments"])
    table.add_row("all", f"{images:,}", f"{labeled:,}", "", f"{summary['test_images']:,} test images")
    Console().print(table)
