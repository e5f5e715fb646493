"""What the mini-batches of an increment are drawn from: b_l ∪ SMB and b_ul ∪ UMB, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.data.pixels import normalize
from ordisco.data.views import joined, rows
from ordisco.learner.batch import Batch, Pairs
from ordisco.learner.state import Setup, State
from ordisco.streams.stream import Increment


@dataclass(frozen=True)
class Pools:
    """What the mini-batches of an increment are drawn from, uniformly and with replacement."""

    images: Tensor  # labelled, uint8
    slots: Tensor
    unlabeled: Tensor  # uint8
    expected: Tensor  # the class frequencies to be expected among the unlabelled images

    def draw(self, batch_labeled: int, batch_unlabeled: int) -> Batch:
        """Labelled and unlabelled images of this increment and of memory."""
        index = torch.randint(len(self.images), (batch_labeled,), device=self.images.device)
        labeled = Pairs(normalize(self.images[index]), self.slots[index])
        if not len(self.unlabeled):
            return Batch(labeled, None)
        index = torch.randint(len(self.unlabeled), (batch_unlabeled,), device=self.unlabeled.device)
        return Batch(labeled, normalize(self.unlabeled[index]))


def lay_out(setup: Setup, state: State, increment: Increment) -> Pools:
    """The pools of an increment: b_l ∪ SMB and b_ul ∪ UMB, or everything (joint training)."""
    memories, classes = state.memories, state.classes
    images, labels = increment.images.to(setup.device), increment.labels.to(setup.device)
    came_with = labels[labels >= 0]  # the labels that came with the unlabelled images
    known = labels >= 0
    labeled, unlabeled, given = rows(images, known), rows(images, ~known), came_with
    if memories.data is not None and len(memories.data):
        old, kept = memories.data.images, memories.data.labels >= 0
        labeled, unlabeled = joined([old[kept], labeled]), joined([old[~kept], unlabeled])
        given = torch.cat([memories.data.labels[kept], given])
    remembered = classes.frequencies(given)
    joint = setup.method.memory == "all" or not len(came_with)
    expected = remembered if joint else classes.frequencies(came_with)
    if memories.umb is not None and len(memories.umb):
        share = len(memories.umb) / (len(memories.umb) + len(unlabeled))
        unlabeled = joined([unlabeled, memories.umb.images])
        expected = (1 - share) * expected + share * remembered
    return Pools(labeled, classes.slots_of(given), unlabeled, expected)
