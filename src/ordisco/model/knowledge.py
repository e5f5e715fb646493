"""What a model has learned so far: its learner, its history and the images set aside; as a version, and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from ordisco.data.catalogue import OWN
from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.machine.fabric import Fabric
from ordisco.model.about import About
from ordisco.model.directory import Version
from ordisco.runs.checkpoint import Damaged
from ordisco.settings.methods import method

HOLDOUT_IMAGES, HOLDOUT_LABELS = "holdout.images", "holdout.labels"


@dataclass(frozen=True)
class Knowledge:
    """All that survives of the deliveries so far."""

    about: About
    learner: Learner | None = None  # None before the first delivery
    history: list[dict[str, Any]] = field(default_factory=list)
    holdout: Split | None = None

    @property
    def deliveries(self) -> int:
        """How many deliveries are learned."""
        return len(self.history)


def make_learner(about: About, capacity: int, steps: int, fabric: Fabric) -> Learner:
    """A learner that has learned nothing, for deliveries of so many steps."""
    if about.settings is None or about.side is None:
        raise OrdiscoError("the model has no settings yet: learn a first delivery")
    return Learner(
        method(about.method),
        capacity,
        about.image_shape,
        about.settings.replace(steps=steps, epochs=None, joint_steps=None),
        seed=about.seed,
        translate=OWN.shift(about.side),
        flip=about.flip,
        fabric=fabric,
    )


def copied(knowledge: Knowledge, about: About, steps: int, fabric: Fabric) -> Learner:
    """A learner that goes on from what is known, for a delivery of so many steps; the old one stays as it is."""
    if knowledge.learner is None:
        return make_learner(about, len(about.classes), steps, fabric)
    tensors, values = knowledge.learner.saved()
    learner = make_learner(about, values["capacity"], steps, fabric)
    learner.load({name: tensor.clone() for name, tensor in tensors.items()}, values)
    return learner


def to_version(knowledge: Knowledge) -> Version:
    """What is to be written."""
    if knowledge.learner is None:
        raise OrdiscoError("the model has learned nothing that could be kept")
    tensors, values = knowledge.learner.saved()
    if knowledge.holdout is not None:
        tensors = {**tensors, HOLDOUT_IMAGES: knowledge.holdout.images, HOLDOUT_LABELS: knowledge.holdout.labels}
    return Version(knowledge.deliveries, knowledge.about, tensors, values, knowledge.history)


def from_version(version: Version, fabric: Fabric) -> Knowledge:
    """What was written; where the parts do not fit each other, it is `Damaged`."""
    tensors = dict(version.tensors)
    images, labels = tensors.pop(HOLDOUT_IMAGES, None), tensors.pop(HOLDOUT_LABELS, None)
    about = version.about
    try:
        holdout = None if images is None or labels is None else Split(images, labels)
        if holdout is not None and not bool(torch.isin(holdout.labels, torch.arange(len(about.classes))).all()):
            raise OrdiscoError("an image set aside has no class of the model")
        learner = make_learner(about, version.learner["capacity"], 1, fabric)
        learner.load(tensors, version.learner)
        if learner.classes != list(range(len(about.classes))):
            raise OrdiscoError("its classes are not those of the learner")
        return Knowledge(about, learner, version.history, holdout)
    except (OrdiscoError, KeyError, TypeError, ValueError) as error:
        raise Damaged(str(error)) from error
