"""What happens before an increment is learned: optimisers, copies of the last models, θ* of penalties."""

from __future__ import annotations

from ordisco.learner.imprint import imprint
from ordisco.learner.memories import distils
from ordisco.learner.seeding import seeded
from ordisco.learner.state import Setup, State
from ordisco.nets.flat import frozen
from ordisco.streams.stream import Increment


def begin_increment(setup: Setup, state: State, increment: Increment) -> None:
    """Make the networks and the memories ready; there is room for the increment's classes already."""
    nets, memories, gan = state.nets, state.memories, state.nets.gan
    if gan is not None and gan.forgets_D and state.increments:
        with seeded(setup.device, setup.seed, "anew", state.increments):
            gan.begin_D(nets.capacity)
    nets.start_optimizers()
    imprint(setup, state, increment)
    if state.increments and distils(setup.method, setup.settings):
        memories.old_teacher = frozen(nets.teacher.module)
    if state.increments and setup.method.replay == "last" and gan is not None:
        memories.last_G = frozen(gan.sampler.module)
    if memories.penalty_on_C is not None:
        memories.penalty_on_C.begin(nets.C.flat.theta)
    if memories.penalty_on_D is not None and gan is not None:
        memories.penalty_on_D.begin(gan.D.flat.theta)
