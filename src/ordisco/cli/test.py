"""`ordisco test`: how good a model is on labelled images."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from ordisco.cli.options import path as path_of
from ordisco.cli.predict import NAMES_SHOWN, check_sources
from ordisco.words import counted, percent, some_of

if TYPE_CHECKING:
    from ordisco.report.table import TextTable

MOST_SHOWN = 15  # classes of a confusion matrix on a terminal


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "test",
        usage="ordisco test MODEL IMAGES [IMAGES ...] [--json] [--png FILE]",
        help="measure a model on labelled images",
        description="Predict labelled images and count what is right: folders with a sub-folder a class, CSV files of "
        "path,label, or images, whose label is the name of their folder. Nothing is learned from them.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("images", type=path_of, nargs="+", metavar="IMAGES", help="folder, .csv file or image")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--png", type=path_of, metavar="FILE", help="draw the confusion matrix")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Test and print."""
    check_sources(args.images)
    from ordisco.model.model import Model

    model = Model.open(args.model)
    result = model.test(args.images)
    if result["unreadable"]:
        print(f"ordisco: warning: unreadable: {some_of(result['unreadable'], NAMES_SHOWN)}", file=sys.stderr)
    if args.png is not None:
        from ordisco.report.confusion import confusion_matrix

        confusion_matrix(args.png, result["confusion"], [str(name) for name in result["classes"]], args.model.name)
    if args.json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    passed = f"; {result['unlabeled']:,} without a label passed over" if result["unlabeled"] else ""
    print(f"accuracy {percent(result['accuracy'])} on {counted(result['images'], 'image')}{passed}")
    console = Console()
    console.print(per_class_table(result).rich())
    if 1 < len(result["classes"]) <= MOST_SHOWN:
        print("true class down, predicted class across")
        console.print(confusion_table(result).rich())


def per_class_table(result: dict[str, Any]) -> TextTable:
    """Images and accuracy of each class."""
    from ordisco.report.table import TextTable

    counts = {str(name): sum(row) for name, row in zip(result["classes"], result["confusion"], strict=True)}
    rows = tuple((name, f"{counts[name]:,}", percent(share)) for name, share in result["per_class"].items())
    return TextTable(("class", "images", "accuracy"), rows)


def confusion_table(result: dict[str, Any]) -> TextTable:
    """Counts."""
    from ordisco.report.table import TextTable

    names = [str(name) for name in result["classes"]]
    rows = zip(names, result["confusion"], strict=True)
    return TextTable(
        ("", *names), tuple((name, *(str(n) if n else "·" for n in row)) for name, row in rows if sum(row))
    )
