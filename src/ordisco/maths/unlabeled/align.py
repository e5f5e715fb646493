"""Distribution alignment (ReMixMatch, Berthelot et al. 2020): targets that have the class frequencies expected."""

from __future__ import annotations

from torch import Tensor


def align_distribution(p: Tensor, target: Tensor, running_mean: Tensor) -> Tensor:
    """Distribution alignment (ReMixMatch): normalise(p · target / running_mean).

    `target` (k,) is the class distribution to expect, `running_mean` (k,) the one that the model gives.
    """
    # A p that underflowed to 0 in every expected class must not leave an all-zero row.
    scaled = p.clamp(min=1e-12) * (target / running_mean.clamp(min=1e-6))
    return scaled / scaled.sum(1, keepdim=True)


def update_running_mean(running_mean: Tensor, p: Tensor, decay: float = 0.99) -> Tensor:
    """The exponential moving average (k,) of the mean prediction, before alignment."""
    return decay * running_mean + (1 - decay) * p.detach().mean(0)
