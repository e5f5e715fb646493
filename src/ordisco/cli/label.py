"""`ordisco label`: a page in the browser on which the images of a folder get their labels."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import OrdiscoError
from ordisco.settings.fields import MOST_SEED
from ordisco.words import counted

if TYPE_CHECKING:
    from ordisco.report.terminal import Display

FIRST, MOST = 100, 100_000
OUT = "labels.csv"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "label",
        help="label images in the browser",
        description="Serve a page, on this machine only, on which images get their labels with one key or click each: "
        "first those that `ordisco ask` would choose. Every answer is on the disk before the next image is shown, in a "
        "CSV file that `ordisco learn` takes. Ctrl-C or the button Done ends it; the same command goes on.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("source", type=path_of, metavar="FOLDER", help="images without labels, as for `ordisco ask`")
    parser.add_argument("--out", type=path_of, metavar="FILE", help=f"the CSV file (default: FOLDER/{OUT})")
    parser.add_argument(
        "-n", dest="count", type=int, default=FIRST, metavar="N", help=f"asked images, shown first (default: {FIRST})"
    )
    parser.add_argument("--seed", type=int, default=0, help="as for `ordisco ask` (default: 0)")
    parser.add_argument("--port", type=int, default=0, help="port on the loopback address (default: any free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the link, open nothing")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Serve the page until it is closed."""
    check_ranges(args, count=(1, MOST), seed=(0, MOST_SEED), port=(0, 65_535))
    from ordisco.label.serve import check_installed, serve

    check_installed()
    import sys

    from ordisco.label.answers import AnswerFile, locked
    from ordisco.label.session import Guess, Session
    from ordisco.model.asking import asked, left_out, survey, without_label
    from ordisco.model.model import Model
    from ordisco.model.reading import speaker
    from ordisco.report.terminal import PlainDisplay

    out = args.out or (args.source if args.source.is_dir() else args.source.parent) / OUT
    model = Model.open(args.model)
    display = PlainDisplay(sys.stderr)
    paths = can_be_labelled(without_label(args.source), out.parent, display)
    with locked(out):
        found = survey(model, paths, speaker(display, len(paths)))
        if found.broken:
            display.message(left_out(found))
        first = asked(model, found, args.count, args.seed)
        order = [*first, *sorted(set(range(len(found.paths))) - set(first))]
        guesses = {
            place: Guess(model.about.classes[best], share)
            for place, (best, share) in enumerate(zip(found.best.tolist(), found.confidence.tolist(), strict=True))
        }
        names = [listed_as(path, out.parent) for path in found.paths]
        session = Session(names, order, model.about.classes, guesses, AnswerFile(out))

        def ready(link: str) -> None:
            print(
                f"{counted(len(names), 'image')}, {session.state()['done']:,} with an answer; Ctrl-C ends it\n{link}",
                flush=True,
            )
            if not args.no_browser:
                import webbrowser

                webbrowser.open(link)

        serve(session, out.parent, args.port, ready)
    given = sum(each["count"] for each in session.state()["classes"])
    command = shlex.join(["ordisco", "learn", str(args.model), str(out)])
    print(f"{counted(given, 'label')}: {out}\nlearn them with: {command}")


def listed_as(path: Path, folder: Path) -> str:
    """The path as it stands in the CSV file."""
    return os.path.relpath(path, folder)


def can_be_labelled(paths: list[Path], folder: Path, display: Display) -> list[Path]:
    """Those whose names can stand in a CSV file; the others are told."""
    from ordisco.label.answers import can_be_listed
    from ordisco.words import some_of

    good = [path for path in paths if can_be_listed(listed_as(path, folder))]
    odd = sorted({str(path) for path in paths} - {str(path) for path in good})
    if odd and not good:
        raise OrdiscoError(f"no image has a name that can stand in a CSV file, e.g. {odd[0]}: rename them")
    if odd:
        display.message(f"{len(odd)} images left out, as their names cannot stand in a CSV file: {some_of(odd, 5)}")
    return good
