"""Does G draw a class, or the few labelled images of it that are kept? How near its samples come to them.

The measure is in pixels: the mean distance of a class's samples to the nearest kept labelled image of the class, over
that of test images. New images of the class would give 1, copies 0. Smooth samples are nearer to everything than
photos are, so compare classes and methods, not with 1. It also bounds what a generator reveals of single images.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.learner.learner import Learner
from ordisco.streams.stream import Stream

COUNT = 200  # samples and test images of each class, at the most


def nearness(samples: Tensor, labeled: Tensor, fresh: Tensor) -> float:
    """The mean distance of samples to the nearest labelled image, over that of fresh images (all uint8).

    >>> image = torch.tensor([[[[0, 0]]], [[[3, 4]]]], dtype=torch.uint8)
    >>> nearness(image[:1], image[1:], torch.tensor([[[[3, 14]]]], dtype=torch.uint8))
    0.5
    """
    return float(to_nearest(samples, labeled).mean() / to_nearest(fresh, labeled).mean())


def to_nearest(images: Tensor, others: Tensor) -> Tensor:
    """The distance of each image to the nearest of others."""
    return torch.cdist(images.flatten(1).float(), others.flatten(1).float()).amin(1)


def nearness_of(learner: Learner, stream: Stream, seed: int = 3) -> dict[int, float]:
    """By class, for those of which the learner keeps labelled images and there are test images."""
    kept, test = learner.state.memories.data, stream.test_after(learner.increments - 1)
    found: dict[int, float] = {}
    if kept is None:
        return found
    for label in sorted(learner.classes):
        labeled, fresh = kept.images[kept.labels == label].cpu(), test.images[test.labels == label][:COUNT]
        if len(labeled) and len(fresh):
            samples = learner.sample(torch.full((COUNT,), label), seed).cpu()
            found[label] = nearness(samples, labeled, fresh)
    return found
