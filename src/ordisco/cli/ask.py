"""`ordisco ask`: the images of a folder that are worth a label."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import one_line
from ordisco.settings.fields import MOST_SEED

COUNT, MOST = 20, 100_000
COLUMNS = ("path", "label", "guess", "confidence")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "ask",
        help="the images that are worth a label",
        description="Choose images worth a label: those of which the model is unsure and that differ from each other "
        "(k-means weighted by the margin, after CLUE, Prabhu et al. 2021). What such labels were measured to be worth "
        "is in docs/use.md. `ordisco label` shows the images in the browser.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument(
        "source",
        type=path_of,
        metavar="FOLDER",
        help="images without labels: a folder at any depth, its unlabeled/ if it has one, or the unlabelled lines of a "
        "CSV file",
    )
    parser.add_argument("-n", dest="count", type=int, default=COUNT, metavar="N", help=f"how many (default: {COUNT})")
    parser.add_argument("--seed", type=int, default=0, help="of the clustering (default: 0)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--csv",
        metavar="FILE",
        help="write path,label,guess,confidence; with the labels filled in, `ordisco learn` takes it; -: print it",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Choose and print."""
    check_ranges(args, count=(1, MOST), seed=(0, MOST_SEED))
    from ordisco.files import json_bytes, text_bytes, write_atomically
    from ordisco.model.asking import asked, left_out, survey, without_label
    from ordisco.model.model import Model
    from ordisco.model.reading import speaker
    from ordisco.report.terminal import PlainDisplay
    from ordisco.words import percent

    model = Model.open(args.model)
    paths = without_label(args.source)
    display = PlainDisplay(sys.stderr)
    found = survey(model, paths, speaker(display, len(paths)))
    if found.broken:
        display.message(left_out(found))
    rows = [
        (found.paths[place], str(model.classes[int(found.best[place])]), float(found.confidence[place]))
        for place in asked(model, found, args.count, args.seed)
    ]
    if args.json:
        listed = [{"path": str(path), "guess": guess, "confidence": round(share, 4)} for path, guess, share in rows]
        print(json_bytes(listed, indent=1).decode(), end="")
    elif args.csv is not None:
        target = None if args.csv == "-" else path_of(args.csv)
        text = as_csv([(shown(path, target), guess, share) for path, guess, share in rows])
        if target is None:
            print(text, end="")
        else:
            write_atomically(target, text_bytes(text))
            print(f"{len(rows)} images: {target}")
    else:
        for path, guess, share in rows:
            print(f"{percent(share):>7}  {guess}  {one_line(str(path))}")


def shown(path: Path, target: Path | None) -> str:
    """The path as it stands in a CSV file: from the file's folder, where a reader looks for it."""
    return str(path) if target is None or path.is_absolute() else os.path.relpath(path, target.parent)


def as_csv(rows: list[tuple[str, str, float]]) -> str:
    """A line an image, its label to be filled in."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((path, "", guess, f"{confidence:.4f}") for path, guess, confidence in rows)
    return text.getvalue()
