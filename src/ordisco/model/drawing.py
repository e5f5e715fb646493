"""Pictures of what a model's generator draws."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from ordisco.learner.learner import Learner
from ordisco.model.about import About
from ordisco.report.grids import sample_grid

WHITE = 255


def draw_classes(path: Path, about: About, learner: Learner, each: int, seed: int = 0) -> None:
    """A row of images of every class."""
    labels = torch.arange(len(about.classes)).repeat_interleave(each)
    sample_grid(path, learner.sample(labels, seed).cpu(), len(about.classes), about.classes)


def draw_class(path: Path, about: About, learner: Learner, label: int, count: int, seed: int = 0) -> None:
    """A square of images of one class; its last row is filled up with white."""
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    images = learner.sample(torch.full((count,), label), seed).cpu()
    empty = torch.full((rows * columns - count, *images.shape[1:]), WHITE, dtype=torch.uint8)
    sample_grid(path, torch.cat([images, empty]), rows, [about.classes[label], *[""] * (rows - 1)])
