"""The steps of one delivery: shown, saved, stopped by a signal, and gone on with."""

from __future__ import annotations

import time

import torch

from ordisco.learner.learner import Learner, NonFiniteError
from ordisco.learner.state import TRACE
from ordisco.model.work import Work
from ordisco.report.terminal import Display
from ordisco.runs.signals import Interrupted, StopRequest
from ordisco.streams.stream import Increment

SHOW_SECONDS, SAVE_SECONDS = 0.2, 60.0
REST = 10  # steps; each image that is drawn maps 64 kB of its file into memory
A_PART = 256  # images taken from their file at once
IMPORTANCE_IMAGES = 2_000  # unlabelled images of a delivery that D's importances (Eq. 10) are measured on, at most


def train(
    learner: Learner, increment: Increment, display: Display, work: Work, go_on: str, seconds: float = 0.0
) -> float:
    """Make the steps that are left, close the increment, and give the seconds that all have taken."""
    started = saved = shown = time.monotonic()
    images, steps = images_of_a_step(learner), learner.step_in_increment
    try:
        with StopRequest() as stop, learner.random("delivery"):
            while not learner.done:
                learner.step()
                now = time.monotonic()
                if learner.step_in_increment % TRACE == 0 or learner.done:
                    learner.check_finite()
                if learner.step_in_increment % REST == 0:
                    work.rest()
                if now - shown > SHOW_SECONDS and learner.step_in_increment % 5 == 0:
                    rate = (learner.step_in_increment - steps) * images / (now - shown)
                    losses = {name: value for name, value in learner.mean_losses().items() if value}
                    display.step(1, learner.step_in_increment, losses, rate)
                    shown, steps = now, learner.step_in_increment
                if stop.reason or now - saved > SAVE_SECONDS:
                    work.save(learner, seconds + now - started)
                    saved = now
                if stop.reason:
                    raise Interrupted(f"stopped by {stop.reason}, all is saved; {go_on}")
    except KeyboardInterrupt:
        raise Interrupted(f"stopped at once; {go_on}") from None
    check_weights(learner)
    learner.increment = sampled(increment, work)
    learner.finish(work.rest)
    return seconds + time.monotonic() - started


def images_of_a_step(learner: Learner) -> int:
    """Real and generated images of a step."""
    sizes = learner.settings.step
    return sizes.batch_labeled + sizes.batch_unlabeled + (sizes.batch_generated if learner.has_generator else 0)


def check_weights(learner: Learner) -> None:
    """A weight that is not finite is never kept."""
    tensors, _ = learner.saved()
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise NonFiniteError(f"{name} is not finite after the last step, though the losses were: lower the rates")


def sampled(increment: Increment, work: Work) -> Increment:
    """All labelled images, and so many unlabelled ones, evenly spaced, that importances take no hours."""
    unlabeled = torch.where(increment.labels < 0)[0]
    if len(unlabeled) <= IMPORTANCE_IMAGES:
        return increment
    chosen = unlabeled[torch.linspace(0, len(unlabeled) - 1, IMPORTANCE_IMAGES).long()]
    kept = torch.cat([torch.where(increment.labels >= 0)[0], chosen])
    parts = []
    for some in kept.split(A_PART):
        parts.append(increment.images[some])
        work.rest()
    return Increment(torch.cat(parts), increment.labels[kept])
