"""Several methods, or several seeds, on the same stream: one table, one figure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordisco.config import RunConfig
from ordisco.errors import OrdiscoError
from ordisco.launch import new_run, resumed_run
from ordisco.methods import method
from ordisco.outcome import result_of
from ordisco.progress import Display
from ordisco.report import MethodResult, accuracy_curves, comparison_table
from ordisco.rundir import RunDirectory, write_atomically

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

    def start(self) -> None:
        """Write down which runs belong here, so that `resume` can make those that are missing."""
        if self.path.exists() and any(self.path.iterdir()):
            raise OrdiscoError(
                f"{self.path} is not empty: continue it with `ordisco resume {self.path}`, or choose another --out"
            )
        values = {"methods": list(self.methods), "seeds": list(self.seeds), "config": self.config.to_dict()}
        write_atomically(self.path / FILE, (json.dumps(values, indent=2) + "\n").encode())

    @staticmethod
    def load(path: Path) -> Comparison:
        """Read back what `start` wrote."""
        try:
            values: dict[str, Any] = json.loads((path / FILE).read_text())
            config = RunConfig.from_dict(values["config"])
            return Comparison(path, config, tuple(values["methods"]), tuple(values["seeds"]))
        except (ValueError, KeyError) as error:
            raise OrdiscoError(f"{path / FILE} is damaged: {error}") from error

    def go(self, display: Display, max_steps: int | None = None) -> list[MethodResult]:
        """Make every run that is not finished, then compare."""
        for seed in self.seeds:
            for name in self.methods:
                self._one(name, seed, display, max_steps)
        return [] if max_steps is not None else self.report()

    def _one(self, name: str, seed: int, display: Display, max_steps: int | None) -> None:
        path = self.run_path(name, seed)
        config = dataclasses.replace(self.config, method=name, seed=seed)
        if RunDirectory(path).summary_json.exists():
            display.message(f"{method(name).title}, seed {seed}: finished before, in {path}")
            return
        ready = (
            resumed_run(path, display) if RunDirectory(path).settings_file.exists() else new_run(config, path, display)
        )
        with ready as run:
            run.go(max_steps)

    def report(self) -> list[MethodResult]:
        """The table and the figure of all runs."""
        results = [
            result_of([RunDirectory.open(self.run_path(name, seed)) for seed in self.seeds], name)
            for name in self.methods
        ]
        x_label = "task" if self.config.stream.scenario == "new-class" else "increment"
        curves: dict[str, Sequence[Sequence[float]]] = {r.method: r.accuracies for r in results}
        accuracy_curves(self.path / "comparison.png", curves, x_label, self.config.stream_name)
        write_atomically(self.path / "comparison.md", (comparison_table(results) + "\n").encode())
        return results


def is_comparison(path: Path) -> bool:
    """Does this directory hold several runs?"""
    return (path / FILE).is_file()
