"""What launchers and processes cost, as ratios taken in one run: the same grid of runs, made in four ways."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.launchers.base import Launcher
from ordisco.launchers.local import Local
from ordisco.launchers.ray import Ray
from ordisco.machine.cores import cores, processor
from ordisco.machine.processes import start
from ordisco.report.board import PlainBoard
from ordisco.report.terminal import SilentDisplay
from ordisco.runs.config import RunConfig
from ordisco.runs.made import code_now
from ordisco.studies.comparison import Comparison
from ordisco.studies.launching import Launching

RUNS, STEPS = 4, 20  # of the grid; steps an increment


def grid(folder: Path, runs: int = RUNS) -> Comparison:
    """Short runs of ORDisCo on the digits."""
    config = RunConfig.resolve("digits-5-new-class", "ordisco", steps=STEPS, threads=1, accelerator="cpu")
    comparison = Comparison(folder, config, ("ordisco",), tuple(range(runs)))
    comparison.start(start(config.machine))
    return comparison


def bare(folder: Path) -> float:
    """Seconds of the runs one after the other in this process, which has torch loaded."""
    comparison = grid(folder)
    fabric, display = start(comparison.config.machine), SilentDisplay(io.StringIO())
    return timed(lambda: comparison.engine().one_after_the_other(display, fabric, None))


def launched(folder: Path, launcher: Launcher, at_once: int, runs: int = RUNS) -> float:
    """Seconds of the runs by a launcher, from the first word to the last."""
    engine = grid(folder, runs).engine()
    jobs = engine.jobs(engine.tasks, Launching(launcher, cpus=1), None)
    start = time.perf_counter()
    ends = launcher.run(jobs, at_once, PlainBoard(io.StringIO()))
    seconds = time.perf_counter() - start
    if ends.failures or not all(task.finished for task in engine.tasks):
        raise OrdiscoError(f"the measurement was not finished: {ends.failures or ends.stopped_by}")
    return seconds


def timed(call: Callable[[], object]) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def launchers(with_ray: bool) -> dict[str, float]:
    """Seconds of the grid, made in several ways."""
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        found = {
            "bare": bare(at / "bare"),
            "local_first": launched(at / "first", Local(), 1, runs=1),
            "local": launched(at / "local", Local(), 1),
            "local_two": launched(at / "two", Local(), 2),
        }
        if with_ray:
            found |= {"ray": launched(at / "ray", Ray(), 1), "ray_two": launched(at / "ray-two", Ray(), 2)}
    return found


def parallel(name: str, processes: int, rounds: int) -> dict[str, Any]:
    """A data-parallel step, measured by processes of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "ordisco.bench.parallel", name, str(processes), str(rounds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def ratios(seconds: dict[str, float]) -> dict[str, float]:
    """What the grid's seconds say."""
    each = seconds["bare"] / RUNS
    found = {
        "local_over_bare": seconds["local"] / seconds["bare"],
        "local_two_cores": seconds["local"] / seconds["local_two"],
        "first_run_seconds": seconds["local_first"] - each,
        "next_run_seconds": (seconds["local"] - seconds["local_first"]) / (RUNS - 1) - each,
        "run_seconds": each,
    }
    if "ray" in seconds:
        found["ray_over_bare"] = seconds["ray"] / seconds["bare"]
        found["ray_over_local"] = seconds["ray"] / seconds["local"]
        found["ray_two_cores"] = seconds["ray"] / seconds["ray_two"]
    return found


def taken() -> str:
    """Where, with what, and of which code."""
    import torch

    code = code_now()
    commit = f"commit {code['commit'][:7]}{', changed' if code['dirty'] else ''}" if code["commit"] else "no commit"
    return f"{processor()}, {cores()} cores, torch {torch.__version__}, ordisco {code['version']}, {commit}"


def show(found: dict[str, Any]) -> str:
    """Two tables, ready for `docs/scale.md`, and what they were taken with."""
    from ordisco.report.table import markdown_table

    words = {
        "run_seconds": ("a bare run, seconds", "{:.1f}"),
        "local_over_bare": (f"`local`, one at once / {RUNS} bare runs", "{:.2f} ×"),
        "first_run_seconds": ("`local`: more for the first run of a process, seconds", "{:.1f}"),
        "next_run_seconds": ("`local`: more for each next run, seconds", "{:.1f}"),
        "local_two_cores": ("`local`: one at once / two at once", "{:.2f} ×"),
        "ray_over_bare": (f"`ray`, one at once, cluster started and stopped / {RUNS} bare runs", "{:.2f} ×"),
        "ray_over_local": ("`ray` / `local`, one at once", "{:.2f} ×"),
        "ray_two_cores": ("`ray`: one at once / two at once", "{:.2f} ×"),
    }
    rows = [[words[key][0], words[key][1].format(value)] for key, value in found["launchers"].items()]
    tables = [markdown_table(["the same grid of runs", ""], rows)]
    names = [f"{part['preset']}, {part['processes']} processes" for part in found["parallel"]]
    lines: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("step of one process / step", lambda part: f"{part['one_process_seconds'] / part['step_seconds']:.2f} ×"),
        ("step, seconds", lambda part: f"{part['step_seconds']:.3f}"),
        ("share of the step in sums over processes", lambda part: f"{100 * part['share']:.0f} %"),
        ("sums a step", lambda part: f"{part['collectives']}"),
        ("bytes summed a step", lambda part: f"{part['bytes'] / 1e6:.2f} MB"),
        ("of them gradients of C, G and D, a vector each", lambda part: f"{part['gradient_bytes'] / 1e6:.2f} MB"),
        ("seconds of all sums", lambda part: f"{part['seconds']:.4f}"),
        ("by the model", lambda part: f"{part['predicted']:.4f}"),
    ]
    tables.append(
        markdown_table(
            ["a data-parallel step", *names],
            [[text, *(value(part) for part in found["parallel"])] for text, value in lines],
        )
    )
    return "\n".join([*tables, found["taken"]])
