"""What happens once an increment is learned: importances (Eqs. 9, 10), memories, old models."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ordisco.data.views import rows
from ordisco.learner.buffers import select_herding
from ordisco.learner.state import Setup, State
from ordisco.machine.group import Group
from ordisco.maths.penalties import Evidence
from ordisco.streams.stream import Increment

Predict = Callable[[Tensor], Tensor]


def end_increment(setup: Setup, state: State, increment: Increment, predict: Predict, features: Predict) -> None:
    """Keep of this increment what the method keeps, and nothing else.

    `predict` gives the class slots that C′ sees in uint8 images, `features` its features.
    """
    memories, nets = state.memories, state.nets
    end_penalties(setup, state, increment, predict)
    if memories.data is not None:
        memories.data.add(increment.images, increment.labels, state.increments)
        if setup.method.memory == "herding":
            size = setup.settings.memory.smb_size
            memories.data.keep(select_herding(memories.data.images, memories.data.labels, features, size))
    if memories.umb is not None:
        memories.umb.add(increment.unlabeled, state.increments)
    memories.note_labels(state.classes.counts(increment.labels[increment.labels >= 0].to(setup.device)))
    if memories.generators is not None and nets.gan is not None:
        memories.generators.save(nets.gan.sampler.module, len(state.classes))
    if nets.gan is not None:
        nets.gan.restart()
    memories.old_teacher = memories.last_G = None  # C′ and G themselves are those of the last increment until the next
    if setup.method.head == "cosine":
        memories.remember_features(nets.C)


def end_penalties(setup: Setup, state: State, increment: Increment, predict: Predict) -> None:
    """D's importances are measured on the unlabelled images, C's on the labelled ones or on all."""
    memories, nets = state.memories, state.nets
    chunk, classes = setup.settings.gan.importance_chunk, len(state.classes)
    known = increment.labels >= 0
    if memories.penalty_on_D is not None and nets.gan is not None:
        images = own_share(increment.images, ~known, increment, setup.group).to(setup.device)
        evidence = Evidence(
            nets.gan.D.module, images, predict(images), classes, chunk, increment.num_unlabeled, setup.group
        )
        memories.penalty_on_D.end(nets.gan.D.flat.theta, evidence)
    if memories.penalty_on_C is not None:
        used = known if setup.method.penalty_on == "sl" else torch.ones_like(known)
        parts = (own_share(of_each, used, increment, setup.group) for of_each in (increment.images, increment.labels))
        images, given = (part.to(setup.device) for part in parts)
        slots = predict(images)
        slots[given >= 0] = state.classes.slots_of(given[given >= 0])
        count = int(known.sum()) + (increment.num_unlabeled if setup.method.penalty_on != "sl" else 0)
        evidence = Evidence(nets.C.module, images, slots, classes, chunk, count, setup.group)
        memories.penalty_on_C.end(nets.C.flat.theta, evidence)


def own_share(of_each: Tensor, used: Tensor, increment: Increment, group: Group) -> Tensor:
    """The rows that this process measures importances on: its part of those that all have, without a copy if alone."""
    if group.size == 1:
        return rows(of_each, used)
    (places,) = torch.where(used)
    if increment.share is None:
        return of_each[places[group.rank :: group.size]]
    known = increment.labels[places] >= 0
    return of_each[torch.cat([places[known][group.rank :: group.size], places[~known]])]
