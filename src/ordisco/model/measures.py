"""How good a model is, without a test set: labels predicted before they are learned, images set aside, shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ordisco.data.dataset import Split
from ordisco.evaluation.accuracy import Evaluation, assess
from ordisco.evaluation.shift import Shift, shift_test
from ordisco.learner.learner import Learner

COMPARED = 500  # images of a delivery, and as many of G
PERMUTATIONS = 200
SMALL_P, FARTHER = 0.01, 2.0  # a shift: chance is hardly as far, and twice the last delivery's own distance


def measured(evaluation: Evaluation, classes: Sequence[str]) -> dict[str, Any]:
    """Images, accuracy and accuracy of each class that has images."""
    return {
        "images": int(evaluation.confusion.sum()),
        "accuracy": evaluation.accuracy,
        "per_class": {classes[label]: share for label, share in evaluation.per_class.items()},
    }


def before_learning(learner: Learner, images: Tensor, labels: Tensor, classes: Sequence[str]) -> dict[str, Any] | None:
    """Accuracy on labels that are about to be learned (prequential), of classes that were known before."""
    known = torch.isin(labels, torch.tensor(learner.classes, dtype=torch.int64))
    if not bool(known.any()):
        return None
    return measured(assess(learner, Split(images[known], labels[known]), len(classes)), classes)


def on_holdout(
    learner: Learner, holdout: Split, classes: Sequence[str], history: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Accuracy on the images set aside, and forgetting: of each class the best so far minus now, in the mean."""
    seen = torch.isin(holdout.labels, torch.tensor(learner.classes, dtype=torch.int64))
    if not bool(seen.any()):
        return None
    now = measured(assess(learner, holdout[seen], len(classes)), classes)
    earlier = [record["holdout"]["per_class"] for record in history if record.get("holdout")]
    lost = {
        name: max(0.0, max(past[name] for past in earlier if name in past) - share)
        for name, share in now["per_class"].items()
        if any(name in past for past in earlier)
    }
    return {**now, "forgotten": lost, "forgetting": sum(lost.values()) / len(lost) if lost else None}


def shift_from_the_past(learner: Learner, unlabeled: Tensor) -> Shift | None:
    """How far unlabelled images are from G's, which stand for the past, in the features of C′.

    G draws the classes that C′ sees in the images, so that another mixture of the same classes is no shift.
    """
    if not learner.has_generator or len(unlabeled) < 2:
        return None
    some = torch.linspace(0, len(unlabeled) - 1, min(COMPARED, len(unlabeled))).long()
    images = unlabeled[some]
    drawn = learner.sample(learner.predict(images))
    return shift_test(learner.features(images), learner.features(drawn), PERMUTATIONS)


def compared(now: Shift | None, usual: float | None) -> dict[str, Any] | None:
    """The shift of a delivery beside what is usual: the distance of the last delivery, once it was learned.

    G is never quite like real images, so that a small p alone says little.
    """
    if now is None:
        return None
    far = now.p < SMALL_P and (usual is None or now.mmd2 > FARTHER * max(usual, 0.0))
    return {"mmd2": now.mmd2, "p": now.p, "usual": usual, "shifted": far}
