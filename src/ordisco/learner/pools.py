"""What the mini-batches of an increment are drawn from: b_l ∪ SMB and b_ul ∪ UMB, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.data.pixels import normalize
from ordisco.learner.batch import Batch, Pairs
from ordisco.learner.held import Held
from ordisco.learner.state import Setup, State
from ordisco.streams.stream import Increment


@dataclass(frozen=True)
class Pools:
    """What the mini-batches of an increment are drawn from, uniformly and with replacement."""

    images: Tensor  # labelled, uint8
    slots: Tensor
    unlabeled: Tensor | Held  # uint8
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
    if memories.data is not None and len(memories.data):
        images = torch.cat([memories.data.images, images])
        labels = torch.cat([memories.data.labels, labels])
    known = labels >= 0
    unlabeled = images[~known]
    remembered = classes.frequencies(labels[known])
    joint = setup.method.memory == "all" or not len(came_with)
    expected = remembered if joint else classes.frequencies(came_with)
    if memories.umb is not None and len(memories.umb):
        share = len(memories.umb) / (len(memories.umb) + len(unlabeled))
        unlabeled = torch.cat([unlabeled, memories.umb.images])
        expected = (1 - share) * expected + share * remembered
    slots, count = classes.slots_of(labels[known]), increment.num_unlabeled
    held = unlabeled if increment.share is None else Held(unlabeled, count, setup.group)
    return Pools(images[known], slots, held, expected)
