"""New Instance and New Class: which image arrives when, and whose label is shown (Sec. 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ordisco.data.dataset import UNLABELED, Dataset
from ordisco.data.unread import Unread
from ordisco.errors import OrdiscoError, UsageError
from ordisco.streams.draw import draw
from ordisco.streams.drift import by_drift
from ordisco.streams.stream import Stream


def new_instance(
    dataset: Dataset | Unread,
    increments: int,
    labels_per_class: int,
    seed: int = 0,
    max_images: int | None = None,
    name: str | None = None,
    drift: bool = False,
    even_classes: bool = False,
) -> Stream:
    """New Instance: a random split into increments, each with `labels_per_class` labels of every class.

    Images without a known label stay unlabelled; labels beyond those asked for are hidden. With `drift` the split is
    not random: images arrive from dark on light to light on dark.

    >>> from ordisco.data.load import load
    >>> stream = new_instance(load("digits"), increments=10, labels_per_class=1)
    >>> len(stream), len(stream[3].labeled), stream[3].classes
    (10, 10, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9))
    """
    labeled, rest = draw(dataset, increments, labels_per_class, seed, max_images, even_classes)
    used = np.concatenate([labeled.ravel(), rest])
    assignment, shown = _nothing(dataset)
    kept = dataset.only(_ascending(used))
    if drift:
        arrived = kept.train[torch.from_numpy(np.argsort(np.argsort(used)))]  # in the order in which they were drawn
        parts = [(used[part], used[mine]) for part, mine in by_drift(arrived, increments, labels_per_class, seed)]
    else:
        given = [labeled[:, index].ravel() for index in range(increments)]
        parts = [
            (np.concatenate([part, mine]), mine)
            for part, mine in zip(np.array_split(rest, increments), given, strict=True)
        ]
    for index, (part, mine) in enumerate(parts):
        assignment[part] = index
        shown[mine] = True
    name = name or f"{dataset.name}-{labels_per_class}"
    return Stream.of(name, "new-instance", seed, kept, assignment, shown)


def new_class(
    dataset: Dataset | Unread,
    classes_per_task: int = 2,
    *,
    increments: int,
    labels_per_class: int,
    seed: int = 0,
    max_images: int | None = None,
    class_order: Sequence[int] | None = None,
    name: str | None = None,
    even_classes: bool = False,
) -> Stream:
    """New Class: tasks of `classes_per_task` new classes, with the labelled images of New Instance.

    `increments` and `labels_per_class` are those of the New Instance stream whose labels are taken, so
    the total of labels is equal. Every image of a class arrives with its task.

    >>> from ordisco.data.load import load
    >>> stream = new_class(load("digits"), increments=5, labels_per_class=1)
    >>> [increment.classes for increment in stream]
    [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    >>> len(stream[0].labeled), len(stream.test_after(0)) < len(stream.test_after(4))
    (10, True)
    """
    if (dataset.train.labels == UNLABELED).any():
        raise OrdiscoError(
            f"{dataset.name}: New Class needs the class of every image, but some have none; use New Instance"
        )
    if not 1 <= classes_per_task <= dataset.num_classes:
        raise UsageError(f"classes_per_task = {classes_per_task} is not allowed: from 1 to {dataset.num_classes}")
    order = list(range(dataset.num_classes)) if class_order is None else list(class_order)
    if sorted(order) != list(range(dataset.num_classes)):
        raise UsageError(f"class_order = {order} is not allowed: every class from 0 to {dataset.num_classes - 1} once")
    labeled, rest = draw(dataset, increments, labels_per_class, seed, max_images, even_classes)
    task = np.empty(dataset.num_classes, dtype=np.int64)
    task[order] = np.arange(dataset.num_classes) // classes_per_task
    assignment, shown = _nothing(dataset)
    used = np.concatenate([labeled.ravel(), rest])
    assignment[used] = task[dataset.train.labels.numpy()[used]]
    shown[labeled.ravel()] = True
    name = name or f"{dataset.name}-{labels_per_class}-new-class"
    return Stream.of(name, "new-class", seed, dataset.only(_ascending(used)), assignment, shown)


def _ascending(used: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.sort(used))


def _nothing(dataset: Dataset | Unread) -> tuple[np.ndarray, np.ndarray]:
    return np.full(len(dataset.train), -1, dtype=np.int64), np.zeros(len(dataset.train), dtype=bool)
