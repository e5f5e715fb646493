"""EWC, SI and MAS on C: λ Σ Ω (θ − θ*)² keeps parameters that mattered for earlier increments near θ*.

They differ only in the importance Ω. `-sl` measures it on the supervised loss (labelled images), `-sl+ul` on
both losses (all images): on what the caller passes to `consolidate` (EWC, MAS) or `after_step` (SI).
Parameters, gradients and importances are flat vectors.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.errors import UsageError
from ordisco.per_image import mean_per_image_gradient

PAPER_GRIDS: dict[str, tuple[float, ...]] = {
    "ewc": (0.1, 1, 10, 100),
    "si": (0.1, 1, 10, 100),
    "mas": (1e-6, 1e-4, 1e-2, 1),
}
"""The values of λ that the paper searched (Appendix B)."""


def quadratic(theta: Tensor, anchor: Tensor, importance: Tensor) -> Tensor:
    """Σ_i Ω_i (θ_i − θ*_i)²."""
    return torch.dot(importance, (theta - anchor).square())


def quadratic_gradient(theta: Tensor, anchor: Tensor, importance: Tensor) -> Tensor:
    """The gradient of `quadratic`: 2 Ω (θ − θ*)."""
    return 2 * importance * (theta - anchor)


class Penalty:
    """λ Σ Ω (θ − θ*)², with nothing to keep before the first increment is consolidated."""

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.vectors: dict[str, Tensor] = {}  # anchor (θ*) and importance (Ω), once there are any
        self.count = 0  # increments consolidated

    def value(self, theta: Tensor) -> Tensor:
        """The penalty at θ."""
        if self.count == 0:
            return theta.new_zeros(())
        return self.weight * quadratic(theta, self.vectors["anchor"], self.vectors["importance"])

    def gradient(self, theta: Tensor) -> Tensor:
        """Its gradient at θ, to be added to that of the loss."""
        if self.count == 0:
            return torch.zeros_like(theta)
        return self.weight * quadratic_gradient(theta, self.vectors["anchor"], self.vectors["importance"])

    @property
    def bytes(self) -> int:
        """Storage of the vectors kept."""
        return sum(vector.nbytes for vector in self.vectors.values())

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        return {**self.vectors, "count": torch.tensor(self.count)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over saved tensors."""
        self.vectors = {name: tensor.clone() for name, tensor in state.items() if name != "count"}
        self.count = int(state["count"])

    def _keep(self, theta: Tensor, importance: Tensor) -> None:
        self.vectors["anchor"], self.vectors["importance"] = theta.detach().clone(), importance
        self.count += 1


class EWC(Penalty):
    """Elastic weight consolidation (Kirkpatrick et al. 2017): Ω is the diagonal of the Fisher information.

    Over increments the Fishers add up around the last θ*, as precisions of Gaussian posteriors do.
    """

    def consolidate(self, theta: Tensor, fisher: Tensor) -> None:
        """End an increment: θ is the new θ*, `fisher` (see `fisher_diagonal`) adds to Ω."""
        self._keep(theta, self.vectors.get("importance", torch.zeros_like(fisher)) + fisher)


class MAS(Penalty):
    """Memory-aware synapses (Aljundi et al. 2018): Ω is the mean |∂‖C(x)‖²/∂θ| over images.

    Over increments Ω is the running mean, as for D in Eq. 9.
    """

    def consolidate(self, theta: Tensor, sensitivity: Tensor) -> None:
        """End an increment: θ is the new θ*, `sensitivity` (see `output_sensitivity`) joins the mean Ω."""
        old = self.vectors.get("importance", torch.zeros_like(sensitivity))
        self._keep(theta, old + (sensitivity - old) / (self.count + 1))


class SI(Penalty):
    """Synaptic intelligence (Zenke et al. 2017): Ω is each parameter's share in the fall of the loss.

    ω = −∫ g dθ is gathered along the path of an increment; Ω += max(0, ω) / ((θ_end − θ_start)² + damping).
    """

    def __init__(self, weight: float, damping: float = 1e-3) -> None:
        super().__init__(weight)
        self.damping = damping

    def begin(self, theta: Tensor) -> None:
        """Start an increment at θ."""
        self.vectors["start"] = theta.detach().clone()
        self.vectors["path"] = torch.zeros_like(theta)

    def after_step(self, gradient: Tensor, delta: Tensor) -> None:
        """Note a step `delta` = θ_after − θ_before, where the loss without penalties had this gradient."""
        self.vectors["path"].addcmul_(gradient, delta, value=-1)

    def consolidate(self, theta: Tensor) -> None:
        """End an increment: θ is the new θ*, the path's importance adds to Ω."""
        path, start = self.vectors.pop("path"), self.vectors.pop("start")
        gained = path.clamp(min=0) / ((theta.detach() - start).square() + self.damping)
        self._keep(theta, self.vectors.get("importance", torch.zeros_like(gained)) + gained)


def make_penalty(name: str, weight: float | None = None) -> EWC | MAS | SI | None:
    """The penalty of that name, None for `none`; λ is 1 (EWC, SI) or 1e-4 (MAS) where it is not given."""
    match name:
        case "ewc":
            return EWC(1.0 if weight is None else weight)
        case "si":
            return SI(1.0 if weight is None else weight)
        case "mas":
            return MAS(1e-4 if weight is None else weight)
        case "none":
            return None
    raise UsageError(f"penalty = {name!r} is not allowed: one of none, {', '.join(PAPER_GRIDS)}")


def fisher_diagonal(C: nn.Module, batches: Iterable[tuple[Tensor, ...]], num_classes: int, chunk: int = 32) -> Tensor:
    """EWC's Ω: the mean over (x, y) of (∂ log p(y|x)/∂θ)².

    With labelled pairs it is that of L_sl; unlabelled images take part with the labels that C′ gives them.
    """

    def negative_log_likelihood(C: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(C(x)[:, :num_classes], y, reduction="sum")

    return mean_per_image_gradient(C, negative_log_likelihood, batches, power=2, chunk=chunk)


def output_sensitivity(
    C: nn.Module, batches: Iterable[tuple[Tensor, ...]], num_classes: int, chunk: int = 32
) -> Tensor:
    """MAS's Ω: the mean over x of |∂‖C(x)‖²/∂θ|; it needs no labels."""

    def squared_norm(C: nn.Module, x: Tensor) -> Tensor:
        return C(x)[:, :num_classes].square().sum()

    return mean_per_image_gradient(C, squared_norm, batches, power=1, chunk=chunk)
