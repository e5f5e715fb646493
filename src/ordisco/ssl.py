"""The unlabelled losses of C (Eq. 3 and its alternatives), each one term of L_ul per image.

A loss names the images that the student C and the teacher C' must see, then the targets that their logits give, then
its value. The learner thereby runs C once a step on the views of all its terms, and may align the targets with the
classes it expects before they are used. No gradient flows into a target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.fields import Settings, setting
from ordisco.losses import consistency
from ordisco.nets.modes import running
from ordisco.settings import UnlabeledSettings


class Views(NamedTuple):
    """The images (n, c, h, w) to be classified by the student and by the teacher."""

    student: tuple[Tensor, ...]
    teacher: tuple[Tensor, ...]


Logits = tuple[Tensor, ...]


class Augment(Protocol):
    """Random views of a batch of images."""

    def weak(self, x: Tensor) -> Tensor:
        """A small change: shift, flip."""

    def strong(self, x: Tensor) -> Tensor:
        """A large change, for FixMatch."""


class Classifier(Protocol):
    """What a loss needs of C, as any `nn.Module` has it: logits (n, k), and modules to still."""

    def __call__(self, x: Tensor) -> Tensor:
        """The logits of the classes seen so far."""

    def modules(self) -> Iterator[nn.Module]:
        """All modules inside, itself included."""


class UnlabeledLoss(Protocol):
    """One unlabelled loss: the views it wants, and its value given their logits."""

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """The images that the student and the teacher are to classify."""

    def targets(self, student: Logits, teacher: Logits) -> Tensor | None:
        """Class probabilities (n, k) that may be aligned; None where the loss has no such target."""

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """The loss of each image (n,), with a gradient to the student's logits only."""


@dataclass(frozen=True)
class MeanTeacher(Settings):
    """‖C(x, ε) − C'(x, ε')‖² between class probabilities (Eq. 3; Tarvainen & Valpola 2017)."""

    reduction: Literal["sum", "mean"] = setting("sum", "over classes: sum (Eq. 3) or mean (Triple-GAN)")
    strong: bool = setting(False, "the student's noise ε is a strong view instead of a weak one")

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """One view each, the teacher's a weak one."""
        return Views((augment.strong(x) if self.strong else augment.weak(x),), (augment.weak(x),))

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The probabilities of the teacher."""
        return _target(teacher[0])

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Squared distance to the targets."""
        return _squared_distance(student[0], _given(targets), self.reduction)


@dataclass(frozen=True)
class PiModel(Settings):
    """‖C(x, ε) − C(x, ε')‖² with the second view as a constant target (Laine & Aila 2017)."""

    reduction: Literal["sum", "mean"] = setting("sum", "over classes: sum (Eq. 3) or mean (Oliver et al.)")

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """Two weak views for the student."""
        return Views((augment.weak(x), augment.weak(x)), ())

    def targets(self, student: Logits, teacher: Logits) -> None:
        """None: the two views are compared as they are."""

    def loss(self, student: Logits, targets: Tensor | None = None) -> Tensor:
        """Squared distance to the student's own probabilities on the other view."""
        return _squared_distance(student[0], _target(student[1]), self.reduction)


@dataclass(frozen=True)
class PseudoLabel(Settings):
    """Cross entropy with C's own hard label where C is confident (Lee 2013)."""

    threshold: float = setting(0.95, "least probability of a label to be believed", low=0.0, high=1.0)

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """One weak view for the student."""
        return Views((augment.weak(x),), ())

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The student's own probabilities."""
        return _target(student[0])

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Cross entropy with the argmax of the targets."""
        return _confident_cross_entropy(student[0], _given(targets), self.threshold)


@dataclass(frozen=True)
class FixMatch(Settings):
    """Cross entropy on a strong view with the confident hard label of a weak view (Sohn et al. 2020)."""

    threshold: float = setting(0.95, "least probability of a label to be believed", low=0.0, high=1.0)
    teacher: bool = setting(False, "labels come from the teacher C' instead of the student")

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """A strong view for the student, a weak one for whoever labels."""
        strong, weak = augment.strong(x), augment.weak(x)
        return Views((strong,), (weak,)) if self.teacher else Views((strong, weak), ())

    def targets(self, student: Logits, teacher: Logits) -> Tensor:
        """The probabilities of the weak view."""
        return _target(teacher[0] if self.teacher else student[1])

    def loss(self, student: Logits, targets: Tensor | None) -> Tensor:
        """Cross entropy of the strong view with the argmax of the targets."""
        return _confident_cross_entropy(student[0], _given(targets), self.threshold)


@dataclass(frozen=True)
class VAT(Settings):
    """KL(p(x) ‖ p(x + r)) for the r of length ε that changes C most, plus entropy (Miyato et al. 2018)."""

    epsilon: float = setting(1.0, "length of the adversarial step, images in [-1, 1]", low=0.0)
    xi: float = setting(1e-2, "length of the step that finds its direction", low=1e-6)
    iterations: int = setting(1, "power iterations", low=1)
    entropy: float = setting(1.0, "weight of the entropy term", low=0.0)

    def views(self, x: Tensor, augment: Augment, classifier: Classifier) -> Views:
        """A weak view and its adversarial neighbour, both for the student."""
        clean = augment.weak(x)
        return Views((clean, clean + self.epsilon * self.direction(clean, classifier)), ())

    def direction(self, x: Tensor, classifier: Classifier) -> Tensor:
        """The unit vector per image along which KL(p(x) ‖ p(x + r)) grows fastest: ∇KL at ξd, d random.

        C runs without dropout, whose noise would hide a step of length ξ, and leaves no trace in batch norm.
        """
        d = _unit(torch.randn_like(x))
        with running(classifier, others=False), torch.enable_grad():
            with torch.no_grad():
                log_p = F.log_softmax(classifier(x), dim=1)
            for _ in range(self.iterations):
                d = d.requires_grad_()
                log_q = F.log_softmax(classifier(x + self.xi * d), dim=1)
                (gradient,) = torch.autograd.grad(_kl(log_p, log_q).sum(), d)
                d = _unit(gradient)
        return d

    def targets(self, student: Logits, teacher: Logits) -> None:
        """None: p(x) is compared with p(x + r) as it is."""

    def loss(self, student: Logits, targets: Tensor | None = None) -> Tensor:
        """KL to the adversarial view, whose target p(x) is constant, plus entropy, whose p(x) is not."""
        log_p, log_q = (F.log_softmax(logits, dim=1) for logits in student)
        entropy = -(log_p.exp() * log_p).sum(1)
        return _kl(log_p.detach(), log_q) + self.entropy * entropy


UNLABELED_LOSSES: dict[str, type[MeanTeacher] | type[PiModel] | type[PseudoLabel] | type[VAT] | type[FixMatch]] = {
    "mean-teacher": MeanTeacher,
    "pi-model": PiModel,
    "pseudo-label": PseudoLabel,
    "vat": VAT,
    "fixmatch": FixMatch,
}


def make_unlabeled_loss(settings: UnlabeledSettings) -> UnlabeledLoss | None:
    """The loss that the settings name; None for `none`."""
    match settings.unlabeled_loss:
        case "none":
            return None
        case "pseudo-label":
            return PseudoLabel(threshold=settings.threshold)
        case "fixmatch":
            return FixMatch(threshold=settings.threshold, teacher=settings.labeller == "teacher")
        case "mean-teacher":
            return MeanTeacher(strong=settings.student_view == "strong")
        case "vat":
            return VAT(epsilon=settings.vat_epsilon)
        case name:
            return UNLABELED_LOSSES[name]()


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


def _target(logits: Tensor) -> Tensor:
    return logits.detach().softmax(1)


def _given(targets: Tensor | None) -> Tensor:
    if targets is None:
        raise ValueError("this loss needs targets")
    return targets


def _squared_distance(logits: Tensor, target: Tensor, reduction: str) -> Tensor:
    distance = consistency(logits, target)
    return distance if reduction == "sum" else distance / logits.shape[1]


def _confident_cross_entropy(logits: Tensor, target: Tensor, threshold: float) -> Tensor:
    confidence, label = target.max(1)
    return F.cross_entropy(logits, label, reduction="none") * (confidence >= threshold)


def _kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    return (log_p.exp() * (log_p - log_q)).sum(1)


def _unit(d: Tensor) -> Tensor:
    """Each image's vector at length 1; by its largest entry first, as squares of tiny entries underflow."""
    flat = d.detach().flatten(1)
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    return F.normalize(flat, dim=1).view_as(d)
