"""Several methods, or several seeds, on the same stream: one table, one figure."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from ordisco.board import make_board
from ordisco.config import RunConfig
from ordisco.errors import OrdiscoError, UsageError, one_line
from ordisco.files import json_bytes, kind_of, read_plain, text_bytes, told_in_one_line, write_atomically
from ordisco.jobs import Job, Relay, run_jobs, stop_with_parent
from ordisco.launch import judge_of, make_learner, make_logger, new_run, resumed_run, stream_of
from ordisco.machine import usual_jobs
from ordisco.methods import method
from ordisco.outcome import result_of
from ordisco.precision import BF16, check_precision
from ordisco.processes import together
from ordisco.progress import Display
from ordisco.report import MethodResult, accuracy_curves, comparison_table
from ordisco.run import Run
from ordisco.rundir import RunDirectory, resume_command
from ordisco.stopping import Interrupted
from ordisco.unchanged import checksum

FILE = "comparison.json"


@dataclass(frozen=True)
class Comparison:
    """The runs of a comparison: a directory each, named by method and seed, below `path`."""

    path: Path
    config: RunConfig  # of the first run; the others differ in method and seed
    methods: tuple[str, ...]
    seeds: tuple[int, ...]

    def run_path(self, name: str, seed: int) -> Path:
        """Where the run of a method with a seed lives."""
        return self.path / f"{name}-seed{seed}"

    def config_of(self, name: str, seed: int) -> RunConfig:
        """The configuration of one run."""
        return dataclasses.replace(self.config, method=name, seed=seed)

    def start(self, fabric: Fabric) -> None:
        """Write down which runs belong here, so that `resume` can make those that are missing."""
        stream = stream_of(self.config)  # what is wrong with the options is found before anything is written
        judge_of(self.config, stream)
        make_logger(self.config.machine, self.path)
        for name in self.methods:
            make_learner(self.config_of(name, self.seeds[0]), stream, fabric)
        together(fabric, self._claim)

    def _claim(self) -> None:
        with told_in_one_line("use", self.path):
            taken = self.path.exists() and any(self.path.iterdir())
        if taken:
            known = is_comparison(self.path) or RunDirectory(self.path).settings_file.exists()
            way = f"continue it with `{resume_command(self.path)}`, or choose another --out" if known else ""
            raise OrdiscoError(f"{self.path} is not empty: {way or 'choose another --out'}")
        self._write({})

    def _write(self, more: dict[str, Any]) -> None:
        values = {"methods": list(self.methods), "seeds": list(self.seeds), "config": self.config.to_dict()} | more
        values["sha256"] = self._checksum()
        write_atomically(self.path / FILE, json_bytes(values, indent=2))

    def _checksum(self) -> str:
        return checksum(self.config.to_dict() | {"methods": list(self.methods), "seeds": list(self.seeds)})

    @staticmethod
    def load(path: Path) -> Comparison:
        """Read back what `start` wrote."""
        file = path / FILE
        with told_in_one_line("read", file):
            text = read_plain(file)
        try:
            values: dict[str, Any] = json.loads(text)
            config = RunConfig.from_dict(values["config"])
            comparison = Comparison(path, config, tuple(values["methods"]), tuple(values["seeds"]))
            runs = [(name, seed) for seed in comparison.seeds for name in comparison.methods]
            for run in runs:
                comparison.config_of(*run)  # refuses an unknown method, a seed out of range
            if values.get("sha256", comparison._checksum()) != comparison._checksum():
                raise ValueError("its checksum is wrong, put it back as it was written")
        except (ValueError, KeyError, TypeError, RecursionError, OrdiscoError) as error:
            raise OrdiscoError(f"{file} is damaged: {error}") from error
        for run in runs:
            if kind_of(comparison.run_path(*run)) not in ("directory", None):
                raise OrdiscoError(f"{comparison.run_path(*run)} is not a directory of its own: take it away")
        return comparison

    def go(
        self, display: Display, fabric: Fabric, max_steps: int | None = None, jobs: int | None = None
    ) -> list[MethodResult]:
        """Make every run that is not finished, then compare; nothing to compare where `max_steps` ended a run.

        `jobs` runs are made at once, a process each; one after the other here, if it is 1. The results are the same.
        """
        left = [(name, seed) for seed in self.seeds for name in self.methods if not self._finished(name, seed)]
        at_once = self.jobs_at_once(len(left), fabric, jobs)
        if at_once > 1:
            self._try_precision(fabric)
            complete = self._side_by_side(left, display, at_once, max_steps)
        else:
            complete = self._one_after_the_other(display, fabric, max_steps)
        return self.report(fabric) if complete else []

    def jobs_at_once(self, runs: int, fabric: Fabric, asked: int | None) -> int:
        """How many runs at once: as asked, else as many as the cores allow; one after the other on GPUs."""
        machine = self.config.machine
        if asked is None:
            alone = machine.devices > 1 or fabric.device.type != "cpu"
            return 1 if alone else usual_jobs(runs, machine.threads)
        if asked > 1 and machine.devices > 1:
            raise UsageError(f"jobs = {asked} is not allowed: 1, as each run takes {machine.devices} devices")
        return max(1, min(asked, runs))

    def _try_precision(self, fabric: Fabric) -> None:
        """Here once, not in every process; a comparison that is resumed may be on another machine."""
        if self.config.machine.precision == BF16:
            check_precision(BF16, fabric, self.config.learner, stream_of(self.config).image_shape)

    def _finished(self, name: str, seed: int) -> bool:
        return RunDirectory(self.run_path(name, seed)).summary_json.exists()

    def _one_after_the_other(self, display: Display, fabric: Fabric, max_steps: int | None) -> bool:
        complete = True
        try:
            for seed in self.seeds:
                for name in self.methods:
                    complete &= self._one(name, seed, display, fabric, max_steps)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped between two runs; {self.how_to_go_on()}") from None
        return complete

    def _side_by_side(
        self, left: Sequence[tuple[str, int]], display: Display, at_once: int, max_steps: int | None
    ) -> bool:
        for seed in self.seeds:
            for name in self.methods:
                if (name, seed) not in left:
                    self._tell_finished(name, seed, display)
        child = [sys.executable, "-m", "ordisco", "resume", str(self.path)]
        child += [] if max_steps is None else ["--max-steps", str(max_steps)]
        jobs = [Job(self.run_path(*run).name, [*child, "--job", f"{run[0]}:{run[1]}"]) for run in left]
        display.message(f"{len(jobs)} runs, {at_once} at once")
        board = make_board()
        try:
            ends = run_jobs(jobs, at_once, board)
        except KeyboardInterrupt:
            raise Interrupted(f"stopped at once, without checkpoints of now; {self.how_to_go_on()}") from None
        finally:
            board.close()
        if ends.failures:
            name, reason = next(iter(ends.failures.items()))
            others = "" if "ordisco resume" in reason else f"; what is done stays, {self.how_to_go_on()}"
            raise OrdiscoError(f"{len(ends.failures)} of {len(jobs)} runs failed ({name}: {reason}){others}")
        complete = all(self._finished(*run) for run in left)
        if ends.stopped_by is not None and not complete:
            raise Interrupted(f"stopped by {ends.stopped_by}, all is saved; {self.how_to_go_on()}")
        return complete

    def job(self, text: str, fabric: Fabric, max_steps: int | None = None) -> None:
        """In a process of its own: make the run `method:seed`, tell the parent, and stop with it."""
        name, _, seed = text.rpartition(":")
        if name not in self.methods or seed not in map(str, self.seeds):
            raise UsageError(f"job = {text!r} is not allowed: a method and a seed of {self.path}")
        with self._ready(name, int(seed), Relay(sys.stdout), fabric) as run:
            stop_with_parent(run.stop)
            run.go(max_steps)

    def _one(self, name: str, seed: int, display: Display, fabric: Fabric, max_steps: int | None) -> bool:
        if fabric.broadcast(self._finished(name, seed)):
            self._tell_finished(name, seed, display)
            return True
        with self._ready(name, seed, display, fabric) as run:
            complete = run.go(max_steps)
            asked, last = run.asked_to_stop(), (name, seed) == (self.methods[-1], self.seeds[-1])
        if asked and not last:
            raise Interrupted(f"stopped as asked after this run; {self.how_to_go_on()}")
        return complete

    @contextmanager
    def _ready(self, name: str, seed: int, display: Display, fabric: Fabric) -> Iterator[Run]:
        path = self.run_path(name, seed)
        begun = fabric.broadcast(RunDirectory(path).settings_file.exists())
        ready = (
            resumed_run(path, display, fabric) if begun else new_run(self.config_of(name, seed), path, display, fabric)
        )
        with ready as run:
            run.resume_with = self.path
            yield run

    def _tell_finished(self, name: str, seed: int, display: Display) -> None:
        display.message(f"{method(name).title}, seed {seed}: finished before, in {self.run_path(name, seed)}")

    def how_to_go_on(self) -> str:
        """The command that makes the runs that are missing."""
        return f"go on with: {resume_command(self.path)}"

    def report(self, fabric: Fabric) -> list[MethodResult]:
        """The table and the figure of all runs."""
        fabric.barrier()  # the last summary is written
        results = [
            result_of([RunDirectory.open(self.run_path(name, seed)) for seed in self.seeds], name)
            for name in self.methods
        ]
        together(fabric, lambda: self._write_report(results))
        return results

    def _write_report(self, results: list[MethodResult]) -> None:
        x_label = "task" if self.config.stream.scenario == "new-class" else "increment"
        curves: dict[str, Sequence[Sequence[float]]] = {r.method: r.accuracies for r in results}
        accuracy_curves(self.path / "comparison.png", curves, x_label, self.config.stream_name)
        write_atomically(self.path / "comparison.md", text_bytes(self._markdown(results)))
        self._write({"results": [dataclasses.asdict(result) for result in results]})

    def _markdown(self, results: list[MethodResult]) -> str:
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {self.seeds[0]} to {self.seeds[-1]}"
        what = f"{self.config.stream_name}, preset {self.config.preset}, {seeds}"
        parts = [f"# {one_line(what)}\n", "Accuracy on the classes seen so far.\n", comparison_table(results)]
        parts.append("![Accuracy after each increment](<comparison.png>)\n")
        for name in self.methods:
            grids = sorted((self.run_path(name, self.seeds[0]) / "samples").glob("*.png"))
            for grid in grids[-1:]:
                where = grid.relative_to(self.path).as_posix()
                parts.append(f"![Images generated by {method(name).title}, a row a class](<{where}>)\n")
        return "\n".join(parts)


def is_comparison(path: Path) -> bool:
    """Does this directory hold several runs?"""
    return (path / FILE).is_file()
