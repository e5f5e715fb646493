"""Several methods, or several seeds, on the same stream: a study in a directory of its own, one table, one figure."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError, one_line
from ordisco.files import (
    check_directory,
    json_bytes,
    json_of,
    read_plain,
    text_bytes,
    told_in_one_line,
    write_atomically,
)
from ordisco.machine.fabric import Fabric
from ordisco.machine.processes import together
from ordisco.report.curves import accuracy_curves
from ordisco.report.table import TextTable
from ordisco.report.terminal import Display
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory, resume_command
from ordisco.runs.launch import judge_of, make_learner, make_logger, stream_of
from ordisco.runs.unchanged import checksum
from ordisco.settings.methods import method
from ordisco.streams.settings import name_of_increment
from ordisco.studies.engine import Engine, Task
from ordisco.studies.launching import Launching
from ordisco.studies.results import NEEDED, outcome_of
from ordisco.studies.study import Row
from ordisco.studies.table import Group, curves_of, table_of

FILE = "study.json"
OLD_FILE = "comparison.json"  # that of ordisco 0.1.0


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

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Method and seed of each run, all of a seed before those of the next."""
        return [(name, seed) for seed in self.seeds for name in self.methods]

    def engine(self) -> Engine:
        """What makes the runs."""
        tasks = []
        for run in self.runs:
            path = self.run_path(*run)
            tasks.append(Task(Row(method(run[0]).title, self.config_of(*run)), path, path.name))
        return Engine(
            tasks, ("resume", str(self.path.resolve())), f"go on with: {resume_command(self.path)}", self.path / FILE
        )

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
        if not file.is_file() and (path / OLD_FILE).is_file():
            raise OrdiscoError(
                f"{path} holds a comparison of ordisco 0.1.0, which only that version can go on with: "
                "use it, or start the runs again with another --out"
            )
        with told_in_one_line("read", file):
            text = read_plain(file)
        try:
            values: dict[str, Any] = json_of(text)
            config = RunConfig.from_dict(values["config"])
            comparison = Comparison(path, config, tuple(values["methods"]), tuple(values["seeds"]))
            for run in comparison.runs:
                comparison.config_of(*run)  # refuses an unknown method, a seed out of range
            if values.get("sha256", comparison._checksum()) != comparison._checksum():
                raise ValueError("its checksum is wrong, put it back as it was written")
            if not comparison.runs:
                raise ValueError("it has no runs")
        except (ValueError, KeyError, TypeError, OrdiscoError) as error:
            raise OrdiscoError(f"{file} is damaged: {error}") from error
        for run in comparison.runs:
            check_directory(comparison.run_path(*run))
        return comparison

    def go(
        self,
        display: Display,
        fabric: Fabric,
        max_steps: int | None = None,
        jobs: int | None = None,
        launching: Launching | None = None,
    ) -> TextTable | None:
        """Make every run that is not finished, then compare; nothing to compare where `max_steps` ended a run."""
        made = self.engine().go(display, fabric, max_steps, jobs, launching)
        if made.busy:
            raise OrdiscoError(next(iter(made.busy.values())))
        return self.report(fabric) if made.complete else None

    def report(self, fabric: Fabric) -> TextTable:
        """The table and the figure of all runs."""
        fabric.barrier()  # the last summary is written
        groups = []
        for name in self.methods:
            results = {seed: outcome_of(RunDirectory.open(self.run_path(name, seed))) for seed in self.seeds}
            shown = {seed: {key: result[key] for key in NEEDED} for seed, result in results.items()}
            groups.append(Group(method(name).title, shown))
        table = table_of(groups)
        together(fabric, lambda: self._write_report(groups, table))
        return table

    def _write_report(self, groups: Sequence[Group], table: TextTable) -> None:
        x_label, curves = name_of_increment(self.config.stream.scenario), curves_of(groups)
        accuracy_curves(self.path / "comparison.png", curves, x_label, self.config.stream_name)
        write_atomically(self.path / "comparison.md", text_bytes(self._markdown(table)))
        results = [
            {
                "method": group.name,
                "accuracies": curves[group.name],
                "seconds": statistics.fmean(group.values("seconds").values()),
                "kept_bytes": max(group.values("kept_bytes").values()),
            }
            for group in groups
        ]
        self._write({"results": results})

    def _markdown(self, table: TextTable) -> str:
        seeds = f"seed {self.seeds[0]}" if len(self.seeds) == 1 else f"seeds {self.seeds[0]} to {self.seeds[-1]}"
        what = f"{self.config.stream_name}, preset {self.config.preset}, {seeds}"
        parts = [f"# {one_line(what)}\n", "Accuracy on the classes seen so far.\n", table.markdown()]
        parts.append("![Accuracy after each increment](<comparison.png>)\n")
        for name in self.methods:
            grids = sorted((self.run_path(name, self.seeds[0]) / "samples").glob("*.png"))
            for grid in grids[-1:]:
                where = grid.relative_to(self.path).as_posix()
                parts.append(f"![Images generated by {method(name).title}, a row a class](<{where}>)\n")
        return "\n".join(parts)


def is_comparison(path: Path) -> bool:
    """Does this directory hold several runs?"""
    return (path / FILE).is_file() or (path / OLD_FILE).is_file()
