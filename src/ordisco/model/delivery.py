"""A delivery: images that arrive together, a few of them labelled, some of these set aside."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED
from ordisco.model.about import Labels
from ordisco.model.arrays import fitted, named_labels


@dataclass(frozen=True)
class Delivery:
    """Images in this order: labelled ones, unlabelled ones, and those that are set aside for good."""

    source: str
    images: Tensor  # uint8, in memory or mapped from a file
    labels: Tensor  # positions in `names`, −1 where unlabelled
    names: tuple[str, ...]
    fingerprint: str  # of the content, whatever the order and the names of files
    held: int = 0  # how many at the end are set aside
    kind: Labels | None = None  # of the names; None where nothing is labelled
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def learned(self) -> int:
        """How many images are learned from."""
        return len(self) - self.held


def from_arrays(images: Any, labels: Any, image_shape: tuple[int, int, int], holdout: float, seed: int) -> Delivery:
    """A delivery of images that are in memory."""
    pixels = fitted(images, image_shape)
    named = named_labels(labels, len(pixels))
    order, held = arranged(named.labels, torch.zeros(len(pixels), dtype=torch.bool), holdout, seed)
    pixels, numbers = pixels[order], named.labels[order]
    name_of = [*named.names, ""]
    digest = fingerprint(sum_of_hashes(pixels.numpy(), [name_of[label] for label in numbers.tolist()]))
    return Delivery("arrays", pixels, numbers, named.names, digest, held, named.kind)


def arranged(labels: Tensor, test: Tensor, holdout: float, seed: int) -> tuple[Tensor, int]:
    """The order of a delivery, and how many at its end are set aside: test images, and a share of each class.

    A share of less than one image is one image now and then, so that it holds over many small deliveries. One image of
    each class stays to be learned.
    """
    held, rng = test.clone(), np.random.RandomState(seed % 2**32)
    for label in labels.unique().tolist() if holdout else ():
        members = torch.where((labels == label) & ~test)[0].numpy()
        count = min(int(holdout * len(members) + rng.random_sample()), len(members) - 1)
        if label != UNLABELED and count > 0:
            held[torch.from_numpy(rng.permutation(members)[:count])] = True
    known = labels != UNLABELED
    groups = (known & ~held, ~known & ~held, held)
    return torch.cat([torch.where(group)[0] for group in groups]), int(held.sum())


def sum_of_hashes(images: np.ndarray, names: Sequence[str]) -> int:
    """A number that tells these images and labels from others, whatever their order."""
    total = 0
    for image, name in zip(images, names, strict=True):
        digest = hashlib.blake2b(
            image.tobytes(),
            digest_size=16,
            key=hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest(),
        )
        total += int.from_bytes(digest.digest(), "little")
    return total % 2**128


def fingerprint(total: int) -> str:
    """The sum as a text."""
    return f"{total:032x}"
