"""The end of every network's step: gradients averaged, the penalty's added in closed form, the optimiser moved."""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.learner.state import Setup
from ordisco.maths.penalties import Penalty
from ordisco.nets.network import Network


def update(
    setup: Setup, network: Network, penalty: Penalty | None = None, followed: Tensor | None = None
) -> Tensor | None:
    """One optimiser step with the gradients that are there; `followed` is the gradient that the penalty follows.

    Returns the norm of the penalty's gradient over that of the loss; None where nothing is held.
    """
    flat, ratio = network.flat, None
    setup.reduce(network)
    if penalty is not None:
        if penalty.follows is not None:
            penalty.before_step(flat.theta, flat.grad if followed is None else setup.averaged(followed))
        if (held := penalty.gradient(flat.theta)) is not None:
            ratio = held.norm() / flat.grad.norm().clamp(min=torch.finfo(flat.grad.dtype).tiny)
            flat.grad.add_(held)
    network.step()
    if penalty is not None and penalty.follows is not None:
        penalty.after_step(flat.theta)
    return ratio
