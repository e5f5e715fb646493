"""The random draw behind every stream: whose labels are shown when, and the order of the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordisco.data.dataset import UNLABELED, Dataset
from ordisco.data.unread import Unread
from ordisco.errors import OrdiscoError, UsageError
from ordisco.settings.fields import MOST_SEED
from ordisco.streams.settings import MOST_INCREMENTS


def draw(
    dataset: Dataset | Unread,
    increments: int,
    labels_per_class: int,
    seed: int,
    max_images: int | None,
    even_classes: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """The images whose labels are shown, as (class, increment, label), and the others in random order.

    `RandomState` is frozen by numpy, so the draw is the same on every machine. Which labels are shown
    does not depend on `max_images`. The others are as many as that leaves, drawn regardless of their class, or with
    `even_classes` the same number of each.
    """
    for option, value, high in (
        ("increments", increments, MOST_INCREMENTS),
        ("labels_per_class", labels_per_class, len(dataset.train)),
    ):
        if not 1 <= value <= high:
            raise UsageError(f"{option} = {value} is not allowed: from 1 to {high}")
    if not 0 <= seed <= MOST_SEED:
        raise UsageError(f"seed = {seed} is not allowed: from 0 to {MOST_SEED}")
    rng = np.random.RandomState(seed)
    labels = dataset.train.labels.numpy()
    need = increments * labels_per_class
    groups = [rng.permutation(np.flatnonzero(labels == label)) for label in range(dataset.num_classes)]
    unknown = rng.permutation(np.flatnonzero(labels == UNLABELED))
    for name, group in zip(dataset.classes, groups, strict=True):
        if len(group) < need:
            raise OrdiscoError(
                f"{dataset.name}: class {name!r} has {len(group)} labelled training images, but {increments} "
                f"increments of {labels_per_class} need {need}; ask for fewer increments or labels"
            )
    labeled = np.stack([group[:need] for group in groups]).reshape(dataset.num_classes, increments, labels_per_class)
    spare = [group[need:] for group in groups]
    if max_images is not None and max_images < len(labels):
        if max_images < labeled.size:
            raise UsageError(f"max_images = {max_images} is not allowed: {labeled.size} or more, for the labels alone")
        left = max_images - labeled.size
        if not even_classes:
            return labeled, rng.permutation(np.concatenate([*spare, unknown]))[:left]
        of_unknown = round(left * len(unknown) / (len(labels) - labeled.size))
        unknown = unknown[:of_unknown]
        shares = _balanced([len(group) for group in spare], left - of_unknown)
        spare = [group[:share] for group, share in zip(spare, shares, strict=True)]
    return labeled, rng.permutation(np.concatenate([*spare, unknown]))


def _balanced(available: Sequence[int], total: int) -> list[int]:
    """`total` shared out as evenly as the available numbers allow; the first get the remainder."""
    shares = [0] * len(available)
    while total > 0 and any(share < limit for share, limit in zip(shares, available, strict=True)):
        open_ = [index for index, limit in enumerate(available) if shares[index] < limit]
        step = max(1, min(total // len(open_), min(available[index] - shares[index] for index in open_)))
        for index in open_[: total // step]:
            shares[index] += step
            total -= step
    return shares
