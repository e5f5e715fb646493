"""`ordisco learn`: a delivery into a model, which the first one makes."""

from __future__ import annotations

import argparse
import json
from typing import get_args

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import OrdiscoError, UsageError
from ordisco.settings.fields import MOST_SEED
from ordisco.settings.machine import Accelerator
from ordisco.settings.methods import METHODS

FIRST = ("side", "flip", "method", "seed")  # what only the first delivery can decide


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "learn",
        usage="ordisco learn MODEL DELIVERY [options]",
        help="learn a delivery of images, the first into a new model",
        description="Learn a delivery: a folder with a sub-folder a class and unlabeled/, or a CSV file of path,label. "
        "The first delivery makes the model; later ones need nothing of those before. After an interruption the same "
        "command goes on. Side, width and steps are chosen from the images and said in one line.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("delivery", type=path_of, metavar="DELIVERY", help="folder, or .csv file")
    parser.add_argument("--steps", type=int, metavar="N", help="training steps (default: chosen by the images)")
    parser.add_argument("--minutes", type=float, metavar="M", help="train for about so long, instead of --steps")
    parser.add_argument(
        "--holdout", type=float, metavar="SHARE", help="set this share of labelled images aside, now and from now on"
    )
    parser.add_argument("--again", action="store_true", help="learn a delivery that was learned already")
    parser.add_argument("--json", action="store_true", help="print the delivery's record as JSON, and nothing else")
    group = parser.add_argument_group("a new model", "Only with the first delivery.")
    group.add_argument("--side", type=int, metavar="N", help="side of the images that the networks see: 8, 16, 32, 64")
    group.add_argument("--flip", action="store_true", default=None, help="a mirrored image keeps its class")
    group.add_argument("--method", choices=tuple(METHODS), metavar="M", help="a row of `ordisco methods`")
    group.add_argument("--seed", type=int, help="seed of learning (default: 0)")
    group = parser.add_argument_group("the machine")
    group.add_argument("--accelerator", choices=get_args(Accelerator), default="auto", help="where to compute")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads (default: chosen by the images)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Learn it."""
    check_ranges(args, seed=(0, MOST_SEED), threads=(1, 1_024))
    import sys

    from ordisco.model.about import About
    from ordisco.model.automatic import side_for, threads_for
    from ordisco.model.directory import ModelDirectory
    from ordisco.model.learning import Options, result_in_words
    from ordisco.model.listing import listing_of, shorter_sides
    from ordisco.model.model import Model
    from ordisco.report.terminal import SilentDisplay, make_display
    from ordisco.settings.machine import MachineSettings

    Options(args.steps, args.minutes, args.again)
    first = {name: getattr(args, name) for name in FIRST if getattr(args, name) is not None}
    new = not ModelDirectory.is_model(args.model)
    about = About(**first) if new else ModelDirectory.open(args.model).about()
    for name, value in first.items():
        if getattr(about, name) != value:
            raise UsageError(
                f"{name} = {value!r} is only for a new model: that of {args.model} is {getattr(about, name)!r}"
            )
    side = about.side
    if side is None:  # also, what is no delivery makes no model
        side = side_for(shorter_sides(listing_of(args.delivery).paths))
    machine = MachineSettings(accelerator=args.accelerator, threads=args.threads or threads_for(side))
    model = Model.create(args.model, machine=machine, **first) if new else Model.open(args.model, machine)
    display = SilentDisplay(sys.stdout) if args.json else make_display()
    try:
        record = model.learn(
            args.delivery,
            steps=args.steps,
            minutes=args.minutes,
            holdout=args.holdout,
            again=args.again,
            display=display,
        )
    except OrdiscoError:
        if new:
            ModelDirectory(args.model).discard_empty()
        raise
    finally:
        display.close()
    if args.json:
        print(json.dumps(record, indent=2, ensure_ascii=False))
    else:
        display.message(result_in_words(record))
