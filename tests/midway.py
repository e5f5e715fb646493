"""Learners in the middle of an increment, and the parts of a step called one by one."""

import copy
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from conftest import increment_of, make_learner
from ordisco.learner.batch import Augmentation, Batch, Judged, Pairs, Pseudo
from ordisco.learner.classifier_step import Weights, classifier_step
from ordisco.learner.gan_step import discriminator_loss, discriminator_step, generate, generator_step
from ordisco.learner.learner import Learner
from ordisco.learner.replay import replayed
from ordisco.learner.step import real_pairs
from ordisco.learner.targets import beside, pseudo_labels, teach, unlabeled_views
from ordisco.nets.network import Network

FIRST, SECOND = increment_of([0, 1, 2] * 2, [0, 1, 2] * 4, seed=1), increment_of([0, 1, 2] * 2, [2, 1, 0] * 4, seed=2)


def ready(name: str = "ordisco", increments: int = 1, **changes: object) -> Learner:
    """A learner in the middle of its last increment: no dropout, no augmentation, so that all can be recomputed."""
    learner = make_learner(name, num_classes=5, **{"dropout": 0.0, "threshold": 0.0, **changes})
    learner.setup = replace(learner.setup, augment=Augmentation(0, False))
    for increment in (FIRST, SECOND)[: increments - 1]:
        learner.begin(increment)
        learner.finish()
    learner.begin((FIRST, SECOND)[increments - 1])
    nets = learner.state.nets
    nets.train()
    # a C′ and (for the penalty) a D that have moved
    nets.teacher.flat.theta.add_(torch.randn_like(nets.teacher.flat.theta), alpha=0.1)
    if nets.gan is not None:
        nets.gan.D.flat.theta.add_(torch.randn_like(nets.gan.D.flat.theta), alpha=0.1)
    return learner


class Drawn(NamedTuple):
    """All images of one step."""

    batch: Batch
    generated: Pairs | None
    again: Pairs | None  # replayed

    @property
    def x_l(self) -> Tensor:
        return self.batch.labeled.x

    @property
    def y_l(self) -> Tensor:
        return self.batch.labeled.y

    @property
    def x_u(self) -> Tensor:
        assert self.batch.unlabeled is not None
        return self.batch.unlabeled.x


def real_batch(learner: Learner) -> Batch:
    sizes = learner.settings.step
    return learner.pools.draw(sizes.batch_labeled, sizes.batch_unlabeled)


def generated(learner: Learner) -> Pairs:
    return generate(learner.setup, learner.state.nets.gan, len(learner.classes))


def drawn(learner: Learner, replay: bool = True) -> Drawn:
    batch = real_batch(learner)
    fakes = generated(learner) if learner.has_generator else None
    return Drawn(batch, fakes, replayed(learner.setup, learner.state, fakes, 1.0) if replay else None)


def pseudo(learner: Learner, batch: Batch, teacher: tuple[Tensor, ...] = ()) -> Pseudo | None:
    return pseudo_labels(learner.setup, learner.state, learner.pools, batch, teacher)


def discriminate(learner: Learner, images: Drawn, labels: Pseudo | None = None) -> dict[str, Tensor]:
    """D's step at the end of the increment, with the pseudo-labels of C′ where none are given."""
    setup, state = learner.setup, learner.state
    labels = pseudo(learner, images.batch) if labels is None else labels
    pairs = Judged(real_pairs(setup, images.batch, images.again), labels, images.generated)
    return discriminator_step(setup, state.nets.gan, state.memories.penalty_on_D, pairs, len(state.classes), 1.0)


def loss_of_d(learner: Learner, images: Drawn, labels: Pseudo | None, progress: float = 1.0) -> Tensor:
    setup, gan = learner.setup, learner.state.nets.gan
    pairs = Judged(real_pairs(setup, images.batch, images.again), labels, images.generated)
    return discriminator_loss(setup, gan, pairs, len(learner.classes), progress)


def deceive(learner: Learner, images: Drawn) -> Tensor:
    """G's step."""
    state = learner.state
    return generator_step(learner.setup, state.nets.gan, images.generated, len(state.classes), state.total_steps)


def classify(learner: Learner, images: Drawn, consistency: float = 0.7, replay: float = 0.4) -> dict[str, Tensor]:
    """C's step."""
    setup, state, (batch, _, again) = learner.setup, learner.state, images
    views = unlabeled_views(setup, state, batch.unlabeled, again)
    company = beside(setup, learner.pools, batch.labeled)
    teacher = tuple(teach(setup, state, view, company) for view in views.teacher)
    return classifier_step(setup, state, learner.pools, batch, again, views, teacher, Weights(consistency, replay))


def touched(learner: Learner) -> set[str]:
    """The networks that have a gradient."""
    return {name for name, network in learner.state.nets.named() if network.flat.grad.any()}


def taught(learner: Learner, x: Tensor) -> Tensor:
    """What C′ says of a mini-batch: probabilities of the 3 classes, batch norm by the mini-batch, no dropout (0.0)."""
    return copy.deepcopy(learner.state.nets.teacher.module).train()(x)[:, :3].softmax(1).detach()


def flat_gradient(loss: Tensor, network: Network) -> Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.module.parameters()))])
