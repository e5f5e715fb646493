"""What a run would be: its settings, its sizes, and its time estimated from a few measured steps."""

from __future__ import annotations

import dataclasses
import time

import tomli_w

from ordisco.errors import one_line
from ordisco.learner.learner import Learner
from ordisco.machine.processes import make_fabric
from ordisco.nets.count import preset_sizes
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import without_none
from ordisco.runs.launch import judge_of, make_learner, stream_of
from ordisco.settings.methods import method
from ordisco.words import duration, size

WARM_UP, MEASURED = 2, 3  # steps
SLOW = 5.0  # seconds: one step of such a length is measure enough


def dry_run(config: RunConfig) -> None:
    """Print it all; nothing is written."""
    make_fabric(config.machine)  # refuses devices that are not there; their processes are not started
    stream = stream_of(config)
    judge_of(config, stream)
    learner = make_learner(config, stream, make_fabric(dataclasses.replace(config.machine, devices=1)))
    print(tomli_w.dumps(without_none(config.to_dict())))
    print(
        f"# {method(config.method).title} on {one_line(stream.name)}: {len(stream)} increments, device {learner.device}"
    )
    for name, net in preset_sizes(config.learner, stream.image_shape, stream.num_classes).items():
        if name == "C" or learner.method.gan:
            print(f"# {name}: {net.parameters:,} parameters, {net.multiply_adds:,} multiply–adds an image")
    if config.machine.devices > 1:
        print(f"# measured with one process instead of {config.machine.devices}, without their communication")
    learner.begin(stream[0])
    step = seconds_a_step(learner)
    steps = sum(learner.setup.steps_of(index, images) for index, images in enumerate(stream.sizes))
    print(f"# {step * 1000:.1f} ms a step × {steps:,} steps: about {duration(step * steps)} without evaluation")
    print(f"# kept from one increment to the next: {size(sum(learner.bytes_kept().values()))} and the labelled images")


def seconds_a_step(learner: Learner) -> float:
    """The mean of a few steps after a warm-up; where steps are slow, the first."""
    times: list[float] = []
    with learner.random("dry run"):
        while len(times) < WARM_UP + MEASURED:
            start = time.perf_counter()
            learner.step()
            learner.mean_losses()  # waits for a GPU
            times.append(time.perf_counter() - start)
            if times[0] > SLOW:
                return times[0]
    return sum(times[WARM_UP:]) / MEASURED
