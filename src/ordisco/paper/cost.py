"""What an item would cost: measured seconds a step, or, where nothing was measured, counted operations."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from ordisco.data.catalogue import CATALOGUE
from ordisco.files import told_in_one_line
from ordisco.paper.scales import Plan, increments_in
from ordisco.runs.config import RunConfig
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import method
from ordisco.settings.steps import steps_of as steps_of_increment
from ordisco.streams.settings import StreamSettings
from ordisco.studies.study import Row

FILE = "costs.toml"
GPU = 2e13  # operations a second that a GPU is taken to keep up
SIDES = {"digits": 8, "svhn": 32, "cifar10": 32, "tiny-imagenet": 64}


@dataclass(frozen=True)
class Costs:
    """Seconds of a step by kind, and of a run beside its steps: start, evaluation, pictures."""

    steps: Mapping[str, float]
    run: float
    counted: bool  # not measured: operations of a step, for a GPU

    def seconds(self, row: Row) -> float | None:
        """Of one run, None where its kind was not measured."""
        step = self.steps.get(kind_of(row.config))
        return None if step is None else self.run + step * steps_of(row.config)


@functools.cache
def known(scale: str, directory: Path | None = None) -> Costs | None:
    """What was measured at a scale: on this machine, if the directory has a file of it, else where ordisco was made."""
    texts = [files("ordisco.paper").joinpath(FILE).read_text(encoding="utf-8")]
    own = None if directory is None else directory / FILE
    if own is not None and own.is_file():
        with told_in_one_line("read", own):
            texts.insert(0, own.read_text(encoding="utf-8"))
    for text in texts:
        content = tomllib.loads(text)
        if scale in content:
            values = content[scale]
            steps = {kind: ms / 1000 for kind, ms in values["milliseconds"].items()}
            return Costs(steps, values["run"], values["counted"])
    return None


def kind_of(config: RunConfig) -> str:
    """Runs of one kind take the same time a step."""
    learner, stream = config.learner, config.stream
    size = stream.size or SIDES.get(stream.dataset, 32)
    images = f"{stream.dataset}-{size} {learner.step.batch_labeled}+{learner.step.batch_unlabeled}"
    return f"{config.method} {learner.unlabeled.unlabeled_loss} {learner.classifier.c_net} {images}"


def steps_of(config: RunConfig) -> int:
    """Training steps of the whole stream, whose increments are taken to be of one size."""
    increments, row = increments_in(config.stream), method(config.method)
    images = images_in(config.stream) // increments
    return sum(steps_of_increment(row, config.learner, index, images) for index in range(increments))


def images_in(stream: StreamSettings) -> int:
    """Training images of a stream."""
    if stream.dataset == "tiny-imagenet":
        images = 500 * (stream.num_classes or 200)
    else:
        images = {"svhn": 73_257, "cifar10": 50_000, "digits": 1_438}.get(stream.dataset, 50_000)
    return images if stream.max_images is None else min(images, stream.max_images)


@dataclass(frozen=True)
class Cost:
    """Of some runs together; `counted`: seconds of a GPU by counted operations, nothing was measured."""

    seconds: float
    counted: bool


def cost_of(rows: Iterable[Row], plan: Plan, directory: Path | None = None) -> Cost:
    """Seconds on the clock, with as many runs at once as the scale says."""
    costs, total, counted = known(plan.scale.name, directory), 0.0, False
    for row in rows:
        seconds = None if costs is None else costs.seconds(row)
        if seconds is None:
            counted = True
            seconds = operations(row.config) * steps_of(row.config) / GPU
        total += seconds
    return Cost(total / plan.scale.jobs, counted or (costs is not None and costs.counted))


def operations(config: RunConfig) -> float:
    """Floating-point operations of a step, by the multiply–adds of its networks: a backward pass counts as two more."""
    from ordisco.nets.count import preset_sizes

    stream, step, loss = config.stream, config.learner.step, config.learner.unlabeled.unlabeled_loss
    entry = CATALOGUE.get(stream.dataset)
    channels = 1 if stream.grey or (entry is not None and entry.name == "digits") else 3
    side = stream.size or SIDES.get(stream.dataset, 32)
    nets = LearnerSettings(
        classifier=config.learner.classifier, gan=config.learner.gan
    )  # counted once for all that share
    sizes = preset_sizes(nets, (channels, side, side), stream.num_classes or 10)
    row = method(config.method)
    views = {"none": 0, "vat": 8, "pseudo-label": 3}.get(loss, 4)  # passes of an unlabelled image, forward and back
    c = 3 * step.batch_labeled + views * step.batch_unlabeled
    g = d = 0.0
    if row.gan:
        d_steps, generated = config.learner.gan.d_steps, step.batch_generated
        d = 3 * d_steps * (step.batch_labeled + step.batch_unlabeled + generated) + 3 * generated
        g = generated * (d_steps + 3 + (row.replay != "none"))
        c += step.batch_unlabeled + (generated * (3 + views) if row.replay != "none" else 0)
    adds = {name: size.multiply_adds for name, size in sizes.items()}
    return 2.0 * (c * adds["C"] + g * adds["G"] + d * adds["D"])


# ---------------------------------------------------------------------- measuring


RUN = {"digits": 6.0, "small": 30.0, "paper": 600.0}  # seconds of a run beside its steps: start, evaluation, pictures


def measure(rows: Iterable[Row], scale: str) -> dict[str, Any]:
    """What the file says of a scale: milliseconds a step of every kind of row; for the scale `paper`, counted."""
    counted = scale == "paper"
    by_kind = {kind_of(row.config): row.config for row in rows}
    found = {kind: 1000 * (operations(of) / GPU if counted else seconds_of_step(of)) for kind, of in by_kind.items()}
    return {"run": RUN[scale], "counted": counted, "milliseconds": {kind: round(ms, 2) for kind, ms in found.items()}}


def seconds_of_step(config: RunConfig) -> float:
    """A few steps of the first increment, in this process."""
    from ordisco.machine.processes import make_fabric
    from ordisco.runs.estimate import seconds_a_step
    from ordisco.runs.launch import make_learner, stream_of

    stream = stream_of(config)
    learner = make_learner(config, stream, make_fabric(config.machine))
    learner.begin(stream[0])
    return seconds_a_step(learner)


def costs_text(machine: str, scales: Mapping[str, Mapping[str, Any]]) -> str:
    """The file of costs."""
    import tomli_w

    head = (
        "# By `ordisco paper --measure`: one thread, one run at a time; for the scale paper counted, at 20 TFLOP/s.\n"
    )
    return head + tomli_w.dumps({"machine": machine, **scales})
