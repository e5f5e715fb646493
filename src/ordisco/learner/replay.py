"""Which images are replayed into C, and how strongly: those of the living generator (ORDisCo) or of older ones."""

from __future__ import annotations

import torch
from torch import nn

from ordisco.learner.batch import Pairs
from ordisco.learner.generators import SavedGenerators, draw_noise
from ordisco.learner.state import Setup, State
from ordisco.nets.modes import running
from ordisco.nets.networks import Gan


def replayed(setup: Setup, state: State, generated: Pairs | None, progress: float) -> Pairs | None:
    """What is replayed into C; None where there is nothing, or nothing yet."""
    if state.memories.generators is not None:
        return replayed_offline(setup, state.memories.generators)
    if setup.method.replay == "last":
        return replayed_last(setup, state)
    if setup.method.replay == "online" and state.nets.gan is not None:
        return replayed_online(setup, state, state.nets.gan, generated, progress)
    return None


def replays(setup: Setup, state: State) -> Pairs | None:
    """Images as the method replays them, of all classes seen, drawn anew; None where it replays nothing."""
    if state.memories.generators is not None:
        return replayed_offline(setup, state.memories.generators)
    if setup.method.replay == "last":
        return replayed_last(setup, state)
    if setup.method.replay == "online" and state.nets.gan is not None:
        with running(state.nets.gan.sampler, norms=True):
            return drawn_from(setup, state.nets.gan.sampler.module, len(state.classes))
    return None


def replayed_offline(setup: Setup, saved: SavedGenerators) -> Pairs | None:
    """Images of a generator kept from an earlier increment; None while there is none."""
    s = setup.settings
    return Pairs(*saved.draw(s.step.batch_generated, s.gan.z_dim)) if len(saved) else None


def replayed_last(setup: Setup, state: State) -> Pairs | None:
    """Images of old classes by G as it was after the last increment; None in the first one."""
    last = state.memories.last_G
    return None if last is None else drawn_from(setup, last.module, state.classes.before)


@torch.no_grad()
def drawn_from(setup: Setup, G: nn.Module, classes: int) -> Pairs:
    """A mini-batch of a generator, y′ uniform over so many classes, in the mode that it is in."""
    s = setup.settings
    z, y = draw_noise(s.step.batch_generated, s.gan.z_dim, classes, setup.device)
    with setup.fabric.autocast():
        return Pairs(G(z, y).float(), y)


def replayed_online(setup: Setup, state: State, gan: Gan, generated: Pairs | None, progress: float) -> Pairs | None:
    """The very images just generated, if any were; or images of G's moving average, or of old classes only."""
    classes = state.classes
    only_old = progress < setup.settings.replay.replay_new and classes.new > 0
    if generated is not None and gan.G_mean is None and not only_old:
        return generated.detach()
    count = classes.before if only_old else len(classes)
    if count == 0:
        return None
    with running(gan.sampler, norms=True):
        return drawn_from(setup, gan.sampler.module, count)


def replay_ramp(progress: float, start: float, ramp: float) -> float:
    """0 before `start`, then up to 1 in a straight line over the share `ramp` of the increment."""
    if progress < start:
        return 0.0
    return min(1.0, (progress - start) / ramp) if ramp > 0 else 1.0
