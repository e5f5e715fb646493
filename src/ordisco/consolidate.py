"""What happens once an increment is learned: importances (Eqs. 9, 10), memories, old models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ordisco import stabilize
from ordisco.data import normalize
from ordisco.memory import select_herding
from ordisco.penalties import EWC, MAS, SI, fisher_diagonal, output_sensitivity

if TYPE_CHECKING:
    from ordisco.learner import Learner


def after_increment(learner: Learner) -> None:
    """Keep of this increment what the method keeps, and nothing else."""
    increment, kept, nets = learner.increment, learner.kept, learner.nets
    if learner.method.stabilize:
        stabilize_discriminator(learner)
    consolidate_penalty(learner)
    if kept.data is not None:
        kept.data.add(increment.images, increment.labels)
    if learner.method.memory == "herding" and kept.data is not None:
        kept.data.keep(
            select_herding(kept.data.images, kept.data.labels, learner.features, learner.settings.memory.smb_size)
        )
    if kept.umb is not None:
        kept.umb.add(increment.unlabeled)
    if kept.saved is not None and nets.sampler is not None:
        kept.saved.save(nets.sampler.module, len(learner.classes))
    if learner.method.head == "cosine":
        kept.remember_features(nets.C)


def stabilize_discriminator(learner: Learner) -> None:
    """ξ_1:b from this increment's unlabelled images and the labels that C′ gives them; θ* is D now."""
    D, kept = learner.nets.D, learner.kept
    images = learner.increment.unlabeled.to(learner.device)
    if D is None:
        return
    kept.anchor = D.flat.theta.clone()
    if not len(images):
        return
    xi = stabilize.importance(D.module, images, learner.predict_slots(images), learner.settings.gan.importance_chunk)
    kept.measured += 1
    kept.xi = xi if kept.xi is None else stabilize.running_mean(kept.xi, xi, kept.measured)


def consolidate_penalty(learner: Learner) -> None:
    """Importances of EWC, SI and MAS on the supervised loss (labelled images) or on both (all images)."""
    penalty, C, k = learner.kept.penalty, learner.nets.C, len(learner.classes)
    chunk = learner.settings.gan.importance_chunk
    if penalty is None:
        return
    if isinstance(penalty, SI):
        penalty.consolidate(C.flat.theta)
        return
    known = learner.increment.labels >= 0
    used = known if learner.method.penalty_on == "sl" else torch.ones_like(known)
    images = learner.increment.images[used].to(learner.device)
    if not len(images):
        return
    if isinstance(penalty, MAS):
        penalty.consolidate(C.flat.theta, output_sensitivity(C.module, ((x,) for (x,) in batches(images)), k, chunk))
    elif isinstance(penalty, EWC):
        given = learner.increment.labels[used].to(learner.device)
        slots = learner.predict_slots(images)
        slots[given >= 0] = learner.slots_of(given[given >= 0])
        penalty.consolidate(C.flat.theta, fisher_diagonal(C.module, batches(images, slots), k, chunk))


def batches(images: Tensor, *others: Tensor, size: int = 256) -> Iterator[tuple[Tensor, ...]]:
    """Images in [−1, 1], and what belongs to them, a few at a time."""
    for parts in zip(images.split(size), *(other.split(size) for other in others), strict=True):
        yield (normalize(parts[0]), *parts[1:])
