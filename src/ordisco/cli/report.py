"""`ordisco report`: one page of any runs; `ordisco watch`: the same page while they go on."""

from __future__ import annotations

import argparse
from pathlib import Path

from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.errors import OrdiscoError

PORT = 8017


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare both commands."""
    report = subparsers.add_parser(
        "report",
        usage="ordisco report RUN [RUN ...] [--out HTML]",
        help="one page of any runs: curves, samples, confusion, settings",
        description="Write one self-contained page of runs: curves over seeds, generated images over the increments, "
        "confusion matrices, settings and commands. It needs no network and no server.",
    )
    report.add_argument("runs", nargs="+", type=path_of, metavar="RUN", help="run directories, or folders of them")
    report.add_argument(
        "--out", type=path_of, default=Path("report.html"), metavar="HTML", help="(default: report.html)"
    )
    report.set_defaults(command=write)
    watch = subparsers.add_parser(
        "watch",
        usage="ordisco watch RUNS [RUNS ...] [--port N]",
        help="look at runs in a browser while they go on",
        description="Serve the page of runs on this machine alone, refreshed from their directories. It only reads.",
    )
    watch.add_argument("runs", nargs="+", type=path_of, metavar="RUNS", help="run directories, or folders of them")
    watch.add_argument("--port", type=int, default=PORT, metavar="N", help=f"0: any that is free (default: {PORT})")
    watch.set_defaults(command=serve)


def write(args: argparse.Namespace) -> None:
    """Write the page."""
    from ordisco.pages.glance import check_roots, find_runs
    from ordisco.pages.runs import write_report

    check_roots(args.runs)
    runs = list(dict.fromkeys(find_runs(args.runs)))
    if not runs:
        raise OrdiscoError(f"no run in {', '.join(str(path) for path in args.runs)}: give directories of runs")
    write_report(args.out, runs)
    print(args.out)


def serve(args: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    check_ranges(args, port=(0, 65_535))
    from ordisco.pages.glance import check_roots
    from ordisco.pages.watch import Server, Watch

    check_roots(args.runs)
    with Server(Watch(args.runs), args.port) as server:
        print(f"{server.url} (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
