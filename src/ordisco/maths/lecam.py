"""LeCam regularisation of D (Tseng et al. 2021), beyond the paper: scores stay near the other kind's moving average."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

DECAY = 0.99  # of the moving averages, at each D step


def followed(sums: Tensor, real: Tensor, fake: Tensor) -> Tensor:
    """Decaying sums (3,) of the mean scores of real and of fake pairs, and of how many steps they are: from zeros on.

    >>> sums = followed(torch.zeros(3), torch.tensor(2.0), torch.tensor(-1.0))
    >>> averages(followed(sums, torch.tensor(2.0), torch.tensor(-1.0)))
    (tensor(2.), tensor(-1.))
    """
    return DECAY * sums + torch.stack([real, fake, torch.ones_like(real)]).detach()


def averages(sums: Tensor) -> tuple[Tensor, Tensor]:
    """The moving averages α_R and α_F; after one step they are that step's means."""
    real, fake, steps = sums
    return real / steps, fake / steps


def lecam(real: Tensor, weights: Tensor, fake: Tensor, alpha_real: Tensor, alpha_fake: Tensor) -> Tensor:
    """E[max(0, D(x, y) − α_F)²] + E[max(0, α_R − D(G(z, y′), y′))²], the first by the weights of D's real pairs.

    As in the published code; the paper's equation has no max, and is the same as long as D ranks real above fake.
    """
    return (weights * F.relu(real - alpha_fake).square()).sum() + F.relu(alpha_real - fake).square().mean()
