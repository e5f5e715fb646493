"""`ordisco sample`: what a model's generator draws."""

from __future__ import annotations

import argparse

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.settings.fields import MOST_SEED

ONE, EACH, MOST = 64, 10, 10_000  # images of one class, of each class, at most


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "sample",
        usage="ordisco sample MODEL --out FILE.png [--class NAME] [-n N] [--seed N]",
        help="draw images of a model's classes",
        description="Draw images from the generator, which stands for the images that are no longer kept: of one "
        "class, or a row of each.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("--out", type=path_of, metavar="FILE", required=True, help="picture to write, PNG")
    parser.add_argument("--class", dest="name", metavar="NAME", help="only this class")
    parser.add_argument(
        "-n", type=int, dest="count", metavar="N", help=f"images (default: {ONE}; without --class {EACH} of each)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise (default: 0)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Draw and write."""
    check_ranges(args, count=(1, MOST), seed=(0, MOST_SEED))
    from ordisco.model.drawing import draw_class, draw_classes
    from ordisco.model.model import Model
    from ordisco.words import counted

    model = Model.open(args.model)
    if args.name is None:
        count = args.count or EACH
        draw_classes(args.out, model.about, model.learner, count, args.seed)
        print(f"{counted(count, 'image')} of each of {counted(len(model.classes), 'class')}: {args.out}")
    else:
        count = args.count or ONE
        draw_class(args.out, model.about, model.learner, model.position(args.name), count, args.seed)
        print(f"{counted(count, 'image')} of {args.name}: {args.out}")
