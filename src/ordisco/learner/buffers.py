"""What survives of old data: labelled images (SMB), a sample of unlabelled ones (UMB), or everything (JT)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.errors import OrdiscoError

INCREMENT = torch.int16  # of an increment's number


class DataMemory:
    """All images ever seen, with label -1 where unlabelled, and the increment of each: the memory of joint training.

    >>> memory = DataMemory((1, 8, 8))
    >>> memory.add(torch.zeros(3, 1, 8, 8, dtype=torch.uint8), torch.tensor([4, -1, 7]), increment=0)
    >>> len(memory), memory.labels.tolist(), memory.bytes
    (3, [4, -1, 7], 222)
    """

    def __init__(self, image_shape: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        self.images = torch.empty((0, *image_shape), dtype=torch.uint8, device=device)
        self.labels = torch.empty(0, dtype=torch.int64, device=device)
        self.increments = torch.empty(0, dtype=INCREMENT, device=device)  # with which each image came

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, images: Tensor, labels: Tensor, increment: int) -> None:
        """Keep these uint8 images and their labels, which came with that increment."""
        _check_images(images, self.images)
        self.images = torch.cat([self.images, images.to(self.images.device)])
        self.labels = torch.cat([self.labels, labels.to(self.labels)])
        self.increments = torch.cat([self.increments, self.increments.new_full((len(labels),), increment)])

    def keep(self, indices: Tensor) -> None:
        """Forget all but the images at these indices."""
        self.images, self.labels = self.images[indices], self.labels[indices]
        self.increments = self.increments[indices]

    @property
    def bytes(self) -> int:
        """Storage of images, labels and increments."""
        return self.images.nbytes + self.labels.nbytes + self.increments.nbytes

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        return {"images": self.images, "labels": self.labels, "increments": self.increments}

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over saved tensors."""
        _check_images(state["images"], self.images)
        self.images = state["images"].to(self.images.device)
        self.labels = state["labels"].to(self.labels)
        self.increments = state["increments"].to(self.increments)


class LabelMemory(DataMemory):
    """The labelled images ever seen (SMB): whatever it is offered, it keeps only what has a label.

    >>> buffer = LabelMemory((1, 8, 8))
    >>> buffer.add(torch.zeros(3, 1, 8, 8, dtype=torch.uint8), torch.tensor([4, -1, 7]), increment=0)
    >>> buffer.labels.tolist()
    [4, 7]
    """

    def add(self, images: Tensor, labels: Tensor, increment: int) -> None:
        """Keep those of the images whose label is not -1."""
        labelled = labels >= 0
        super().add(images[labelled], labels[labelled], increment)


class Reservoir:
    """A uniform sample of all images offered so far (UMB), by Vitter's algorithm R, and the increment of each.

    >>> umb = Reservoir(2, (1, 8, 8))
    >>> umb.add(torch.zeros(5, 1, 8, 8, dtype=torch.uint8), increment=0)
    >>> len(umb), umb.seen
    (2, 5)
    """

    def __init__(self, capacity: int, image_shape: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        self.capacity = capacity
        self.images = torch.empty((0, *image_shape), dtype=torch.uint8, device=device)
        self.increments = torch.empty(0, dtype=INCREMENT, device=device)
        self.seen = 0

    def __len__(self) -> int:
        return len(self.images)

    def add(self, images: Tensor, increment: int, generator: torch.Generator | None = None) -> None:
        """Offer images: the t-th of the stream replaces slot j, drawn from 0 … t−1, if there is a slot j."""
        _check_images(images, self.images)
        images = images.to(self.images.device)
        room = self.capacity - len(self.images)
        self.images = torch.cat([self.images, images[:room]])  # a copy: what `state` gave does not change
        self.increments = torch.cat([self.increments, self.increments.new_full((len(images[:room]),), increment)])
        self.seen += min(room, len(images))
        images = images[room:]
        if self.capacity == 0 or len(images) == 0:
            self.seen += len(images)
            return
        t = torch.arange(self.seen + 1, self.seen + len(images) + 1)
        slot = (torch.rand(len(images), dtype=torch.float64, generator=generator) * t).long()
        (offered,) = torch.where(slot < self.capacity)
        # Where several images go to one slot, the last stays, as if they had come one by one.
        last = torch.full((self.capacity,), -1).scatter_reduce(0, slot[offered], offered, "amax")
        (replaced,) = torch.where(last >= 0)
        where = replaced.to(self.images.device)
        self.images[where] = images[last[replaced].to(images.device)]
        self.increments[where] = increment
        self.seen += len(images)

    @property
    def bytes(self) -> int:
        """Storage of the images kept and of their increments."""
        return self.images.nbytes + self.increments.nbytes

    def state(self) -> dict[str, Tensor]:
        """The tensors to save."""
        return {"images": self.images, "increments": self.increments, "seen": torch.tensor(self.seen)}

    def load(self, state: dict[str, Tensor]) -> None:
        """Take over saved tensors."""
        _check_images(state["images"], self.images)
        if len(state["images"]) > self.capacity:
            raise OrdiscoError(
                f"the saved UMB holds {len(state['images'])} images, more than its capacity {self.capacity}: "
                "resume with the settings that it was saved with"
            )
        self.images = state["images"].to(self.images.device)
        self.increments = state["increments"].to(self.increments)
        self.seen = int(state["seen"])


def herding(features: Tensor, size: int) -> Tensor:
    """Indices of `size` images, picked in turn so that their mean feature stays nearest to the mean of all.

    Mean-of-feature selection (iCaRL, Rebuffi et al. 2017) of one class by features (n, d) scaled to 1.
    """
    features = F.normalize(features, dim=1)
    mean, total = features.mean(0), torch.zeros_like(features[0])
    taken = torch.zeros(len(features), dtype=torch.bool, device=features.device)
    picked: list[int] = []
    for k in range(1, min(size, len(features)) + 1):
        distance = (mean - (total + features) / k).square().sum(1).masked_fill(taken, math.inf)
        best = int(distance.argmin())
        picked.append(best)
        taken[best] = True
        total = total + features[best]
    return torch.tensor(picked, dtype=torch.int64, device=features.device)


def select_herding(images: Tensor, labels: Tensor, features_fn: Callable[[Tensor], Tensor], total: int = 200) -> Tensor:
    """Indices of at most `total` labelled images, an equal share a class, by today's features (SMB-mof)."""
    classes = labels.unique()
    share = total // max(1, len(classes))
    if share == 0:
        raise OrdiscoError(f"a memory of {total} images is too small for {len(classes)} classes: raise its size")
    picked = [torch.empty(0, dtype=torch.int64, device=labels.device)]
    for label in classes:
        (members,) = torch.where(labels == label)
        order = herding(features_fn(images[members]), share)
        picked.append(members[order.to(members.device)])
    return torch.cat(picked)


def _check_images(images: Tensor, like: Tensor) -> None:
    if images.dtype != torch.uint8 or images.shape[1:] != like.shape[1:]:
        raise OrdiscoError(
            f"memory keeps uint8 images of shape {tuple(like.shape[1:])}, not {images.dtype} of "
            f"{tuple(images.shape[1:])}: give it the images of its own stream as they were loaded"
        )
