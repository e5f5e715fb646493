"""The four measurements. Times are compared within one process, turn by turn, so that noise hits both sides alike."""

from __future__ import annotations

import dataclasses
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ordisco.bench.limit import heavy_operations, run_all
from ordisco.bench.plain import PlainORDisCo
from ordisco.learner.learner import Learner
from ordisco.machine.memory import peak_memory
from ordisco.machine.processes import make_fabric
from ordisco.nets import classifier, dcgan, discriminator, generator
from ordisco.runs import checkpoint
from ordisco.runs.precision import check_precision
from ordisco.runs.presets import PRESET_IMAGES, preset
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment

CLASSES = 10


def random_increment(shape: tuple[int, int, int], images: int, labels_per_class: int, seed: int) -> Increment:
    """An increment of noise: speed does not depend on what is in the images."""
    draw = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (images, *shape), dtype=torch.uint8, generator=draw)
    labels = torch.full((images,), -1)
    labels[: CLASSES * labels_per_class] = torch.arange(CLASSES).repeat(labels_per_class)
    return Increment(pixels, labels)


def bench_settings(name: str) -> LearnerSettings:
    """A preset's settings; the paper's networks are measured at batch 16 with one D step, to be bearable on a CPU."""
    if name != "paper":
        return preset(name)
    return preset(name).replace(batch_labeled=16, batch_unlabeled=16, batch_generated=16, d_steps=1)


def make_learner(name: str, machine: MachineSettings, method_name: str = "ordisco") -> Learner:
    """A learner that has seen all classes before, so that every term of the step is there."""
    settings = bench_settings(name).replace(steps=10_000, replay_ramp=0.0, pseudo_real_start=0.0)
    fabric = make_fabric(machine)
    check_precision(machine.precision, fabric, settings, PRESET_IMAGES[name])
    learner = Learner(method(method_name), CLASSES, PRESET_IMAGES[name], settings, fabric=fabric)
    increment = random_increment(PRESET_IMAGES[name], 200, 2, 0)
    learner.begin(increment)
    learner.state.classes.before = CLASSES
    gan, penalty = learner.state.nets.gan, learner.state.memories.penalty_on_D
    if gan is not None and penalty is not None:  # as after an increment, without the time of measuring importances
        penalty.keep(gan.D.flat.theta, torch.ones_like(gan.D.flat.theta))
    return learner


def make_plain(learner: Learner) -> PlainORDisCo:
    """The plain code with the same settings, images and weights, in the same place of the stream."""
    plain = PlainORDisCo(learner.settings, CLASSES, learner.image_shape, learner.setup.seed)
    increment = random_increment(learner.image_shape, 200, 2, 0)
    plain.begin(increment.images, increment.labels)
    plain.old_classes = CLASSES
    plain.anchor = [parameter.detach().clone() for parameter in plain.D.parameters()]
    plain.xi = [torch.ones_like(anchor) for anchor in plain.anchor]
    return plain


@contextmanager
def channels_first() -> Iterator[None]:
    """The networks without their change of layout: plain code."""
    modules = (classifier, dcgan, discriminator, generator)
    kept = [module.channels_last for module in modules]
    for module in modules:
        module.channels_last = lambda x: x.contiguous()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, function in zip(modules, kept, strict=True):
            module.channels_last = function  # type: ignore[attr-defined]


def turns(rounds: int, *calls: Callable[[], object]) -> list[list[float]]:
    """Seconds of each call, made in turn, `rounds` times after one turn to warm up."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for call, measured in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            if turn:
                measured.append(time.perf_counter() - start)
    return seconds


def ratio(over: Sequence[float], under: Sequence[float]) -> float:
    """The median of the ratios, turn by turn."""
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def step_ratios(name: str, machine: MachineSettings, rounds: int) -> dict[str, Any]:
    """One step over its convolutions and matrix products, and the plain step, whole and its own products, over it."""
    learner = make_learner(name, machine)
    plain = make_plain(learner)

    def plain_step() -> None:
        with channels_first():
            plain.step()

    with learner.random("bench"):
        products, plain_products = heavy_operations(learner.step), heavy_operations(plain_step)
        step, limit, straightforward, plain_limit = turns(
            rounds, learner.step, lambda: run_all(products), plain_step, lambda: run_all(plain_products)
        )
    return {
        "step_over_limit": ratio(step, limit),
        "plain_over_step": ratio(straightforward, step),
        "plain_products_over_step": ratio(plain_limit, step),
        "step_seconds": statistics.median(step),
        "heavy_operations": len(products),
        "plain_heavy_operations": len(plain_products),
        "threads": torch.get_num_threads(),
        "precision": machine.precision,
        "batch": learner.settings.step.batch_generated,
    }


def growth(machine: MachineSettings, increments: int, name: str = "ordisco") -> dict[str, list[float]]:
    """Seconds and bytes of each of many increments of equal size, on tiny networks.

    On a CPU, seconds are those of the process in one thread: another program on the machine is not a growth.
    """
    settings = preset("demo").replace(steps=2, c_width=8, g_width=8, d_width=8, z_dim=8)
    fabric = make_fabric(dataclasses.replace(machine, threads=1))
    warm_up, learner = (
        Learner(method(name), CLASSES, PRESET_IMAGES["demo"], settings, fabric=fabric) for _ in range(2)
    )
    warm_up.learn(random_increment(PRESET_IMAGES["demo"], 100, 1, 0))
    clock = time.process_time if learner.device.type == "cpu" else time.perf_counter
    seconds, kept = [], []
    for index in range(increments):
        increment = random_increment(PRESET_IMAGES["demo"], 100, 1, index)
        start = clock()
        learner.learn(increment)
        seconds.append(clock() - start)
        kept.append(float(sum(learner.bytes_kept().values())))
    return {"seconds_per_increment": seconds, "bytes_per_increment": kept}


def slope(values: Sequence[float]) -> tuple[float, float]:
    """How much a value grows from one to the next, and the standard error of that, as shares of the mean."""
    mean, places = statistics.fmean(values), range(len(values))
    fit = statistics.linear_regression(places, values)
    if len(values) < 3 or mean == 0:
        return (fit.slope / mean if mean else 0.0), math.inf
    rest = [value - fit.intercept - fit.slope * place for place, value in enumerate(values)]
    spread = sum((place - statistics.fmean(places)) ** 2 for place in places)
    error = math.sqrt(sum(r * r for r in rest) / (len(values) - 2) / spread)
    return fit.slope / mean, error / mean


def throughput(name: str, machine: MachineSettings, rounds: int) -> dict[str, float]:
    """Images a second in evaluation and sampling, and the time of a checkpoint."""
    learner = make_learner(name, machine)
    count = 64 if name == "paper" else 512
    images = random_increment(PRESET_IMAGES[name], count, 1, 0).images
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
        )
    return {
        "evaluated_images_per_second": count / statistics.median(predict),
        "sampled_images_per_second": count / statistics.median(sample),
        "checkpoint_save_seconds": statistics.median(save),
        "checkpoint_load_seconds": statistics.median(load),
    }


def peak_of_steps(name: str, machine: MachineSettings) -> int | None:
    """The most memory that a process of its own holds after two steps; None on a system that does not tell."""
    code = (
        "import sys, ordisco.bench.measure as m\n"
        "print(m.peak_here(sys.argv[1], m.MachineSettings(threads=int(sys.argv[2]) or None, precision=sys.argv[3])))"
    )
    command = [sys.executable, "-c", code, name, str(machine.threads or 0), machine.precision]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return int(told) if told.isdigit() else None


def peak_here(name: str, machine: MachineSettings) -> int | None:
    """The most memory that this process has held, after two steps."""
    learner = make_learner(name, machine)
    with learner.random("bench"):
        learner.step()
        learner.step()
    return peak_memory(learner.device)


def start_up(rounds: int) -> dict[str, float]:
    """Seconds until `ordisco --help` has answered, and until the learner is imported."""

    def python(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)

    answered, imported = turns(
        rounds, lambda: python("-m", "ordisco", "--help"), lambda: python("-c", "import ordisco.learner.learner")
    )
    return {"help_seconds": statistics.median(answered), "import_seconds": statistics.median(imported)}
