"""C's part of a step: Eqs. 1–3, 6 and 7 in one call of C, then the penalties of the baselines."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ordisco.learner.batch import Batch, Pairs
from ordisco.learner.distil import targets_of_replay, trust_in_replay
from ordisco.learner.pools import Pools
from ordisco.learner.state import Setup, State
from ordisco.learner.targets import aligned_targets
from ordisco.learner.update import update
from ordisco.maths import losses
from ordisco.maths.penalties import Penalty
from ordisco.maths.unified import less_forget, less_forget_weight, margin_ranking
from ordisco.maths.unlabeled.base import Views
from ordisco.nets.network import Network


class Weights(NamedTuple):
    """How much the terms of C that ramp up weigh at a step."""

    consistency: float
    replay: float


def classifier_step(
    setup: Setup,
    state: State,
    pools: Pools,
    batch: Batch,
    replayed: Pairs | None,
    views: Views,
    teacher: tuple[Tensor, ...],
    weights: Weights,
) -> dict[str, Tensor]:
    """The step of C; returns the value of each of its loss terms, and what was measured."""
    C, penalty, r = state.nets.C, state.memories.penalty_on_C, setup.settings.replay
    strong = setup.settings.classifier.labeled_view == "strong"
    inputs = [(setup.augment.strong if strong else setup.augment.weak)(batch.labeled.x), *views.student]
    own_view = not views.student or r.replay_view == "weak"  # of replayed images, as labelled data
    if replayed is not None and own_view:
        inputs.append(setup.augment.weak(replayed.x))
    x = torch.cat(inputs)
    with setup.fabric.autocast():
        features = C.module.features(x)  # type: ignore[operator]
        logits = C.module.head(features)[:, : len(state.classes)].float()  # type: ignore[operator]
    logits_l, *others = logits.split([len(part) for part in inputs])
    student, n_u = tuple(others[: len(views.student)]), batch.num_unlabeled

    supervised = losses.supervised(logits_l, batch.labeled.y)
    unlabeled = replay = supervised.new_zeros(())
    per_image = logits.new_zeros(0)
    terms: dict[str, Tensor] = {}
    if views.student and setup.unlabeled_loss is not None:
        targets = setup.unlabeled_loss.targets(student, teacher)
        targets = aligned_targets(setup, state, pools, targets, batch.unlabeled)
        per_image = weights.consistency * setup.unlabeled_loss.loss(student, targets)
        unlabeled = per_image[:n_u].mean() if n_u else unlabeled
        if n_u and (trusted := setup.unlabeled_loss.trusted(targets)) is not None:
            terms["trusted"] = trusted[:n_u].float().mean()
    if replayed is not None:
        # The first view of a replayed image serves as labelled and as unlabelled data, unless it has one of its own.
        logits_r = others[-1] if own_view else student[0][n_u:]
        as_unlabeled = per_image[n_u:] if views.student else logits.new_zeros(len(logits_r))
        labels = targets_of_replay(setup, state, replayed)
        trust = trust_in_replay(setup, state, pools, batch, replayed, teacher)
        replay = weights.replay * losses.replay(logits_r, labels, as_unlabeled, r.replay_unlabeled, trust)
    loss = losses.classifier(losses.classifier_partial(supervised, unlabeled), replay)
    if setup.method.head == "cosine":
        loss = loss + unified_terms(setup, state, x, features, batch.labeled)
    terms |= {"supervised": supervised.detach(), "unlabeled": unlabeled.detach(), "replay": replay.detach()}
    if penalty is not None:
        terms["penalty"] = penalty.value(C.flat.theta)
    followed = gradient_of_supervised(C, supervised, penalty)
    loss.backward()
    if setup.method.head == "cosine":
        hold_old_embeddings(state)
    if (ratio := update(setup, C, penalty, followed)) is not None:
        terms["penalty_ratio"] = ratio
    return terms


def gradient_of_supervised(C: Network, supervised: Tensor, penalty: Penalty | None) -> Tensor | None:
    """The gradient of L_sl alone, for a penalty that follows only it (SI-sl)."""
    if penalty is None or penalty.follows != "sl":
        return None
    supervised.backward(retain_graph=True)
    gradient = C.flat.grad.clone()
    C.flat.grad.zero_()
    return gradient


def unified_terms(setup: Setup, state: State, x: Tensor, features: Tensor, labeled: Pairs) -> Tensor:
    """The Unified Classifier's less-forget constraint on all images and margin ranking on old labelled ones."""
    old, m, classes = state.memories.old_features, setup.settings.memory, state.classes
    if old is None:
        return features.new_zeros(())
    with torch.no_grad(), setup.fabric.autocast():
        before = old.module(x)
    weight = less_forget_weight(m.less_forget, classes.before, classes.new)
    loss = weight * less_forget(before.float(), features.float()).mean()
    if classes.new:
        cosines = state.nets.C.module.head.cosines(features[: len(labeled.y)].float())  # type: ignore[operator, union-attr]
        loss = loss + m.margin_ranking * margin_ranking(cosines[:, : len(classes)], labeled.y, classes.before)
    return loss


def hold_old_embeddings(state: State) -> None:
    """The Unified Classifier does not move the embeddings of old classes while it learns new ones."""
    if state.classes.new and state.classes.before:
        weight = state.nets.C.module.head.weight  # type: ignore[union-attr]
        weight.grad[: state.classes.before].zero_()  # type: ignore[index]
