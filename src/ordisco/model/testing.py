"""A model on labelled images: accuracy, per class, confusion. A few images are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from ordisco.data.dataset import UNLABELED
from ordisco.data.own import UNLABELED_FOLDERS, Listed
from ordisco.errors import OrdiscoError
from ordisco.evaluation.accuracy import Evaluation
from ordisco.learner.learner import Learner
from ordisco.model.about import About
from ordisco.model.arrays import fitted, named_labels, typed
from ordisco.model.measures import measured
from ordisco.model.pictures import Pictures, is_single, listed
from ordisco.words import some_of

NAMES_SHOWN = 12


def positions(about: About, names: Sequence[str | None], where: Sequence[object]) -> torch.Tensor:
    """Labels as positions in the model's classes, −1 where there is none; one that it does not know is an error."""
    known = {name: index for index, name in enumerate(about.classes)}
    for name, place in zip(names, where, strict=True):
        if name is not None and name not in known:
            raise OrdiscoError(
                f"{place}: {name!r} is no class of the model, which knows {some_of(about.classes, NAMES_SHOWN)}"
            )
    return torch.tensor([UNLABELED if name is None else known[name] for name in names])


def labelled(sources: Iterable[Path]) -> Iterator[Listed]:
    """The images of folders and CSV files; an image that is given by itself has the name of its folder as its label."""
    for source in sources:
        folder = source.absolute().parent.name
        label = folder if is_single(source) and folder not in UNLABELED_FOLDERS else None
        yield from (Listed(image.path, image.label or label, image.test) for image in listed([source]))


def tested(about: About, learner: Learner, parts: Iterator[Pictures]) -> dict[str, Any]:
    """Count over batches; images without a label are passed over."""
    classes = len(about.classes)
    confusion, passed, unreadable = torch.zeros(classes, classes, dtype=torch.int64), 0, []
    for part in parts:
        unreadable += [f"{path} ({why})" for path, why in part.broken]
        truth = positions(about, part.labels, part.paths)
        known = truth >= 0
        passed += int((~known).sum())
        if bool(known.any()):
            predicted = learner.predict_slots(part.images[known])
            confusion += Evaluation.of(truth[known], predicted, classes).confusion
    if not int(confusion.sum()):
        raise OrdiscoError("no labelled image found: give folders with a sub-folder a class, or a CSV of path,label")
    return {
        **measured(Evaluation(confusion), about.classes),
        "classes": typed(about.classes, about.labels).tolist(),
        "confusion": confusion.tolist(),
        "unlabeled": passed,
        "unreadable": unreadable,
    }


def in_batches(about: About, images: Any, labels: Any, batch: int = 512) -> Iterator[Pictures]:
    """Arrays with labels, as if they had been read."""
    pixels = fitted(images, about.image_shape)
    named = named_labels(labels, len(pixels))
    names: list[str | None] = [None if label < 0 else named.names[label] for label in named.labels.tolist()]
    for start in range(0, len(pixels), batch):
        part = names[start : start + batch]
        yield Pictures([Path("arrays")] * len(part), part, pixels[start : start + batch], [])
