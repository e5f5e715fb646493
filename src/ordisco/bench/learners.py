"""The learners that are measured: in the middle of an increment of noise, with every term of the step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ordisco.bench.plain import PlainORDisCo
from ordisco.learner.learner import Learner
from ordisco.machine.processes import make_fabric
from ordisco.nets import classifier, dcgan, discriminator, generator
from ordisco.runs.precision import check_precision
from ordisco.runs.presets import PRESET_IMAGES, preset
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment

CLASSES = 10
COLOUR = "small-colour"  # the networks of `small` on colour images of the size that data sets have
IMAGES = {**PRESET_IMAGES, COLOUR: (3, 32, 32)}


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
        return preset("small" if name == COLOUR else name)
    return preset(name).replace(batch_labeled=16, batch_unlabeled=16, batch_generated=16, d_steps=1)


def make_learner(name: str, machine: MachineSettings, method_name: str = "ordisco") -> Learner:
    """A learner that has seen all classes before, so that every term of the step is there."""
    settings = bench_settings(name).replace(steps=10_000, replay_ramp=0.0, pseudo_real_start=0.0)
    fabric = make_fabric(machine)
    check_precision(machine.precision, fabric, settings, IMAGES[name])
    learner = Learner(method(method_name), CLASSES, IMAGES[name], settings, fabric=fabric)
    increment = random_increment(IMAGES[name], 200, 2, 0)
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
