"""Penalties λ Σ Ω (θ − θ*)² that keep parameters which mattered for earlier increments near θ*.

EWC, SI and MAS hold C; Eqs. 8–10 of the paper hold D (`stabilize.py`). All share one interface and differ only in
the importance Ω. `-sl` measures it on the supervised loss (labelled images), `-sl+ul` on both losses (all images).
Parameters, gradients and importances are flat vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.data.pixels import normalize
from ordisco.machine.group import ALONE, Group
from ordisco.maths.per_image import mean_per_image_gradient
from ordisco.settings.methods import PenaltyName, PenaltyOn


def quadratic(theta: Tensor, anchor: Tensor, importance: Tensor, weight: float) -> Tensor:
    """λ Σ_i Ω_i (θ_i − θ*_i)²; for D, with ξ for Ω, the second term of Eq. 8."""
    return weight * torch.dot(importance.to(theta.dtype), (theta - anchor).square())


def running_mean(old: Tensor, new: Tensor, count: int) -> Tensor:
    """Eq. 9, and MAS: ξ_1:b = ((b − 1) ξ_1:b−1 + ξ_b) / b, with `count` = b."""
    return ((count - 1) * old + new) / count


def quadratic_gradient(theta: Tensor, anchor: Tensor, importance: Tensor, weight: float) -> Tensor:
    """The gradient of `quadratic`, so of Eq. 8's second term: 2 λ Ω (θ − θ*)."""
    return (theta - anchor).mul_(importance).mul_(2 * weight)


@dataclass(frozen=True)
class Evidence:
    """What an increment leaves to measure importances on: a network, images and the class slot of each.

    In a data-parallel run each process has its part of `count` images, and all get the mean over all.
    """

    module: nn.Module
    images: Tensor  # uint8
    slots: Tensor  # the given class, or the one that C′ gives
    num_classes: int
    chunk: int  # images at once
    count: int | None = None  # None: these are all
    group: Group = ALONE

    def __len__(self) -> int:
        return len(self.images) if self.count is None else self.count

    def batches(self, size: int = 256) -> Iterator[tuple[Tensor, Tensor]]:
        """Images in [−1, 1] with their slots, a few at a time."""
        for images, slots in zip(self.images.split(size), self.slots.split(size), strict=True):
            yield normalize(images), slots

    def mean_gradient(self, loss: Callable[..., Tensor], power: Literal[1, 2]) -> Tensor:
        """E |∂ loss(module, x, y)/∂θ|^power over the images."""
        if self.group.size > 1 and not len(self.images):
            mean = torch.cat([torch.zeros_like(p).flatten() for p in self.module.parameters()])
        else:
            mean = mean_per_image_gradient(self.module, loss, self.batches(), power=power, chunk=self.chunk)
        if self.group.size == 1:
            return mean
        return self.group.sum_(mean * (len(self.images) / len(self)))


class Penalty:
    """λ Σ Ω (θ − θ*)² on one network, from `begin` to `end` of each increment.

    Nothing is held before the first increment has ended. `follows` names the loss whose gradient along the path of
    the increment the penalty needs (SI), if any, `underway` the vectors of its own that are kept on the way.
    """

    follows: PenaltyOn | None = None
    underway: tuple[str, ...] = ()

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.vectors: dict[str, Tensor] = {}  # anchor (θ*) and importance (Ω), once there are any
        self.count = 0  # increments whose importance was measured

    @property
    def holds(self) -> bool:
        """Is there anything to hold yet?"""
        return self.weight > 0 and "importance" in self.vectors

    def begin(self, theta: Tensor) -> None:
        """An increment starts at θ."""

    @property
    def strength(self) -> float:
        """What multiplies Ω: λ."""
        return self.weight

    def value(self, theta: Tensor) -> Tensor:
        """The penalty at θ."""
        if not self.holds:
            return theta.new_zeros(())
        return quadratic(theta, self.vectors["anchor"], self.vectors["importance"], self.strength)

    def gradient(self, theta: Tensor) -> Tensor | None:
        """Its gradient at θ, to be added to that of the loss; None while nothing is held."""
        if not self.holds:
            return None
        return quadratic_gradient(theta, self.vectors["anchor"], self.vectors["importance"], self.strength)

    def before_step(self, theta: Tensor, gradient: Tensor) -> None:
        """The optimiser is about to move θ; the loss that the penalty follows has this gradient."""

    def after_step(self, theta: Tensor) -> None:
        """The optimiser has moved to θ."""

    def end(self, theta: Tensor, evidence: Evidence) -> None:
        """An increment is learned: θ becomes θ*, and what the evidence shows joins Ω."""
        if len(evidence):
            self.keep(theta, self.joined(self.importance(evidence)))

    def importance(self, evidence: Evidence) -> Tensor:
        """Ω of this increment alone."""
        raise NotImplementedError

    def joined(self, new: Tensor) -> Tensor:
        """Ω of all increments up to now: the sum, as precisions of Gaussian posteriors add up."""
        return self.vectors.get("importance", torch.zeros_like(new)) + new

    def keep(self, theta: Tensor, importance: Tensor) -> None:
        """Set θ* and Ω."""
        self.vectors["anchor"], self.vectors["importance"] = theta.detach().clone(), importance
        self.count += 1

    def grow(self, relay: Callable[[Tensor], Tensor]) -> None:
        """Lay the vectors anew after the network grew: new parameters have no importance."""
        self.vectors = {name: relay(vector) for name, vector in self.vectors.items()}

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        return {**self.vectors, "count": torch.tensor(self.count)}

    def load(self, state: dict[str, Tensor], device: torch.device | str = "cpu") -> None:
        """Take over saved tensors."""
        self.vectors = {name: tensor.to(device, copy=True) for name, tensor in state.items() if name != "count"}
        self.count = int(state["count"])


class EWC(Penalty):
    """Elastic weight consolidation (Kirkpatrick et al. 2017): Ω is the diagonal of the Fisher information.

    With labelled pairs it is that of L_sl; unlabelled images take part with the labels that C′ gives them.
    """

    def importance(self, evidence: Evidence) -> Tensor:
        """The mean over (x, y) of (∂ log p(y|x)/∂θ)²."""

        def negative_log_likelihood(C: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(C(x)[:, : evidence.num_classes], y, reduction="sum")

        return evidence.mean_gradient(negative_log_likelihood, power=2)


class MAS(Penalty):
    """Memory-aware synapses (Aljundi et al. 2018): Ω is the mean over x of |∂‖C(x)‖²/∂θ|; it needs no labels."""

    def importance(self, evidence: Evidence) -> Tensor:
        """The mean over images of the absolute gradient."""

        def squared_norm(C: nn.Module, x: Tensor, y: Tensor) -> Tensor:
            scores: Tensor = C(x)[:, : evidence.num_classes]
            return scores.square().sum()

        return evidence.mean_gradient(squared_norm, power=1)

    def joined(self, new: Tensor) -> Tensor:
        """The mean over increments, as for D in Eq. 9."""
        return running_mean(self.vectors.get("importance", torch.zeros_like(new)), new, self.count + 1)


class SI(Penalty):
    """Synaptic intelligence (Zenke et al. 2017): Ω is each parameter's share in the fall of the loss.

    ω = −∫ g dθ is gathered along the path of an increment; Ω += max(0, ω) / ((θ_end − θ_start)² + damping).
    """

    underway = ("start", "path")

    def __init__(self, weight: float, follows: PenaltyOn, damping: float = 1e-3) -> None:
        super().__init__(weight)
        self.follows = follows
        self.damping = damping
        self._before: tuple[Tensor, Tensor] | None = None  # θ and g while the optimiser moves

    def begin(self, theta: Tensor) -> None:
        """Start a path at θ."""
        self.vectors["start"] = theta.detach().clone()
        self.vectors["path"] = torch.zeros_like(theta)

    def before_step(self, theta: Tensor, gradient: Tensor) -> None:
        """Note where the step starts."""
        self._before = theta.clone(), gradient.clone()

    def after_step(self, theta: Tensor) -> None:
        """Add −g · (θ_after − θ_before) to the path."""
        assert self._before is not None
        start, gradient = self._before
        self.vectors["path"].addcmul_(gradient, theta - start, value=-1)
        self._before = None

    def end(self, theta: Tensor, evidence: Evidence) -> None:
        """θ is the new θ*, the path's importance adds to Ω; the images are not needed."""
        path, start = self.vectors.pop("path"), self.vectors.pop("start")
        gained = path.clamp(min=0) / ((theta.detach() - start).square() + self.damping)
        self.keep(theta, self.joined(gained))


def make_penalty(name: PenaltyName, on: PenaltyOn, weight: float | None = None) -> Penalty | None:
    """The penalty of that name on C; where λ is not given, it is 1, and 1e-4 for MAS."""
    match name:
        case "ewc":
            return EWC(1.0 if weight is None else weight)
        case "si":
            return SI(1.0 if weight is None else weight, on)
        case "mas":
            return MAS(1e-4 if weight is None else weight)
        case "none":
            return None
        case _:
            assert_never(name)
