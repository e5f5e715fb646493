"""A step in turns: against its products, against plain code, beside other methods. Noise hits both sides alike."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from ordisco.bench.learners import CLASSES, channels_first, make_learner, make_plain, random_increment
from ordisco.bench.limit import heavy_operations, run_all
from ordisco.bench.values import Value
from ordisco.learner.learner import Learner
from ordisco.runs import checkpoint
from ordisco.settings.machine import MachineSettings

BESIDE = {"SMB": "smb", "SMB+UMB": "smb+umb"}  # methods whose steps are timed beside ORDisCo's


def turns(rounds: int, *calls: Callable[[], object], device: torch.device | None = None) -> list[list[float]]:
    """Seconds of each call, made in turn, `rounds` times after one turn to warm up; a GPU is waited for."""
    on_gpu = device is not None and device.type == "cuda"
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for call, measured in zip(calls, seconds, strict=True):
            if on_gpu:
                torch.cuda.synchronize(device)
            start = time.perf_counter()
            call()
            if on_gpu:
                torch.cuda.synchronize(device)
            if turn:
                measured.append(time.perf_counter() - start)
    return seconds


def ratios(over: Sequence[float], under: Sequence[float]) -> list[float]:
    """Turn by turn."""
    return [a / b for a, b in zip(over, under, strict=True)]


def step(name: str, machine: MachineSettings, rounds: int) -> dict[str, Value]:
    """One step over its convolutions and matrix products, plain code over it, and the steps of other methods."""
    learner = make_learner(name, machine)
    beside = {title: make_learner(name, machine, method) for title, method in BESIDE.items()}
    with learner.random("bench"):
        products = heavy_operations(learner.step)
        calls: list[Callable[[], object]] = [
            learner.step,
            lambda: run_all(products),
            *(other.step for other in beside.values()),
        ]
        if learner.device.type == "cpu":
            calls += plain_calls(learner)
        own, limit, *rest = turns(rounds, *calls, device=learner.device)
    found = {
        "step / its convolutions and matrix products": Value.of(ratios(own, limit), "×"),
        "step of ORDisCo": Value.of(own, "s"),
    }
    for title, seconds in zip(beside, rest[: len(beside)], strict=True):
        found[f"step of {title}"] = Value.of(seconds, "s")
        found[f"{title} / ORDisCo"] = Value.of(ratios(seconds, own), "×", "neither")
    if learner.device.type == "cpu":
        whole, its_products = rest[len(beside) :]
        found["plain code / step"] = Value.of(ratios(whole, own), "×", "more")
        found["plain code's convolutions and matrix products / step"] = Value.of(ratios(its_products, own), "×", "more")
    return found


def plain_calls(learner: Learner) -> list[Callable[[], object]]:
    """The plain step, and its products alone."""
    plain = make_plain(learner)

    def plain_step() -> None:
        with channels_first():
            plain.step()

    products = heavy_operations(plain_step)
    return [plain_step, lambda: run_all(products)]


def throughput(name: str, machine: MachineSettings, rounds: int) -> dict[str, Value]:
    """Images a second in evaluation and sampling, and the time of a checkpoint."""
    learner = make_learner(name, machine)
    count = 64 if name == "paper" else 512
    images = random_increment(learner.image_shape, count, 1, 0).images
    labels = torch.arange(count) % CLASSES
    tensors, state = learner.saved()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        predict, sample, save, load = turns(
            rounds,
            lambda: learner.predict(images),
            lambda: learner.sample(labels),
            lambda: checkpoint.save(path, 1, tensors, state),
            lambda: checkpoint.load_latest(path),
            device=learner.device,
        )
    return {
        "images evaluated": Value.of([count / seconds for seconds in predict], "/s", "more"),
        "images sampled": Value.of([count / seconds for seconds in sample], "/s", "more"),
        "checkpoint saved": Value.of(save, "s"),
        "checkpoint loaded": Value.of(load, "s"),
    }
