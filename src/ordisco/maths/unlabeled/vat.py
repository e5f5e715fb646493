"""VAT: C agrees with itself on the small step that would change it most."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.maths.unlabeled.base import Augment, Classifier, Logits, Views, weight_of
from ordisco.nets.modes import running
from ordisco.settings.fields import Settings, setting
from ordisco.settings.learner import UnlabeledSettings


@dataclass(frozen=True)
class VAT(Settings):
    """KL(p(x) ‖ p(x + r)) for the r of length ε that changes C most, with or without entropy (Miyato et al. 2018)."""

    weight: float = setting(0.3, "Oliver et al.", low=0.0)
    epsilon: float = setting(1.0, "length of the adversarial step, images in [-1, 1]", low=0.0)
    xi: float = setting(1e-2, "length of the step that finds its direction", low=1e-6)
    iterations: int = setting(1, "power iterations", low=1)
    entropy: float = setting(0.0, "weight of the entropy term; 0 as Oliver et al. report VAT, 1 is VAT+EntMin", low=0.0)

    @classmethod
    def of(cls, settings: UnlabeledSettings) -> VAT:
        """As the settings say."""
        return cls(weight_of(settings, cls.weight), epsilon=settings.vat_epsilon, entropy=settings.vat_entropy)

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

    def trusted(self, targets: Tensor | None) -> None:
        """All."""

    def loss(self, student: Logits, targets: Tensor | None = None) -> Tensor:
        """KL to the adversarial view, whose target p(x) is constant, plus entropy, whose p(x) is not."""
        log_p, log_q = (F.log_softmax(logits, dim=1) for logits in student)
        entropy = -(log_p.exp() * log_p).sum(1)
        return _kl(log_p.detach(), log_q) + self.entropy * entropy


def _kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    return (log_p.exp() * (log_p - log_q)).sum(1)


def _unit(d: Tensor) -> Tensor:
    """Each image's vector at length 1; by its largest entry first, as squares of tiny entries underflow."""
    flat = d.detach().flatten(1)
    flat = flat / flat.abs().amax(1, keepdim=True).clamp(min=torch.finfo(flat.dtype).tiny)
    return F.normalize(flat, dim=1).view_as(d)
