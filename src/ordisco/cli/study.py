"""`ordisco study`: make the rows of a study, print its table, draw it, fill documents with it."""

from __future__ import annotations

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.cli.launching import add_launcher, launching_of
from ordisco.cli.options import check_ranges
from ordisco.cli.options import path as path_of
from ordisco.cli.run import MOST_JOBS, MOST_STEPS
from ordisco.errors import OrdiscoError, UsageError
from ordisco.runs.signals import leave_interrupts_to_parent

if TYPE_CHECKING:
    from ordisco.studies.results import Results
    from ordisco.studies.study import Row, Study


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "study",
        usage="ordisco study FILE NAME [--only ROW ...] [--seeds N ...] [--jobs N] [options]\n"
        "       ordisco study FILE NAME --list | --table | --plot PNG [--frontier STEPS]\n"
        "       ordisco study FILE [--list] | --fill DOCUMENT [--check]",
        help="make the runs of a study and their table",
        description="Make every run of a study that has no result yet, going on with those that were interrupted. "
        "FILE is a TOML file of studies, such as experiments/studies.toml.",
    )
    parser.add_argument("file", type=path_of, metavar="FILE", help="the file of studies")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a study of the file (none: list them)")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows of these names only")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="rows with these seeds only")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs made at once, a process each (default: as `run`)")
    parser.add_argument(
        "--work", type=path_of, default=Path("runs/study"), metavar="DIR", help="of the runs (default: runs/study)"
    )
    parser.add_argument("--results", type=path_of, metavar="DIR", help="(default: the folder results beside FILE)")
    parser.add_argument("--data-dir", type=path_of, metavar="DIR", help="as for `ordisco run`")
    parser.add_argument("--list", action="store_true", help="list the rows, what is done and their commands")
    parser.add_argument("--table", action="store_true", help="print the table of what is done")
    parser.add_argument("--against", metavar="ROW", help="with --table: the row that differences are taken to")
    parser.add_argument(
        "--over", metavar="A-B", help="with --table: compare the mean over the increments A to B, not the last one"
    )
    parser.add_argument(
        "--each",
        metavar="MEASURE",
        help="with --table: a column for each increment; MEASURE is accuracy, pseudo-labels, trusted, "
        "right (of these), penalty (its gradient over the loss's) or samples (by the judge)",
    )
    parser.add_argument(
        "--reach", metavar="PERCENT", help="with --table: CPU-seconds until C′ is first found so accurate"
    )
    parser.add_argument(
        "--frontier",
        type=int,
        metavar="STEPS",
        help="with --table or --plot: rows such as 'SMB, 300 steps' as curves over CPU-seconds, compared at STEPS, in "
        "equal CPU-seconds and with most steps",
    )
    parser.add_argument("--plot", type=path_of, metavar="PNG", help="draw accuracy over the increments")
    parser.add_argument("--fill", type=path_of, metavar="DOCUMENT", help="put the tables into a Markdown document")
    parser.add_argument("--check", action="store_true", help="with --fill: only tell whether it is up to date")
    add_launcher(parser)
    parser.add_argument("--job", help=argparse.SUPPRESS)  # a row, in a process that `--jobs` has started
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit code is 1 if a document that was checked is out of date."""
    if args.job is not None:
        leave_interrupts_to_parent()
    check_ranges(args, jobs=(1, MOST_JOBS), frontier=(1, MOST_STEPS))
    for option, needs in (
        ("against", "table"),
        ("over", "table"),
        ("each", "table"),
        ("reach", "table"),
        ("check", "fill"),
    ):
        if getattr(args, option) not in (None, False) and not getattr(args, needs):
            raise UsageError(f"--{option} is only for --{needs}")
    if args.frontier is not None and not (args.table or args.plot):
        raise UsageError("--frontier is only for --table and --plot")
    if sum(bool(getattr(args, action)) for action in ("list", "table", "plot", "fill")) > 1:
        raise UsageError("give one of --list, --table, --plot, --fill")
    from ordisco.studies.read import read_study, study_names

    if args.fill is not None:
        if args.name is not None:
            raise UsageError("--fill takes no NAME: a document names its studies")
        return fill(args)
    if args.name is None:
        if args.table or args.plot or args.only or args.seeds:
            raise UsageError(f"NAME is missing: one of {', '.join(study_names(args.file))}")
        for name, title in study_names(args.file).items():
            print(f"{name}: {title}")
        return 0
    data_dir = None if args.data_dir is None else str(args.data_dir)
    study = read_study(args.file, args.name, runs_at_once=args.jobs or 1, data_dir=data_dir)
    rows = study.chosen(args.only, args.seeds)
    if not rows:
        raise UsageError("no row has one of these seeds")
    if args.list:
        list_rows(rows, results_of(args), args.work)
    elif args.table:
        table(args, study, rows)
    elif args.plot is not None:
        plot(study, rows, results_of(args), args.plot, args.frontier is not None)
    else:
        make(args, rows)
    return 0


def results_of(args: argparse.Namespace) -> Results:
    """Where the results are."""
    from ordisco.studies.results import Results

    return Results(args.results or args.file.parent / "results")


def make(args: argparse.Namespace, rows: tuple[Row, ...]) -> None:
    """Make the rows that have no result."""
    from ordisco.machine.processes import start
    from ordisco.report.voice import one_voice
    from ordisco.studies.engine import Engine, Task
    from ordisco.studies.study import by_seed

    results = results_of(args)
    left = {row.key: row for row in by_seed(rows) if results.read(row) is None}  # rows may share a result
    if not left or (args.job is not None and args.job not in left and args.job in {row.key for row in rows}):
        return
    tasks = [Task(row, args.work / key, row.title) for key, row in left.items()]
    words, judges = words_of(args, results), args.work / "judges"
    engine = Engine(tasks, words, "the same command goes on", args.file, results, judges)
    if args.job is not None:
        engine.job(args.job, parent=getattr(args, "parent", None))
        return
    launching = launching_of(args, args.work)
    machine = tasks[0].row.config.machine
    fabric = start(dataclasses.replace(machine, devices=1, num_nodes=1) if launching is not None else machine)
    with one_voice(fabric) as display:
        made = engine.go(display, fabric, jobs=args.jobs, launching=launching)
        if made.busy:
            display.message(
                f"{len(made.busy)} of {len(tasks)} rows were left to another process: {', '.join(made.busy)}"
            )


def words_of(args: argparse.Namespace, results: Results) -> list[str]:
    """After `ordisco`, the command that makes these rows, from wherever it is given."""
    words = ["study", str(args.file.resolve()), args.name, "--work", str(args.work.resolve())]
    words += ["--results", str(results.path.resolve())]
    words += [] if args.jobs is None else ["--jobs", str(args.jobs)]  # by which the rows share threads
    words += [word for name in ("only", "seeds") if getattr(args, name) for word in (f"--{name}", *getattr(args, name))]
    words = [str(word) for word in words]
    return words if args.data_dir is None else [*words, "--data-dir", str(args.data_dir.resolve())]


def list_rows(rows: tuple[Row, ...], results: Results, work: Path) -> None:
    """A line for each row: done, begun or to do, and the command."""
    from ordisco.studies.study import by_seed
    from ordisco.words import percent

    for row in by_seed(rows):
        result = results.read(row)
        begun = (work / row.key).exists()
        state = f"{percent(result['last_accuracy']):>7}" if result else "  begun" if begun else "  to do"
        print(f"{state}  {row.title}: {row.command}" + (f"  # {row.purpose}" if row.purpose else ""))


def table(args: argparse.Namespace, study: Study, rows: tuple[Row, ...]) -> None:
    """Print the table of what is done, as the options want it."""
    from ordisco.studies.each import each_increment
    from ordisco.studies.frontier import frontier_table
    from ordisco.studies.table import Span, accuracy_of, study_text

    if args.each and (args.over or args.against):
        raise UsageError("--each compares nothing: leave --over and --against out")
    if args.frontier and (args.each or args.over or args.reach):
        raise UsageError("--frontier is a table of its own: leave --each, --over and --reach out")
    over = None if args.over is None else Span.read(args.over)
    reach = None if args.reach is None else accuracy_of(args.reach)
    study = study.against(args.against)
    other = None
    if args.each is not None:
        other = partial(each_increment, measure=args.each)
    elif args.frontier is not None:
        other = partial(frontier_table, steps=args.frontier, reference=study.reference)
    print(study_text(study, results_of(args).read_all(rows), over, reach, other))


def plot(study: Study, rows: tuple[Row, ...], results: Results, path: Path, frontier: bool = False) -> None:
    """Draw a line for each row: mean and standard deviation over seeds; of a frontier, a line for each method."""
    from ordisco.report.curves import accuracy_curves
    from ordisco.report.frontier import frontier_figure
    from ordisco.streams.settings import name_of_increment
    from ordisco.studies.frontier import drawn
    from ordisco.studies.table import curves_of, grouped

    streams = grouped(results.read_all(rows))
    if not streams:
        raise OrdiscoError(f"{study.title!r} has no results yet: make the runs first")
    if len(streams) > 1:
        raise UsageError(f"the rows are of {len(streams)} streams, a figure is of one: choose rows with --only")
    [groups] = streams.values()
    if frontier:
        frontier_figure(path, drawn(groups), study.title)
    else:
        accuracy_curves(path, curves_of(groups), name_of_increment(rows[0].config.stream.scenario), study.title)
    print(path)


def fill(args: argparse.Namespace) -> int:
    """Fill a document, or tell what of it is out of date."""
    from ordisco.studies import documents
    from ordisco.studies.read import read_study

    stale = documents.fill_studies(args.fill, lambda name: read_study(args.file, name), results_of(args), args.check)
    return documents.tell(args.fill, "study", stale, args.check)
