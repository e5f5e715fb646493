"""Eqs. 8–10: D's parameters that matter for judging (old unlabelled image, pseudo-label) pairs stay near.

The second term of Eq. 8 is `penalties.quadratic` with ξ for Ω, Eq. 9 is `penalties.running_mean`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ordisco.maths.losses import pair
from ordisco.maths.penalties import Evidence, Penalty, running_mean


class Stabilizer(Penalty):
    """λ Σ ξ_i (θ_i − θ_i*)² on D; ξ is measured on the unlabelled images, with the labels that C′ gives them.

    The size of ξ depends on the network and on the form of D's loss. `normalised` holds ξ over its mean instead, so
    that λ means the same everywhere: an entry of average importance is held by λ (θ − θ*)². Entries without any
    importance, such as those of new classes, do not count in the mean.
    """

    def __init__(self, weight: float, normalised: bool = False) -> None:
        super().__init__(weight)
        self.normalised = normalised

    @property
    def strength(self) -> float:
        """λ, or λ over the mean of ξ."""
        if not self.normalised:
            return self.weight
        xi = self.vectors["importance"]
        total = float(xi.sum())
        return self.weight * int(xi.count_nonzero()) / total if total > 0 else 0.0

    def importance(self, evidence: Evidence) -> Tensor:
        """Eq. 10: ξ_b = E_x |∂ ‖D(x, C(x))‖² / ∂θ|, the mean of absolute per-image gradients."""

        def squared(D: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return pair(D(x), y).square().sum()

        return evidence.mean_gradient(squared, power=1)

    def joined(self, new: Tensor) -> Tensor:
        """Eq. 9."""
        return running_mean(self.vectors.get("importance", torch.zeros_like(new)), new, self.count + 1)

    def end(self, theta: Tensor, evidence: Evidence) -> None:
        """θ* is D after every increment, also after one without unlabelled images."""
        super().end(theta, evidence)
        self.vectors["anchor"] = theta.detach().clone()
