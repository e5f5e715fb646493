"""The end of every network's step: gradients averaged, the penalty's added in closed form, the optimiser moved."""

from __future__ import annotations

from torch import Tensor

from ordisco.learner.state import Setup
from ordisco.maths.penalties import Penalty
from ordisco.nets.network import Network


def update(setup: Setup, network: Network, penalty: Penalty | None = None, followed: Tensor | None = None) -> None:
    """One optimiser step with the gradients that are there; `followed` is the gradient that the penalty follows."""
    flat = network.flat
    if penalty is not None:
        if penalty.follows is not None:
            penalty.before_step(flat.theta, setup.averaged(flat.grad if followed is None else followed))
        penalty.add_gradient_(flat.grad, flat.theta)
    setup.reduce(network)
    network.step()
    if penalty is not None and penalty.follows is not None:
        penalty.after_step(flat.theta)
