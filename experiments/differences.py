"""Paired differences between two methods of a comparison: the figures of docs/results.md.

python experiments/differences.py comparison.json METHOD OTHER
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ordisco.cli.options import Parser
from ordisco.errors import OrdiscoError, UsageError
from ordisco.files import told_in_one_line
from paired import differences, interval
from table import points

# what is compared of the accuracies of a run
PARTS: dict[str, Callable[[Sequence[float]], float]] = {
    "last increment": lambda accuracies: accuracies[-1],
    "mean over increments": statistics.fmean,
    "increments 2 to 4": lambda accuracies: statistics.fmean(accuracies[1:4]),
}


def paired(comparison: dict[str, Any], method: str, other: str) -> dict[str, str]:
    """Each part's mean difference in points with its confidence interval, over the seeds."""
    results = dict(zip(comparison["methods"], comparison["results"], strict=True))
    for name in (method, other):
        if name not in results:
            raise UsageError(f"method = {name!r} is not allowed: one of {', '.join(results)}")
    runs = [dict(zip(comparison["seeds"], results[name]["accuracies"], strict=True)) for name in (method, other)]
    found = {}
    for part, of in PARTS.items():
        mine, its = ({seed: of(accuracies) for seed, accuracies in run.items()} for run in runs)
        found[part] = points(interval(differences(mine, its)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """The script; returns the exit code."""
    parser = Parser(prog="differences.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, metavar="FILE", help="comparison.json of a finished comparison")
    parser.add_argument("method", metavar="METHOD")
    parser.add_argument("other", metavar="OTHER")
    try:
        args = parser.parse_args(argv)
        with told_in_one_line("read", args.file):
            comparison = json.loads(args.file.read_text(encoding="utf-8"))
        for part, words in paired(comparison, args.method, args.other).items():
            print(f"{part}: {words}")
    except OrdiscoError as error:
        print(f"differences: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
