"""`ordisco judge`: what generators have learned, judged by a classifier of all images with all labels."""

from __future__ import annotations

import argparse

from ordisco.cli.options import add_settings, check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import UsageError
from ordisco.runs.config import FIELDS, RunConfig
from ordisco.runs.presets import PRESETS
from ordisco.settings.fields import MOST_SEED
from ordisco.streams.settings import StreamSettings

POINTS, DRAWN, MOST = 5_000, 1_000, 10**8


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "judge",
        usage="ordisco judge RUN [RUN ...] --out DIR [options]\n"
        "       ordisco judge --train STREAM --out DIR [options]",
        help="judge the generators of finished runs",
        description="Judge the generators of finished runs: the share of samples that a classifier of all images with "
        "all labels gives their class, coverage of the data, a t-SNE picture. Or, with --train, train such a "
        "classifier alone, which `ordisco run --judge DIR` takes.",
    )
    parser.add_argument("runs", nargs="*", type=path_of, metavar="RUN", help="directories of runs with a generator")
    parser.add_argument("--out", type=path_of, metavar="DIR", help="for a JSON file and pictures a run, or the judge")
    parser.add_argument("--judges", type=path_of, metavar="DIR", help="where judges are kept (default: DIR/judges)")
    parser.add_argument(
        "--points", type=int, default=POINTS, metavar="N", help=f"reference points of coverage (default: {POINTS})"
    )
    parser.add_argument(
        "--drawn", type=int, default=DRAWN, metavar="N", help=f"training images drawn, 0: none (default: {DRAWN})"
    )
    parser.add_argument(
        "--taught",
        type=int,
        default=0,
        metavar="N",
        help="also test a classifier that learned from N generated images alone, and one from the labelled images kept",
    )
    parser.add_argument("--data-dir", type=path_of, metavar="DIR", help="as for `ordisco run`")
    parser.add_argument("--train", metavar="STREAM", help="train the judge of this stream instead")
    parser.add_argument("--seed", type=int, default=0, help="--train: seed of the stream and of learning (default: 0)")
    parser.add_argument("--preset", choices=tuple(PRESETS), help="--train: that of the runs to be judged")
    add_settings(parser, StreamSettings, note="With --train, as for `ordisco run`.")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> None:
    """Judge, or train a judge."""
    check_ranges(args, points=(1, MOST), drawn=(0, MOST), taught=(0, MOST), seed=(0, MOST_SEED))
    if args.out is None:
        raise UsageError("--out DIR is missing: where the results are to be kept")
    if args.train is not None:
        if args.runs:
            raise UsageError("give RUN or --train STREAM, not both")
        train(args)
        return
    stream = [name for name in vars(args) if FIELDS.get(name) is StreamSettings]
    if stream:
        raise UsageError(f"{stream[0]} is only for --train: a run has its stream")
    if not args.runs:
        raise UsageError("give the directory of one or more runs, or --train STREAM")
    from ordisco.studies.generators import Judging, judge_run, summary

    how = Judging(
        args.out, args.judges or args.out / "judges", args.points, args.drawn, args.data_dir, taught=args.taught
    )
    print(summary([judge_run(path, how) for path in args.runs]).markdown(), end="")


def train(args: argparse.Namespace) -> None:
    """Train the judge of a stream and keep it as a finished run."""
    import time

    if args.out.exists():
        raise UsageError(f"out = {str(args.out)!r} is not allowed: it exists already")
    changes = {name: value for name, value in vars(args).items() if FIELDS.get(name) is StreamSettings}
    if args.data_dir is not None:
        changes["data_dir"] = str(args.data_dir)
    from ordisco.runs.directory import RunDirectory
    from ordisco.runs.launch import stream_of
    from ordisco.studies.judge import METHOD, save_judge, train_judge

    config = RunConfig.resolve(args.train, METHOD, args.preset, args.seed, **changes)
    stream, started = stream_of(config), time.monotonic()
    judge = train_judge(stream, threads=config.machine.threads)
    save_judge(args.out, config, stream, judge, time.monotonic() - started)
    print(RunDirectory(args.out).summary_markdown.read_text(encoding="utf-8"), end="")
