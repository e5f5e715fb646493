"""What a training step is given: the setup, which never changes, and the state, which it changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.learner.batch import Augmentation
from ordisco.learner.memories import Memories
from ordisco.learner.seeding import derive_seed, set_seed
from ordisco.machine.fabric import Fabric
from ordisco.machine.group import Group
from ordisco.maths.unlabeled.base import UnlabeledLoss
from ordisco.nets.network import Network
from ordisco.nets.networks import Networks
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method
from ordisco.settings.steps import steps_of

TERMS = ("supervised", "unlabeled", "replay", "discriminator", "generator", "penalty")
# beside the losses: norm of the penalty's gradient over that of the loss; share of targets that the loss trusts
MEASURES = ("penalty_ratio", "trusted")
TRACE = 50  # steps whose losses and measures are kept, to be reported and checked together


@dataclass(frozen=True)
class Setup:
    """What a learner is: its method, its settings, and where and on which images it computes."""

    method: Method
    settings: LearnerSettings
    image_shape: tuple[int, int, int]
    seed: int
    augment: Augmentation
    unlabeled_loss: UnlabeledLoss | None
    fabric: Fabric

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.fabric.device

    def steps_of(self, increment: int, images: int) -> int:
        """Training steps of an increment, counted from 0, that holds so many images."""
        return steps_of(self.method, self.settings, increment, images)

    def averaged(self, vector: Tensor) -> Tensor:
        """The mean of a vector over the processes of a data-parallel run."""
        return vector if self.group.size == 1 else self.group.sum_(vector.clone()).div_(self.group.size)

    @property
    def group(self) -> Group:
        """The processes that share the work."""
        return Group(self.fabric.global_rank, self.fabric.world_size)

    def reduce(self, network: Network) -> None:
        """Average gradients over the processes of a data-parallel run; batch-norm statistics are those of all."""
        if self.group.size > 1:
            self.group.sum_(network.flat.grad).div_(self.group.size)

    def seed_step(self, total_steps: int, part: str) -> None:
        """Seed torch for a part of a step, alike in all processes: a resumed run draws the same numbers."""
        set_seed(derive_seed(self.seed, part, total_steps, 0), self.device)


@dataclass
class Classes:
    """The labels seen so far in the order they came; the position of a label is its class's slot.

    >>> classes = Classes()
    >>> classes.add([7, 3])
    >>> classes.add([3, 5])
    >>> classes.labels, classes.slots_of(torch.tensor([5, 7])).tolist()
    ([7, 3, 5], [2, 0])
    """

    labels: list[int] = field(default_factory=list)
    before: int = 0  # how many of them are from earlier increments

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, labels: Sequence[int]) -> None:
        """Give each new label the next slot."""
        self.labels += [label for label in labels if label not in self.labels]

    @property
    def new(self) -> int:
        """How many classes came with this increment."""
        return len(self.labels) - self.before

    def slots_of(self, labels: Tensor) -> Tensor:
        """The slots of labels."""
        table = {label: slot for slot, label in enumerate(self.labels)}
        unknown = sorted(set(labels.tolist()) - table.keys())
        if unknown:
            raise OrdiscoError(f"class {unknown[0]} has not been seen; seen so far: {self.labels}")
        return torch.tensor([table[label] for label in labels.tolist()], dtype=torch.int64, device=labels.device)

    def counts(self, labels: Tensor) -> Tensor:
        """How many of the labels are of each class seen so far."""
        return torch.bincount(self.slots_of(labels), minlength=len(self))


@dataclass
class State:
    """Everything that survives a step, and with it an increment."""

    nets: Networks
    memories: Memories
    trace: Tensor  # the losses and measures of the last steps
    classes: Classes = field(default_factory=Classes)
    increments: int = 0  # learned so far
    step: int = 0  # of the increment under way
    total_steps: int = 0
    predicted: dict[str, Tensor] = field(default_factory=dict)  # running sums of predictions, for alignment
