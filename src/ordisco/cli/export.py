"""`ordisco export`: the model as an ONNX file, or images of its generator as a folder."""

from __future__ import annotations

import argparse

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import UsageError
from ordisco.settings.fields import MOST_SEED

MOST = 100_000


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "export",
        help="a model as an ONNX file, or samples of it as a folder",
        description="Write a model as an ONNX file: uint8 images in, class probabilities out, any number at once, the "
        "names of the classes in its metadata. It is compared with the model before it is put in place. Or, with "
        "--samples, write images of the generator as a folder.",
    )
    parser.add_argument("model", type=path_of, metavar="MODEL", help="directory of the model")
    parser.add_argument("out", type=path_of, metavar="OUT", help="the file, NAME.onnx, or with --samples a new folder")
    parser.add_argument(
        "--samples", type=int, metavar="N", help="N generated images of each class instead, a sub-folder a class"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the samples (default: 0)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Write it."""
    check_ranges(args, samples=(1, MOST), seed=(0, MOST_SEED))
    if args.samples is None and args.out.suffix.lower() != ".onnx":
        raise UsageError(
            f"out = {str(args.out)!r} is not allowed: a name that ends in .onnx, or --samples N for a folder"
        )
    from ordisco.model.model import Model
    from ordisco.words import counted, size

    model = Model.open(args.model)
    names = list(model.about.classes)
    classes = counted(len(names), "class")
    if args.samples is not None:
        from ordisco.model.samples import write_samples

        write_samples(args.out, model.learner, names, args.samples, args.seed)
        print(f"{args.out}: {counted(args.samples, 'image')} of each of {classes}")
        return
    from ordisco.model.onnx_file import BATCHES, export_onnx

    apart = export_onnx(args.out, model.learner, names)
    channels, side, _ = model.image_shape
    sizes = " and ".join(str(batch) for batch in BATCHES)
    print(
        f"{args.out}: {size(args.out.stat().st_size)}, uint8 (batch, {channels}, {side}, {side}) to probabilities of "
        f"{classes}; "
        f"within {apart:.1g} of the model at batch sizes {sizes}"
    )
