"""One training step: D, G, C and the teacher C′ in order. ORDisCo and every baseline go through it.

The mini-batches of all terms are put together so that each network is called once: D on real, unlabelled and
generated images, C on the labelled images and all views of the others. D has no batch norm, so for D that is
the same as one call a term; batch norm in C sees the whole mini-batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.learner.batch import Batch, Judged, Pairs
from ordisco.learner.classifier_step import Weights, classifier_step
from ordisco.learner.gan_step import discriminator_step, generate, generator_step
from ordisco.learner.pools import Pools
from ordisco.learner.replay import replay_ramp, replayed
from ordisco.learner.state import MEASURES, TERMS, TRACE, Setup, State
from ordisco.learner.targets import beside, pseudo_labels, teach, unlabeled_views
from ordisco.maths import losses
from ordisco.maths.rates import share_of_rate
from ordisco.nets.networks import Gan

OF_THE_GAN = ("discriminator", "generator", "penalty", "penalty_ratio")  # terms and measures of D's and G's step


def train_step(setup: Setup, state: State, pools: Pools) -> dict[str, Tensor]:
    """D, G, C, then C′, which change `state`; returns the value of each loss term, and what was measured."""
    s, gan, nets = setup.settings, state.nets.gan, state.nets
    progress = state.step / pools.steps
    weight = 0.0 if setup.unlabeled_loss is None else setup.unlabeled_loss.weight
    weights = Weights(
        consistency=weight * losses.ramp_up(progress, s.unlabeled.consistency_ramp),
        replay=s.replay.replay_weight * replay_ramp(progress, s.replay.replay_start, s.replay.replay_ramp),
    )
    terms: dict[str, Tensor] = {}

    setup.seed_step(state.total_steps, "data")
    batch = pools.draw(s.step.batch_labeled, s.step.batch_unlabeled)
    generated: Pairs | None = None
    if gan is not None:
        setup.seed_step(state.total_steps, "gan")
        if gans_turn(state.step, pools.steps, s.gan.gan_start, s.gan.gan_every, s.gan.gan_every_start):
            for _ in range(s.gan.d_steps - 1):
                extra_discriminator_step(setup, state, pools, gan, progress)
            generated = generate(setup, gan, len(state.classes))
    again: Pairs | None = None
    if weights.replay > 0 or setup.method.rehearses:  # there, also D learns from replayed images
        again = replayed(setup, state, generated, progress)

    setup.seed_step(state.total_steps, "classifier")
    views = unlabeled_views(setup, state, batch.unlabeled, again)
    company = beside(setup, pools, batch.labeled) if views.teacher else batch.labeled.x[:0]
    teacher = tuple(teach(setup, state, view, company) for view in views.teacher)
    if gan is not None and generated is not None:
        pseudo = pseudo_labels(setup, state, pools, batch, teacher)
        pairs = Judged(real_pairs(setup, batch, again), pseudo, generated)
        setup.seed_step(state.total_steps, "judged")  # D's and G's draws depend on nothing that was drawn for C
        terms |= discriminator_step(setup, gan, state.memories.penalty_on_D, pairs, len(state.classes), progress)
        terms["generator"] = generator_step(setup, gan, generated, len(state.classes), state.total_steps)
    elif gan is not None:
        terms |= as_they_were(state)
    nets.C.learn_at(share_of_rate(state.step, pools.steps, s.classifier.c_warm_up, s.classifier.c_decay))
    setup.seed_step(state.total_steps, "student")  # dropout in C is the same whether or not C′ gave pseudo-labels
    terms |= classifier_step(setup, state, pools, batch, again, views, teacher, weights)
    decay = min(s.classifier.ema, 1 - 1 / (state.total_steps + 1))
    nets.teacher.flat.average(nets.C.flat, decay)
    return terms


def gans_turn(step: int, steps: int, start: float, every: int, every_start: float) -> bool:
    """Do D and G make step t of T? None before start · T, then all, and from every_start · T on where t mod n = 0.

    >>> [gans_turn(t, 10, start=0.1, every=3, every_start=0.3) for t in range(7)]
    [False, True, True, True, False, False, True]
    """
    return step >= start * steps and (step < every_start * steps or step % every == 0)


def as_they_were(state: State) -> dict[str, Tensor]:
    """D's and G's terms of the step before, so that their means are not over steps that D and G did not make."""
    before = state.trace[(state.step - 1) % TRACE]
    return {term: before[(*TERMS, *MEASURES).index(term)] for term in OF_THE_GAN}


def extra_discriminator_step(setup: Setup, state: State, pools: Pools, gan: Gan, progress: float) -> None:
    """A D step on images of its own, for several D steps a G step."""
    sizes, classes = setup.settings.step, len(state.classes)
    batch = pools.draw(sizes.batch_labeled, sizes.batch_unlabeled)
    with torch.no_grad():
        generated = generate(setup, gan, classes)
    again = replayed(setup, state, generated, progress) if setup.method.rehearses else None
    pseudo = pseudo_labels(setup, state, pools, batch)
    pairs = Judged(real_pairs(setup, batch, again), pseudo, generated)
    discriminator_step(setup, gan, state.memories.penalty_on_D, pairs, classes, progress)


def real_pairs(setup: Setup, batch: Batch, again: Pairs | None) -> Pairs:
    """D's labelled pairs. Where a method rehearses, the last generator's images are real data for the new one."""
    if not setup.method.rehearses or again is None:
        return batch.labeled
    return Pairs(torch.cat([batch.labeled.x, again.x]), torch.cat([batch.labeled.y, again.y]))
