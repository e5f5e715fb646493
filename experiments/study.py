"""Run the rows of a study that have no result yet, resume those that were interrupted, or print the table.

python experiments/study.py NAME [--only ROW ...] [--seeds N ...] [--jobs N]
python experiments/study.py NAME --list
python experiments/study.py NAME --table
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import filelock

from ordisco.cli.options import Parser
from ordisco.errors import OrdiscoError, UsageError
from ordisco.report.words import duration, percent
from ordisco.stopping import Interrupted
from results import Results, code_now, note_code, result_of
from rows import Row, Study
from studies import STUDIES
from table import study_table

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Place:
    """Where runs are made and results are kept, and by which code."""

    results: Results
    work: Path
    machine: tuple[str, ...]  # options of `ordisco run` that do not change the outcome
    code: dict[str, Any]

    def run_path(self, row: Row, judged: bool) -> Path:
        """The run directory of a row."""
        return self.work / self.results.file(row, judged).stem


def arguments(studies: Mapping[str, Study]) -> Parser:
    """The options of this script."""
    parser = Parser(prog="study.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=tuple(studies), metavar="NAME", help=f"one of {', '.join(studies)}")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="rows of these names only")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="N", help="rows with these seeds only")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at the same time (default: 1)")
    parser.add_argument("--out", type=Path, default=HERE / "results", metavar="DIR", help="directory of the results")
    parser.add_argument("--work", type=Path, default=Path("runs/study"), metavar="DIR", help="directory of the runs")
    parser.add_argument("--data-dir", metavar="DIR", help="as for `ordisco run`")
    parser.add_argument("--list", action="store_true", help="list the rows and what is done, and stop")
    parser.add_argument("--table", action="store_true", help="print the table of what is done, and stop")
    parser.add_argument("--against", metavar="ROW", help="with --table: the row that differences are taken to")
    return parser


def main(argv: Sequence[str] | None = None, studies: Mapping[str, Study] = STUDIES) -> int:
    """The script; returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        args = arguments(studies).parse_args(argv)
        if args.jobs < 1:
            raise UsageError(f"jobs = {args.jobs} is not allowed: 1 or more")
        if args.against is not None and not args.table:
            raise UsageError(f"against = {args.against!r} is only for --table")
        study: Study = studies[args.name]
        rows = study.chosen(args.only, args.seeds)
        results = Results(args.out)
        if args.table:
            print(study_table(against(study, args.against), results.read_all(study, rows)))
            return 0
        machine = () if args.data_dir is None else ("--data-dir", args.data_dir)
        place = Place(results, args.work, machine, code_now())
        for row in rows:
            row.key  # noqa: B018 - what is wrong with a row is found before the first run
        if args.list:
            list_rows(study, rows, place)
            return 0
        return run_rows(study, rows, place) if args.jobs == 1 else run_processes(argv, args.jobs, args.work)
    except OrdiscoError as error:
        print(f"study: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("study: interrupted; the same command goes on", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def against(study: Study, row: str | None) -> Study:
    """The study with differences to that row; nothing to change for None."""
    if row is None:
        return study
    study.chosen([row])  # refuses an unknown name
    return replace(study, reference=row, ceiling=None)


def list_rows(study: Study, rows: Sequence[Row], place: Place) -> None:
    """A line a row: done, begun or to do, and the command."""
    for row in rows:
        result = place.results.read(row, study.wants_judge(row))
        begun = place.run_path(row, study.wants_judge(row)).exists()
        state = f"{percent(result['last_accuracy']):>7}" if result else "  begun" if begun else "  to do"
        print(f"{state}  {row.name}, seed {row.seed}: {row.command}" + (f"  # {row.purpose}" if row.purpose else ""))


def run_rows(study: Study, rows: Sequence[Row], place: Place) -> int:
    """Make the rows one by one; one that fails is told and left, one that another process makes is passed over."""
    failed = 0
    for number, row in enumerate(rows, start=1):
        judged = study.wants_judge(row)
        if place.results.read(row, judged) is not None:
            continue
        print(f"[{number}/{len(rows)}] {row.name}, seed {row.seed}: {row.command}", flush=True)
        place.work.mkdir(parents=True, exist_ok=True)
        try:
            with filelock.FileLock(place.work / f".{row.key}.lock", timeout=0):
                if place.results.read(row, judged) is None:
                    run_row(row, judged, place)
        except filelock.Timeout:
            print(f"[{number}/{len(rows)}] another process is at it", flush=True)
        except Interrupted:
            raise
        except OrdiscoError as error:
            failed += 1
            print(f"study: {row.name}, seed {row.seed} failed: {error}", file=sys.stderr, flush=True)
    return 1 if failed else 0


def run_row(row: Row, judged: bool, place: Place) -> None:
    """Make or resume one run, then write its result."""
    from ordisco.judge import cached_judge
    from ordisco.launch import new_run, resumed_run, stream_of
    from ordisco.processes import one_voice, start
    from ordisco.rundir import RunDirectory

    path = place.run_path(row, judged)
    directory, config = RunDirectory(path), row.config(*place.machine)
    code = note_code(path.with_name(f"{path.name}.code.json"), place.code)
    asked_to_stop = False
    if not directory.summary_json.exists():
        if judged:
            judge, _ = cached_judge(config, stream_of(config), place.work / "judges")
            config = replace(config, machine=replace(config.machine, judge=str(judge.resolve())))
        fabric = start(config.machine)
        with one_voice(fabric) as display:
            begun = directory.settings_file.exists()
            ready = resumed_run(path, display, fabric) if begun else new_run(config, path, display, fabric)
            with ready as run:
                run.go()
                asked_to_stop = run.asked_to_stop()
    result = result_of(row, config, RunDirectory.open(path), code)
    if judged:
        train = shlex.join(["python", "experiments/judge.py", *row.arguments[1:], "--out", "judge"])
        result["command"] = f"{train} && {row.command} --judge judge"
    file = place.results.write(row, judged, result)
    print(f"{percent(result['last_accuracy'])} in {duration(result['seconds'])}: {file}", flush=True)
    if asked_to_stop:
        raise Interrupted("stopped as asked after this row; the same command goes on")


def run_processes(argv: Sequence[str], jobs: int, work: Path) -> int:
    """Several processes, each takes the next row that nobody is at; a signal reaches all and all is saved."""
    work.mkdir(parents=True, exist_ok=True)
    children = []
    for number in range(1, jobs + 1):
        log = work / f"process-{number}.log"
        print(f"process {number} writes {log}", flush=True)
        command = [sys.executable, str(HERE / "study.py"), *argv, "--jobs", "1"]
        with log.open("a") as file:
            children.append(subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT))

    def end(number: int, frame: object) -> None:
        for child in children:
            child.terminate()

    signal.signal(signal.SIGTERM, end)
    while True:
        try:
            return max(abs(child.wait()) for child in children)
        except KeyboardInterrupt:  # the terminal has told the children too: let them save
            continue


if __name__ == "__main__":
    sys.exit(main())
