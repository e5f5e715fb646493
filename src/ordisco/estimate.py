"""What a run would be: its settings, its sizes, and its time estimated from a few measured steps."""

from __future__ import annotations

import time

import tomli_w

from ordisco.config import RunConfig
from ordisco.launch import make_fabric, make_learner, stream_of
from ordisco.methods import method
from ordisco.nets.count import preset_sizes
from ordisco.report.words import duration, size
from ordisco.rundir import without_none

WARM_UP, MEASURED = 2, 3  # steps


def dry_run(config: RunConfig) -> None:
    """Print it all; nothing is written."""
    print(tomli_w.dumps(without_none(config.to_dict())))
    stream = stream_of(config)
    learner = make_learner(config, stream, make_fabric(config.machine))
    print(f"# {method(config.method).title} on {stream.name}: {len(stream)} increments, device {learner.device}")
    for name, net in preset_sizes(config.learner, stream.image_shape, stream.num_classes).items():
        if name == "C" or learner.method.gan:
            print(f"# {name}: {net.parameters:,} parameters, {net.multiply_adds:,} multiply–adds an image")
    learner.begin(stream[0])
    with learner.random("dry run"):
        for _ in range(WARM_UP):
            learner.step()
        start = time.perf_counter()
        for _ in range(MEASURED):
            learner.step()
        step = (time.perf_counter() - start) / MEASURED
    passes = len(stream) * (len(stream) + 1) // 2 if learner.method.replay.startswith("offline") else len(stream)
    steps = config.learner.step.steps * passes
    print(f"# {step * 1000:.1f} ms a step × {steps:,} steps: about {duration(step * steps)} without evaluation")
    print(f"# kept from one increment to the next: {size(sum(learner.bytes_kept().values()))} and the labelled images")
