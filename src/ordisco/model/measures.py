"""How good a model is, without a test set: labels predicted before they are learned, and images set aside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ordisco.data.dataset import Split
from ordisco.evaluation.accuracy import Evaluation, assess
from ordisco.learner.learner import Learner


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
    lost = [
        max(0.0, max(past[name] for past in earlier if name in past) - share)
        for name, share in now["per_class"].items()
        if any(name in past for past in earlier)
    ]
    return {**now, "forgetting": sum(lost) / len(lost) if lost else None}
