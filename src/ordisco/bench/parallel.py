"""A step of one learner on several processes, against the step of one: how much of it is spent on telling each other.

`python -m ordisco.bench.parallel PRESET PROCESSES ROUNDS` prints JSON. Processes are forked from one that has torch.
"""

from __future__ import annotations

import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

from ordisco.bench.cost import Link, told
from ordisco.bench.learners import CLASSES, bench_settings, random_increment
from ordisco.learner.learner import Learner
from ordisco.runs.presets import PRESET_IMAGES
from ordisco.settings.methods import method

SMALL, LARGE = 256, 1 << 22  # bytes: of a batch norm's statistics, of a network's gradient
TRIES = 30


class Clock:
    """Notes every sum over the processes: its bytes and seconds."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, float]] = []
        self.reduce = dist.all_reduce

    def __call__(self, tensor: torch.Tensor, *arguments: Any, **options: Any) -> Any:
        """As `all_reduce`."""
        start = time.perf_counter()
        done = self.reduce(tensor, *arguments, **options)
        self.calls.append((tensor.nbytes, time.perf_counter() - start))
        return done


def seconds_of(call: Callable[[], object], rounds: int) -> float:
    """The median of some rounds, after one to warm up."""
    times = []
    for turn in range(rounds + 1):
        start = time.perf_counter()
        call()
        if turn:
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def make(name: str, fabric: Fabric) -> Learner:
    """A learner in the middle of an increment of noise."""
    settings = bench_settings(name).replace(steps=10_000, replay_ramp=0.0, pseudo_real_start=0.0)
    learner = Learner(method("ordisco"), CLASSES, PRESET_IMAGES[name], settings, fabric=fabric)
    learner.begin(random_increment(PRESET_IMAGES[name], 200, 2, 0))
    learner.state.classes.before = CLASSES
    return learner


def work(fabric: Fabric, name: str, rounds: int, out: Path | None = None) -> dict[str, Any]:
    """Time the step in this process, and, with others, what goes over the link between them."""
    torch.set_num_threads(1)
    learner = make(name, fabric)
    found: dict[str, Any] = {"step_seconds": seconds_of(learner.step, rounds)}
    if fabric.world_size > 1:
        small, large = torch.zeros(SMALL // 4), torch.zeros(LARGE // 4)
        link = Link.measured(
            seconds_of(lambda: dist.all_reduce(small), TRIES),
            LARGE,
            seconds_of(lambda: dist.all_reduce(large), TRIES),
            fabric.world_size,
        )
        clock = Clock()
        dist.all_reduce = clock
        start = time.perf_counter()
        for _ in range(rounds):
            learner.step()
        whole = (time.perf_counter() - start) / rounds
        sizes = [size for size, _ in clock.calls[: len(clock.calls) // rounds]]
        seconds = sum(seconds for _, seconds in clock.calls) / rounds
        found |= {
            "collectives": len(sizes),
            "bytes": sum(sizes),
            "gradient_bytes": sum(
                network.flat.grad.nbytes for name, network in learner.state.nets.named() if name in "CGD"
            ),
            "share": seconds / whole,
            "seconds": seconds,
            "predicted": told(sizes, fabric.world_size, link),
            "latency": link.latency,
            "bandwidth": link.bandwidth,
        }
    if out is not None and fabric.is_global_zero:
        out.write_text(json.dumps(found), encoding="utf-8")
    return found


def main(name: str, processes: int, rounds: int, out: Path) -> dict[str, Any]:
    """One process, then several, in turn in one run."""
    for logger in ("lightning_fabric", "lightning_utilities.core.rank_zero"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    torch.set_num_threads(1)
    several = Fabric(accelerator="cpu", devices=processes, strategy="ddp_fork", plugins=[LightningEnvironment()])
    several.launch(partial(work, name=name, rounds=rounds, out=out))
    many: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    one = work(Fabric(accelerator="cpu", devices=1, plugins=[LightningEnvironment()]), name, rounds)
    return many | {"processes": processes, "one_process_seconds": one["step_seconds"]}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(folder) / "found.json")))
