"""What the generators of finished runs have learned: samples judged, data covered, a t-SNE picture (Table 4, Fig. 6).

python experiments/generator.py RUN_DIR ... --out DIR
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ordisco.cli.options import Parser
from ordisco.errors import OrdiscoError
from ordisco.report.table import markdown_table
from ordisco.report.words import percent


def arguments() -> Parser:
    """The options of this script."""
    parser = Parser(prog="generator.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN_DIR", help="run directories of methods with a G")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for a JSON file and a picture a run")
    parser.add_argument("--judges", type=Path, metavar="DIR", help="where judges are kept (default: DIR/judges)")
    parser.add_argument("--points", type=int, default=5000, help="reference points of coverage (default: 5000)")
    parser.add_argument(
        "--drawn", type=int, default=1000, help="training images in the picture, 0: none (default: 1000)"
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="as for `ordisco run`")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The script; returns the exit code."""
    try:
        args = arguments().parse_args(argv)
        reports = [report(path, args) for path in args.runs]
        print(summary(reports), end="")
    except OrdiscoError as error:
        print(f"generator: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def report(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Judge one run's generator; writes NAME.json and NAME.png."""
    from ordisco.files import write_atomically
    from ordisco.generator_quality import check_generator, coverings, sample_accuracy, seen_images
    from ordisco.judge import cached_judge
    from ordisco.launch import load_learner, read_config, saved_stream
    from ordisco.report import sample_grid
    from ordisco.rundir import RunDirectory
    from tsne import draw_tsne

    config = read_config(path)
    if args.data_dir is not None:
        config = replace(config, machine=replace(config.machine, data_dir=str(args.data_dir.resolve())))
    learner = load_learner(path)
    check_generator(learner)
    stream = saved_stream(RunDirectory(path), config)
    where, judge_accuracy = cached_judge(config, stream, args.judges or args.out / "judges")
    judge = load_learner(where)
    name = path.resolve().name
    samples, images = sample_accuracy(learner, judge), seen_images(stream, learner)
    result: dict[str, Any] = {
        "run": name,
        "stream": config.stream_name,
        "method": config.method,
        "seed": config.seed,
        "increments": learner.increments,
        "judge": where.name,
        "judge_test_accuracy": judge_accuracy,
        "sample_accuracy": samples.accuracy,
        "sample_accuracy_per_class": {stream.dataset.classes[label]: a for label, a in samples.per_class.items()},
        "samples_per_class": int(samples.confusion.sum()) // len(learner.classes),
        "train_images": len(images.train),
        "umb_images": len(images.umb),
        "coverings": [asdict(covering) for covering in coverings(learner, judge, images, args.points)],
    }
    write_atomically(args.out / f"{name}.json", (json.dumps(result, indent=1, ensure_ascii=False) + "\n").encode())
    if args.drawn:
        draw_tsne(args.out / f"{name}-tsne.png", learner, judge, images, args.drawn)
    labels = sorted(learner.classes)
    rows = [stream.dataset.classes[label] for label in labels]
    grid = learner.sample(torch_labels(labels, 16), seed=1).cpu()
    sample_grid(args.out / f"{name}-samples.png", grid, len(labels), rows)
    return result


def torch_labels(labels: Sequence[int], each: int) -> Any:
    """Each label so many times, as a tensor."""
    import torch

    return torch.tensor(labels).repeat_interleave(each)


def summary(reports: Sequence[dict[str, Any]]) -> str:
    """A Markdown table, a line a run; coverage of test images."""
    header = ("run", "increments", "judge on test", "judge on samples", "coverage by G", "by UMB (images)", "by real")
    lines = []
    for report in reports:
        test = {row["points_of"]: row for row in report["coverings"] if row["reference"] == "test"}
        umb = percent(test["UMB"]["coverage"]) if "UMB" in test else "—"
        lines.append(
            (
                report["run"],
                str(report["increments"]),
                percent(report["judge_test_accuracy"]),
                percent(report["sample_accuracy"]),
                percent(test["generated"]["coverage"]),
                f"{umb} ({report['umb_images']} of {report['train_images']})",
                percent(test["real"]["coverage"]),
            )
        )
    return markdown_table(header, lines)


if __name__ == "__main__":
    sys.exit(main())
