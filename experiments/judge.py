"""Train the judge of a stream's generated images: all its images, all their labels.

    python experiments/judge.py STREAM [options of `ordisco run`] --out DIR

DIR is what `ordisco run … --judge DIR` wants.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from ordisco.cli import parser
from ordisco.cli.run import configuration
from ordisco.errors import OrdiscoError, UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """The script; returns the exit code."""
    try:
        args = parser().parse_args(["run", *(sys.argv[1:] if argv is None else argv)])
        if args.out is None:
            raise UsageError("--out DIR is missing: where the judge is to be kept")
        if args.out.exists():
            raise UsageError(f"out = {str(args.out)!r} is not allowed: it exists already")
        config = configuration(args)[0]
        from ordisco.judge import save_judge, train_judge
        from ordisco.launch import stream_of

        stream, started = stream_of(config), time.monotonic()
        judge = train_judge(stream, threads=config.machine.threads)
        save_judge(args.out, config, stream, judge, time.monotonic() - started)
        print((args.out / "summary.md").read_text(), end="")
    except OrdiscoError as error:
        print(f"judge: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
