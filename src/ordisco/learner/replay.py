"""Which images are replayed into C, and how strongly: those of the living generator (ORDisCo) or of saved ones."""

from __future__ import annotations

import torch

from ordisco.learner.batch import Pairs
from ordisco.learner.generators import draw_noise
from ordisco.learner.state import Setup, State
from ordisco.nets.modes import running
from ordisco.nets.networks import Gan


def replayed(setup: Setup, state: State, generated: Pairs | None, progress: float) -> Pairs | None:
    """What is replayed into C; None where there is nothing, or nothing yet."""
    s, saved = setup.settings, state.memories.generators
    if saved is not None:
        return Pairs(*saved.draw(s.step.batch_generated, s.gan.z_dim)) if len(saved) else None
    if setup.method.replay == "online" and state.nets.gan is not None and generated is not None:
        return replayed_online(setup, state, state.nets.gan, generated, progress)
    return None


def replayed_online(setup: Setup, state: State, gan: Gan, generated: Pairs, progress: float) -> Pairs | None:
    """The very images just generated; or images of the moving average of G, or of old classes only."""
    s, classes = setup.settings, state.classes
    only_old = progress < s.replay.replay_new and classes.new > 0
    if gan.G_mean is None and not only_old:
        return generated.detach()
    count = classes.before if only_old else len(classes)
    if count == 0:
        return None
    z, y = draw_noise(s.step.batch_generated, s.gan.z_dim, count, setup.device)
    with torch.no_grad(), setup.fabric.autocast(), running(gan.sampler.module, norms=True):
        return Pairs(gan.sampler.module(z, y).float(), y)


def replay_ramp(progress: float, start: float, ramp: float) -> float:
    """0 before `start`, then up to 1 in a straight line over the share `ramp` of the increment."""
    if progress < start:
        return 0.0
    return min(1.0, (progress - start) / ramp) if ramp > 0 else 1.0
