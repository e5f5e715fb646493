"""What the mini-batches of an increment are drawn from: b_l ∪ SMB and b_ul ∪ UMB, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.data.pixels import normalize
from ordisco.data.views import joined, rows
from ordisco.learner.batch import Batch, Pairs, Unlabeled
from ordisco.learner.held import Held
from ordisco.learner.state import Setup, State
from ordisco.streams.stream import Increment


@dataclass(frozen=True)
class Pools:
    """What the mini-batches of an increment are drawn from, uniformly and with replacement.

    The last `remembered` of the unlabelled images are those of the UMB, which have a `share` of each mini-batch, or
    their natural one.
    """

    images: Tensor  # labelled, uint8
    slots: Tensor
    unlabeled: Tensor | Held  # uint8
    increments: Tensor  # the row of `expected` of the increment with which each unlabelled image came
    expected: Tensor  # (rows, classes): the class frequencies to be expected among unlabelled images
    here: Tensor  # (classes,): may the increment have images of the class? Those whose labels came; all, if none came
    steps: int  # of the increment
    remembered: int = 0
    share: float | None = None

    def draw(self, batch_labeled: int, batch_unlabeled: int) -> Batch:
        """Labelled and unlabelled images of this increment and of memory."""
        index = torch.randint(len(self.images), (batch_labeled,), device=self.images.device)
        labeled = Pairs(normalize(self.images[index]), self.slots[index])
        if not len(self.unlabeled) or not batch_unlabeled:
            return Batch(labeled, None)
        index = self.places(batch_unlabeled)
        return Batch(labeled, Unlabeled(normalize(self.unlabeled[index]), self.increments[index]))

    def places(self, count: int) -> Tensor:
        """Where so many unlabelled images lie, at random; those of the UMB at their share where there are others."""
        device, new = self.unlabeled.device, len(self.unlabeled) - self.remembered
        if self.share is None or not self.remembered or not new:
            return torch.randint(len(self.unlabeled), (count,), device=device)
        old = round(self.share * count)
        recent = torch.randint(new, (count - old,), device=device)
        return torch.cat([recent, new + torch.randint(self.remembered, (old,), device=device)])


def lay_out(setup: Setup, state: State, increment: Increment) -> Pools:
    """The pools of an increment: b_l ∪ SMB and b_ul ∪ UMB, or everything (joint training)."""
    memories, classes = state.memories, state.classes
    images, labels = increment.images.to(setup.device), increment.labels.to(setup.device)
    known = labels >= 0
    labeled, unlabeled, given = rows(images, known), rows(images, ~known), labels[known]
    came = torch.full_like(labels[~known], state.increments)
    arrived = classes.counts(given)[None]
    if memories.arrived is not None:  # only where unlabelled images of old increments may be there
        old = F.pad(memories.arrived, (0, len(classes) - memories.arrived.shape[1]))
        arrived = torch.cat([old, arrived])
    first = state.increments + 1 - len(arrived)  # the increment of the first row
    if memories.data is not None and len(memories.data):
        data, kept = memories.data, memories.data.labels >= 0
        labeled, unlabeled = joined([data.images[kept], labeled]), joined([data.images[~kept], unlabeled])
        given, came = torch.cat([data.labels[kept], given]), torch.cat([data.increments[~kept].long(), came])
    if memories.umb is not None and len(memories.umb):
        unlabeled = joined([unlabeled, memories.umb.images])
        came = torch.cat([came, memories.umb.increments.long()])
    held: Tensor | Held = unlabeled
    if increment.share is not None:  # which has no image of an earlier increment beside it
        held = Held(unlabeled, increment.num_unlabeled, setup.group)
        came = came.new_full((len(held),), first)
    expected, group = alike(frequencies(arrived, classes.counts(given)))
    return Pools(
        labeled,
        classes.slots_of(given),
        held,
        group[came - first],
        expected,
        here=arrived[-1] > 0 if bool(arrived[-1].any()) else torch.ones_like(arrived[-1], dtype=torch.bool),
        steps=setup.steps_of(state.increments, increment.size),
        remembered=0 if memories.umb is None else len(memories.umb),
        share=setup.settings.memory.umb_share,
    )


def frequencies(arrived: Tensor, remembered: Tensor) -> Tensor:
    """The class frequencies among the labels that came with each increment; of all labels where none came.

    >>> frequencies(torch.tensor([[1, 3], [0, 0]]), torch.tensor([1, 1])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    counts = torch.where(arrived.sum(1, keepdim=True) > 0, arrived, remembered).float()
    return counts / counts.sum(1, keepdim=True)


def alike(expected: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct rows in the order in which they come, and which of them each row is.

    Increments of which the same is expected share a mean prediction: that of each alone would be of few images. In New
    Instance all do.

    >>> alike(torch.tensor([[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]]))
    (tensor([[1.0000, 0.0000],
            [0.5000, 0.5000]]), tensor([0, 1, 0]))
    """
    rows, group = torch.unique(expected, dim=0, return_inverse=True)  # in another order
    first = torch.full_like(group[: len(rows)], len(expected))
    order = first.scatter_reduce(0, group, torch.arange(len(expected), device=group.device), "amin").argsort()
    return rows[order], order.argsort()[group]
