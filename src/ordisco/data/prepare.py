"""What a stream may do to its images before they arrive: grey, contrast, a part held out, fewer to test on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ordisco.data.augment import GREY
from ordisco.data.dataset import UNLABELED
from ordisco.data.unread import Unread
from ordisco.errors import UsageError

MIDDLE, SPREAD = 127.5, 51.0  # the mean and the standard deviation of an image after `even_contrast`
FLAT = 5.0  # added to a standard deviation, so that an image of one colour stays one
CHUNK = 256  # images changed at once: few enough to stay in the processor's cache, and to need no memory to speak of


def grey(images: Tensor) -> Tensor:
    """One channel, as bright as the three looked."""
    if images.shape[1] == 1:
        return images
    weights = torch.tensor(GREY, dtype=torch.float64).view(1, 3, 1, 1)
    return _by_chunk(images, 1, lambda x: (x * weights).sum(1, keepdim=True))


def even_contrast(images: Tensor) -> Tensor:
    """Every image with the same mean and standard deviation over all its pixels and channels."""

    def even(x: Tensor) -> Tensor:
        mean, deviation = x.mean(dim=(1, 2, 3), keepdim=True), x.std(dim=(1, 2, 3), keepdim=True, correction=0)
        return x.sub_(mean).mul_(SPREAD / (deviation + FLAT)).add_(MIDDLE)

    return _by_chunk(images, images.shape[1], even)


def change_images(dataset: Unread, to_grey: bool, contrast: bool) -> Unread:
    """The data set with grey images, with even contrast, or both."""
    return dataset.changed(*([grey] if to_grey else []), *([even_contrast] if contrast else []))


def take_validation(dataset: Unread, count: int, seed: int) -> Unread:
    """`count` labelled training images, drawn by seed, take the place of the test images: for tuning."""
    labels = dataset.train.labels.numpy()
    known = np.flatnonzero(labels != UNLABELED)
    if count >= len(known):
        raise UsageError(f"validation = {count} is not allowed: {dataset.name} has {len(known)} labelled images")
    chosen = np.zeros(len(labels), dtype=bool)
    chosen[np.random.RandomState(seed).permutation(known)[:count]] = True
    held = torch.from_numpy(chosen)
    return replace(dataset, train=dataset.train[~held], test=dataset.train[held])


def fewer_test_images(dataset: Unread, count: int, seed: int) -> Unread:
    """At most `count` test images, drawn by seed and in their order."""
    if count >= len(dataset.test):
        return dataset
    chosen = np.sort(np.random.RandomState(seed).permutation(len(dataset.test))[:count])
    return replace(dataset, test=dataset.test[torch.from_numpy(chosen)])


def _by_chunk(images: Tensor, channels: int, change: Callable[[Tensor], Tensor]) -> Tensor:
    result = images.new_empty((len(images), channels, *images.shape[2:]))
    for start in range(0, len(images), CHUNK):
        part = slice(start, start + CHUNK)
        result[part] = change(images[part].double()).round_().clamp_(0, 255)
    return result
