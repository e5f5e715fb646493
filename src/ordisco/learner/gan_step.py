"""The adversarial part of a step: D learns to tell real pairs (image, class) from others, then G to pass for real."""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.data import augment
from ordisco.learner.batch import Judged, Pairs
from ordisco.learner.generators import draw_noise
from ordisco.learner.state import Setup
from ordisco.learner.update import update
from ordisco.maths import losses
from ordisco.maths.lecam import averages, followed, lecam
from ordisco.maths.penalties import Penalty
from ordisco.nets.networks import Gan


def generate(setup: Setup, gan: Gan, classes: int) -> Pairs:
    """Images drawn now from G, y′ uniform over the classes seen so far."""
    s = setup.settings
    z, y = draw_noise(s.step.batch_generated, s.gan.z_dim, classes, setup.device)
    with setup.fabric.autocast():
        x = gan.G.module(z, y)
    return Pairs(x.float(), y)


def discriminator_step(
    setup: Setup, gan: Gan, penalty: Penalty | None, pairs: Judged, classes: int, progress: float
) -> dict[str, Tensor]:
    """Eqs. 4 and 8: one call of D on all images. Returns the value of Eq. 4 and of the penalty."""
    D = gan.D
    loss = discriminator_loss(setup, gan, pairs, classes, progress)
    loss.backward()
    terms = {"discriminator": loss.detach()}
    if penalty is not None:
        terms["penalty"] = penalty.value(D.flat.theta)
    if (ratio := update(setup, D, penalty)) is not None:
        terms["penalty_ratio"] = ratio
    D.module.power_iteration()  # type: ignore[operator]
    return terms


def discriminator_loss(setup: Setup, gan: Gan, pairs: Judged, classes: int, progress: float) -> Tensor:
    """Eq. 4 on one mini-batch: labelled pairs, pseudo-labelled ones, generated ones."""
    real, pseudo, generated = pairs
    s, n_g = setup.settings.gan, len(generated.y)
    images = [real.x] + ([] if pseudo is None else [pseudo.x]) + [generated.x.detach()]
    d = scores(setup, gan, torch.cat(images), classes)
    d_real, d_g = d[:-n_g], d[-n_g:]

    share = s.pseudo_real if progress >= s.pseudo_real_start else 0.0
    y, trusted, third = real.y, d.new_zeros(0), None
    if pseudo is not None:
        confidence, likely = pseudo.p.max(1)
        y, trusted = torch.cat([real.y, likely]), (confidence >= s.pseudo_threshold).to(d.dtype)
        if s.alpha < 1:
            p = pseudo.p if s.third_term == "expectation" else losses.one_hot_argmax(pseudo.p)
            third = losses.pseudo_pairs_fake(d_real[len(real.y) :], p, s.adversarial)
    weights = losses.pair_weights(len(real.y), trusted, share if len(trusted) else 0.0)
    if s.d_balance:
        weights = losses.balanced(weights, y, classes)
    first = losses.real_pairs(losses.pair(d_real, y), weights, s.adversarial)
    loss = losses.discriminator(first, losses.pair(d_g, generated.y), third, s.alpha, s.adversarial)
    if s.mismatched > 0:
        loss = loss + s.mismatched * (weights * losses.mismatched_pairs_fake(d_real, y, s.adversarial)).sum()
    if s.lecam > 0:
        loss = loss + s.lecam * regularised(gan, losses.pair(d_real, y), weights, losses.pair(d_g, generated.y))
    return loss


def regularised(gan: Gan, real: Tensor, weights: Tensor, fake: Tensor) -> Tensor:
    """LeCam's term, once the moving averages of D's scores have followed this mini-batch."""
    sums: Tensor = gan.D.module.get_buffer("scores")
    now = followed(sums, (weights * real).sum(), fake.mean())
    sums.data.copy_(now)  # unseen by autograd, which still needs the buffers beside it in the flat vector
    return lecam(real, weights, fake, *averages(now))


def generator_step(setup: Setup, gan: Gan, generated: Pairs, classes: int, total_steps: int) -> Tensor:
    """Eq. 5 by D as it is after its step; the gradient goes to G only."""
    s = setup.settings.gan
    d = scores(setup, gan, generated.x, classes)
    loss = losses.generator(losses.pair(d, generated.y), s.adversarial)
    loss.backward(inputs=list(gan.G.module.parameters()))
    update(setup, gan.G)
    if gan.G_mean is not None:
        gan.G_mean.flat.average(gan.G.flat, min(s.g_ema, 1 - 1 / (total_steps + 1)))
    return loss.detach()


def scores(setup: Setup, gan: Gan, x: Tensor, classes: int) -> Tensor:
    """D(x, y) for every class y seen so far, each image changed in colour and shifted if the settings say so."""
    s = setup.settings.gan
    if s.d_colour > 0:
        x = augment.tint(x, s.d_colour)
    if s.d_translate > 0:
        x = augment.weak(x, s.d_translate, flip=False)
    with setup.fabric.autocast():
        d: Tensor = gan.D.module(x)
    return d[:, :classes].float()
