"""`ordisco predict`: the class of each image, and how sure the model is."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ordisco.cli.options import path as path_of
from ordisco.errors import OrdiscoError, UsageError, one_line
from ordisco.files import told_in_one_line, written_aside
from ordisco.words import percent, some_of

NAMES_SHOWN = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "predict",
        usage="ordisco predict MODEL IMAGES [IMAGES ...] [--csv FILE | --json]",
        help="predict the classes of images",
        description="Predict the class of each image. Images are folders, CSV files with a column path, or image "
        "files, however many: they are read a few at a time. An image that cannot be read has no label in the output.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("images", type=path_of, nargs="+", metavar="IMAGES", help="folder, .csv file or image")
    parser.add_argument("--csv", metavar="FILE", help="write path,label,confidence; - is standard output")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Predict, batch by batch."""
    if args.csv is not None and args.json:
        raise UsageError("give --csv or --json, not both")
    check_sources(args.images)
    from ordisco.model.model import Model

    model = Model.open(args.model)
    rows = predictions(model, args.images)
    first = next(rows, None)
    if first is None:
        raise OrdiscoError(f"no images found in {', '.join(str(source) for source in args.images)}")
    with chosen_output(args.csv) as stream:
        write = csv_rows if args.csv is not None else json_rows if args.json else plain_rows
        broken = write(stream, first, rows)
    if broken:
        print(f"ordisco: warning: unreadable images: {some_of(broken, NAMES_SHOWN)}", file=sys.stderr)


Row = tuple[str, str | int | None, float | None, str | None]  # path, label, confidence, why it could not be read


def predictions(model: object, sources: list[Path]) -> Iterator[Row]:
    """A row an image, in order within a batch, the unreadable ones at its end."""
    from ordisco.model.model import Model

    assert isinstance(model, Model)
    names = model.classes
    for part in model.pictures(sources):
        p = model.probabilities(part.images) if len(part.images) else None
        for index, path in enumerate(part.paths):
            assert p is not None
            best = int(p[index].argmax())
            yield str(path), names[best], float(p[index, best]), None
        for path, why in part.broken:
            yield str(path), None, None, why


def check_sources(sources: list[Path]) -> None:
    """What is not there is told before the model is read."""
    for source in sources:
        with told_in_one_line("read", source):
            source.stat()


@contextmanager
def chosen_output(file: str | None) -> Iterator[TextIO]:
    """Standard output, or a file that is whole or absent."""
    if file in (None, "-"):
        yield sys.stdout
        return
    path = path_of(str(file))
    with (
        told_in_one_line("write", path),
        written_aside(path) as partial,
        partial.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream,
    ):
        yield stream


def csv_rows(stream: TextIO, first: Row, rows: Iterator[Row]) -> list[str]:
    """path,label,confidence; gives the unreadable images."""
    writer, broken = csv.writer(stream, lineterminator="\n"), []
    writer.writerow(("path", "label", "confidence"))
    for path, label, confidence, why in chain(first, rows):
        if why is not None:
            broken.append(f"{path} ({why})")
        sure = "" if confidence is None else f"{confidence:.4f}"
        writer.writerow((path, "" if label is None else label, sure))
    return broken


def json_rows(stream: TextIO, first: Row, rows: Iterator[Row]) -> list[str]:
    """A JSON list, an object an image."""
    broken, separator = [], "["
    for path, label, confidence, why in chain(first, rows):
        if why is not None:
            broken.append(f"{path} ({why})")
        shown = {"path": path, "label": label, "confidence": None if confidence is None else round(confidence, 4)}
        stream.write(f"{separator}\n  {json.dumps(shown)}")
        separator = ","
    stream.write("\n]\n")
    return broken


def plain_rows(stream: TextIO, first: Row, rows: Iterator[Row]) -> list[str]:
    """A line an image, for people."""
    broken = []
    for path, label, confidence, why in chain(first, rows):
        if why is not None:
            broken.append(f"{path} ({why})")
        elif confidence is not None:
            stream.write(f"{percent(confidence):>7}  {label}  {one_line(path)}\n")
    return broken


def chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    """The first row, then the others."""
    yield first
    yield from rows
