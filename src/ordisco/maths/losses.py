"""Eqs. 1–7 of the paper, one pure function each.

The sign convention, stated once: every function returns something to *minimise*, and D gives a logit
d = D(x, y) that is large for real pairs. The paper's log D(x, y) is −softplus(−d), its log(1 − D(x, y)) is
−softplus(d); the hinge forms replace softplus(−d) by max(0, 1 − d) and softplus(d) by max(0, 1 + d).
Scores of C are logits too; `log C(x)` is their log-softmax.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Adversarial = Literal["logistic", "hinge"]


def classifier_partial(supervised: Tensor, unlabeled: Tensor) -> Tensor:
    """Eq. 1: L_C,pl = L_sl + L_ul."""
    return supervised + unlabeled


def supervised(logits: Tensor, labels: Tensor) -> Tensor:
    """Eq. 2: L_sl = E[−y log C(x)] over b_l ∪ SMB."""
    return F.cross_entropy(logits, labels)


def consistency(student: Tensor, target: Tensor) -> Tensor:
    """Eq. 3, for each image: ‖C(x, ε) − C′(x, ε′)‖² of the class probabilities.

    `student` are C's logits, `target` the probabilities of C′, which get no gradient.
    """
    return (student.softmax(1) - target.detach()).square().sum(1)


def called_real(d: Tensor, form: Adversarial) -> Tensor:
    """The cost of a logit that should be high: −log D."""
    return F.softplus(-d) if form == "logistic" else F.relu(1 - d)


def called_fake(d: Tensor, form: Adversarial) -> Tensor:
    """The cost of a logit that should be low: −log(1 − D)."""
    return F.softplus(d) if form == "logistic" else F.relu(1 + d)


def pair(d: Tensor, y: Tensor) -> Tensor:
    """D(x_i, y_i) out of the row of D(x_i, ·).

    >>> pair(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0])).tolist()
    [2.0, 3.0]
    """
    return d.gather(1, y[:, None]).squeeze(1)


def pseudo_pairs_fake(d: Tensor, probabilities: Tensor, form: Adversarial) -> Tensor:
    """The third term of Eq. 4, for each image: Σ_y p(y) · called_fake(D(x, y)).

    With the classifier's probabilities it is the expectation (Triple-GAN's code); with their one-hot argmax
    it is D(x, C(x)) of the paper.
    """
    return (probabilities * called_fake(d, form)).sum(1)


def real_pairs(d: Tensor, weights: Tensor, form: Adversarial) -> Tensor:
    """The first term of Eq. 4: E[−log D(x, y)] over the real pairs, by their weights (`pair_weights`)."""
    return (weights * called_real(d, form)).sum()


def pair_weights(labeled: int, trusted: Tensor, share: float) -> Tensor:
    """The weights of labelled pairs, then of pseudo-labelled ones (1 where `trusted`): 1 in all.

    With `share` > 0, that share of the real pairs is pseudo-labelled images, as in Triple-GAN's code. Pairs that are
    not trusted count nothing; if none is, the labelled pairs are all there is.

    >>> pair_weights(2, torch.tensor([1.0, 1.0, 1.0, 0.0]), share=0.8).tolist()
    [0.125, 0.125, 0.25, 0.25, 0.25, 0.0]
    """
    first = trusted.new_full((labeled,), (1 - share) / labeled)
    weights = torch.cat([first, trusted * (share / max(1, len(trusted)))])
    return weights / weights.sum()


def balanced(weights: Tensor, y: Tensor, num_classes: int) -> Tensor:
    """Weights of pairs such that every class that is there has the same in all: the y′ of G are uniform too."""
    mass = weights.new_zeros(num_classes).index_add_(0, y, weights)
    return weights / (mass[y].clamp(min=1e-12) * (mass > 0).sum())


def mismatched_pairs_fake(d: Tensor, y: Tensor, form: Adversarial) -> Tensor:
    """Beyond the paper, for each image: a real image with another class is a fake pair (Reed et al. 2016).

    The mean over the wrong classes, which one call of D has at hand; 0 where there is only one class.
    """
    fake = called_fake(d, form)
    return (fake.sum(1) - pair(fake, y)) / max(1, d.shape[1] - 1)


def discriminator(real: Tensor, generated: Tensor, pseudo: Tensor | None, alpha: float, form: Adversarial) -> Tensor:
    """Eq. 4: E[−log D(x, y)] + α E[−log(1 − D(G(z, y′), y′))] + (1 − α) E[−log(1 − D(x, C(x)))].

    `real` is the first term (`real_pairs`), `generated` the logits of generated pairs, `pseudo` the third term's
    cost of each unlabelled image (`pseudo_pairs_fake`), or None where α is 1 or an increment has no unlabelled image.
    """
    loss = real + alpha * called_fake(generated, form).mean()
    return loss if pseudo is None else loss + (1 - alpha) * pseudo.mean()


def generator(generated: Tensor, form: Adversarial) -> Tensor:
    """Eq. 5, its sign put right: E[−log D(G(z, y′), y′)]; the hinge form is −E[d]."""
    return F.softplus(-generated).mean() if form == "logistic" else -generated.mean()


def classifier(partial: Tensor, replayed: Tensor) -> Tensor:
    """Eq. 6: L_C = L_C,pl + L_G→C."""
    return partial + replayed


def replay(
    logits: Tensor, labels: Tensor, unlabeled: Tensor, weight: float = 1.0, trust: Tensor | None = None
) -> Tensor:
    """Eq. 7: samples of G as labelled data (cross entropy) and as unlabelled data (`unlabeled`, per image).

    The paper's `weight` of the second is 1. `labels` are slots (n,), or class probabilities (n, k) (`distil.py`).
    `trust` (n,) weighs the images; the paper's is 1 for each.
    """
    if trust is not None:
        return (trust * (F.cross_entropy(logits, labels, reduction="none") + weight * unlabeled)).mean()
    return F.cross_entropy(logits, labels) + weight * unlabeled.mean()


def ramp_up(progress: float, end: float) -> float:
    """exp(−5 (1 − min(1, p / end))²): from e⁻⁵ to 1 while the share p of the increment goes from 0 to `end`.

    >>> [round(ramp_up(progress, end=0.5), 4) for progress in (0.0, 0.25, 0.5, 1.0)]
    [0.0067, 0.2865, 1.0, 1.0]
    """
    return math.exp(-5.0 * (1.0 - min(1.0, progress / end)) ** 2) if end > 0 else 1.0


def one_hot_argmax(probabilities: Tensor) -> Tensor:
    """The most likely class of each row as a one-hot row."""
    return torch.zeros_like(probabilities).scatter_(1, probabilities.argmax(1, keepdim=True), 1.0)
