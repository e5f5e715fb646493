"""Eqs. 8–10: D's parameters that matter for judging (old unlabelled image, pseudo-label) pairs stay near.

The second term of Eq. 8 is `penalties.quadratic` with ξ for Ω, Eq. 9 is `penalties.running_mean`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ordisco.maths.losses import pair
from ordisco.maths.penalties import Evidence, Penalty, running_mean
from ordisco.maths.rounding import in_half

LEAST = 2.0**-24  # the smallest number of 16 bits above 0


class Stabilizer(Penalty):
    """λ Σ ξ_i (θ_i − θ_i*)² on D; ξ is measured on the unlabelled images, with the labels that C′ gives them.

    The size of ξ depends on the network and on the form of D's loss. `normalised` holds ξ over its mean instead, so
    that λ means the same everywhere: an entry of average importance is held by λ (θ − θ*)². Entries without any
    importance, such as those of new classes, do not count in the mean. `half` holds ξ in 16 bits, over its largest
    entry. θ* is D as it was when the increment began, so that between increments only ξ has to be kept.
    """

    def __init__(self, weight: float, normalised: bool = False, half: bool = False) -> None:
        super().__init__(weight)
        self.normalised, self.half = normalised, half
        self.scale = 1.0  # ξ is so many times what is held

    @property
    def strength(self) -> float:
        """What multiplies what is held of ξ: λ, or λ over its mean."""
        if not self.normalised:
            return self.weight * self.scale
        xi = self.vectors["importance"]
        total = float(xi.sum(dtype=torch.float32))
        return self.weight * int(xi.count_nonzero()) / total if total > 0 else 0.0

    def importance(self, evidence: Evidence) -> Tensor:
        """Eq. 10: ξ_b = E_x |∂ ‖D(x, C(x))‖² / ∂θ|, the mean of absolute per-image gradients."""

        def squared(D: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return pair(D(x), y).square().sum()

        return evidence.mean_gradient(squared, power=1)

    def joined(self, new: Tensor) -> Tensor:
        """Eq. 9."""
        old = self.vectors.get("importance", torch.zeros_like(new))
        return running_mean(old.float() * self.scale if self.half else old, new, self.count + 1)

    def keep(self, theta: Tensor, importance: Tensor) -> None:
        """Set θ* and ξ."""
        if self.half:
            self.scale = float(importance.max()) or 1.0
            share = importance / self.scale
            importance = in_half(share.where(share == 0, share.clamp(min=LEAST)))  # what matters a little still counts
        super().keep(theta, importance)

    def end(self, theta: Tensor, evidence: Evidence) -> None:
        """θ* is D after every increment, also after one without unlabelled images."""
        super().end(theta, evidence)
        self.vectors["anchor"] = theta.detach().clone()

    @property
    def kept_bytes(self) -> int:
        """Storage of ξ."""
        return self.vectors["importance"].nbytes if "importance" in self.vectors else 0

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        return super().state() | ({"scale": torch.tensor(self.scale)} if self.half else {})

    def load(self, state: dict[str, Tensor], device: torch.device | str = "cpu") -> None:
        """Take over saved tensors."""
        self.scale = float(state.get("scale", 1.0))
        super().load({name: tensor for name, tensor in state.items() if name != "scale"}, device)
