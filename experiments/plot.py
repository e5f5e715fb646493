"""Draw accuracy over the increments, a line a row of the study: mean and standard deviation over seeds.

python experiments/plot.py NAME [--only ROW ...] [--out DIR]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ordisco.cli.options import Parser
from ordisco.errors import OrdiscoError
from ordisco.report import accuracy_curves
from results import Results
from rows import Study
from studies import STUDIES
from table import grouped

HERE = Path(__file__).resolve().parent


def main(argv: Sequence[str] | None = None, studies: Mapping[str, Study] = STUDIES) -> int:
    """The script; returns the exit code."""
    parser = Parser(prog="plot.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=tuple(studies), metavar="NAME", help=f"one of {', '.join(studies)}")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows of these names only")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="DIR", help="where results are")
    parser.add_argument("--out", type=Path, default=HERE / "figures", metavar="DIR", help="directory of the figures")
    try:
        args = parser.parse_args(argv)
        for path in draw(args.name, studies[args.name], args.only, Results(args.results), args.out):
            print(path)
    except OrdiscoError as error:
        print(f"plot: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def draw(name: str, study: Study, only: Sequence[str] | None, results: Results, out: Path) -> list[Path]:
    """A figure for each stream of the study."""
    rows = sorted(study.chosen(only), key=study.rows.index)
    streams = grouped(results.read_all(study, rows))
    if not streams:
        raise OrdiscoError(f"the study {name} has no results yet: run study.py {name}")
    paths = []
    for stream, groups in streams.items():
        curves: dict[str, Sequence[Sequence[float]]] = {
            group.name: [result["accuracies"] for result in group.results.values()] for group in groups
        }
        scenario = next(iter(groups[0].results.values()))["settings"]["stream"].get("scenario")
        words = re.sub(r"[^\w.+-]+", "-", f"{name}-{stream}" if len(streams) > 1 else name)
        path = out / f"{words}.png"
        accuracy_curves(path, curves, "task" if scenario == "new-class" else "increment", study.title)
        paths.append(path)
    return paths


if __name__ == "__main__":
    sys.exit(main())
