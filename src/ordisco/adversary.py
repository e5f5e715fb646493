"""The adversarial part of a step: D learns to tell real pairs (image, class) from others, then G to pass for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ordisco import losses, stabilize
from ordisco.data import augment

if TYPE_CHECKING:
    from ordisco.learner import Learner
    from ordisco.step import Batch


def discriminator_step(learner: Learner, batch: Batch, labels: Tensor | None, progress: float) -> tuple[Tensor, Tensor]:
    """Eqs. 4 and 8: one call of D on all images, the penalty's gradient added in closed form."""
    s, D = learner.settings.gan, learner.nets.D
    assert D is not None and batch.x_g is not None and batch.y_g is not None
    loss = discriminator_loss(learner, batch, labels, progress)
    loss.backward()
    penalty = loss.new_zeros(())
    if learner.kept.xi is not None and learner.kept.anchor is not None and s.d_penalty > 0:
        theta, anchor, xi = D.flat.theta, learner.kept.anchor, learner.kept.xi
        penalty = stabilize.penalty(theta, anchor, xi, s.d_penalty)
        stabilize.add_penalty_gradient_(D.flat.grad, theta, anchor, xi, s.d_penalty)
    learner.reduce(D)
    D.step()
    D.module.power_iteration()  # type: ignore[operator]
    return loss.detach(), penalty


def discriminator_loss(learner: Learner, batch: Batch, labels: Tensor | None, progress: float) -> Tensor:
    """Eq. 4 on one mini-batch; `labels` are the probabilities that C′ gives the unlabelled images."""
    s, k = learner.settings.gan, len(learner.classes)
    form: losses.Adversarial = s.adversarial  # type: ignore[assignment]
    assert batch.x_g is not None and batch.y_g is not None
    x_l, y_l = batch.x_l, batch.y_l
    if learner.method.replay == "offline-last" and batch.x_r is not None and batch.y_r is not None:
        # Strategy (2): the old generator's images are real data for the new one.
        x_l, y_l = torch.cat([x_l, batch.x_r]), torch.cat([y_l, batch.y_r])
    images = [x_l] + ([] if batch.x_u is None else [batch.x_u]) + [batch.x_g.detach()]
    d = scores(learner, torch.cat(images))
    d_real, d_g = d[: -len(batch.x_g)], d[-len(batch.x_g) :]
    d_u = d_real[len(x_l) :]

    share = s.pseudo_real if progress >= s.pseudo_real_start else 0.0
    y, trusted, third = y_l, d.new_zeros(0), None
    if labels is not None:
        confidence, likely = labels.max(1)
        y, trusted = torch.cat([y_l, likely]), (confidence >= s.pseudo_threshold).to(d.dtype)
        p = labels if s.third_term == "expectation" else losses.one_hot_argmax(labels)
        third = losses.pseudo_pairs_fake(d_u, p, form)
    weights = losses.pair_weights(len(x_l), trusted, share if len(trusted) else 0.0)
    if s.d_balance:
        weights = losses.balanced(weights, y, k)
    real = losses.real_pairs(losses.pair(d_real, y), weights, form)
    loss = losses.discriminator(real, losses.pair(d_g, batch.y_g), third, s.alpha, form)
    if s.mismatched > 0:
        loss = loss + s.mismatched * (weights * losses.mismatched_pairs_fake(d_real, y, form)).sum()
    return loss


def generator_step(learner: Learner, batch: Batch) -> Tensor:
    """Eq. 5 with the D of now; the gradient goes to G only."""
    G, s = learner.nets.G, learner.settings.gan
    assert G is not None and batch.x_g is not None and batch.y_g is not None
    d = scores(learner, batch.x_g)
    loss = losses.generator(losses.pair(d, batch.y_g), s.adversarial)  # type: ignore[arg-type]
    loss.backward(inputs=list(G.module.parameters()))
    learner.reduce(G)
    G.step()
    if learner.nets.G_mean is not None:
        learner.nets.G_mean.flat.average(G.flat, min(s.g_ema, 1 - 1 / (learner.total_steps + 1)))
    return loss.detach()


def scores(learner: Learner, x: Tensor) -> Tensor:
    """D(x, y) for every class y seen so far, each image shifted at random if the settings say so."""
    D, pixels = learner.nets.D, learner.settings.gan.d_translate
    assert D is not None
    with learner.fabric.autocast():
        d: Tensor = D.module(augment.weak(x, pixels, flip=False) if pixels else x)
    return d[:, : len(learner.classes)].float()
