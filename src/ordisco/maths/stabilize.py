"""Eqs. 8–10: D's parameters that matter for judging (old unlabelled image, pseudo-label) pairs stay near.

The second term of Eq. 8 is `penalties.quadratic` with ξ for Ω.
"""

from __future__ import annotations

from torch import Tensor, nn

from ordisco.maths.losses import pair
from ordisco.maths.penalties import Evidence, Penalty


def add_gradient_(grad: Tensor, theta: Tensor, anchor: Tensor, xi: Tensor, weight: float) -> None:
    """Add the gradient of Eq. 8's second term, 2 λ ξ (θ − θ*), to `grad` in one operation: D is the largest network."""
    grad.addcmul_(xi, theta - anchor, value=2.0 * weight)


def running_mean(old: Tensor, new: Tensor, count: int) -> Tensor:
    """Eq. 9: ξ_1:b = ((b − 1) ξ_1:b−1 + ξ_b) / b, with `count` = b."""
    return ((count - 1) * old + new) / count


class Stabilizer(Penalty):
    """λ Σ ξ_i (θ_i − θ_i*)² on D; ξ is measured on the unlabelled images, with the labels that C′ gives them."""

    def add_gradient_(self, grad: Tensor, theta: Tensor) -> None:
        """Add its gradient at θ to that of Eq. 4."""
        if self.holds:
            add_gradient_(grad, theta, self.vectors["anchor"], self.vectors["importance"], self.weight)

    def importance(self, evidence: Evidence) -> Tensor:
        """Eq. 10: ξ_b = E_x |∂ ‖D(x, C(x))‖² / ∂θ|, the mean of absolute per-image gradients."""

        def squared(D: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return pair(D(x), y).square().sum()

        return evidence.mean_gradient(squared, power=1)

    def joined(self, new: Tensor) -> Tensor:
        """Eq. 9."""
        old = self.vectors.get("importance")
        return new if old is None else running_mean(old, new, self.count + 1)

    def end(self, theta: Tensor, evidence: Evidence) -> None:
        """θ* is D after every increment, also after one without unlabelled images."""
        super().end(theta, evidence)
        self.vectors["anchor"] = theta.detach().clone()
