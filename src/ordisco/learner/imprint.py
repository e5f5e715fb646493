"""New classes of the Unified Classifier begin at the mean feature of their labelled images (Hou et al. 2019)."""

from __future__ import annotations

import torch

from ordisco.data.pixels import normalize
from ordisco.learner.state import Setup, State
from ordisco.maths.unified import imprinted
from ordisco.nets.modes import running
from ordisco.streams.stream import Increment


@torch.no_grad()
def imprint(setup: Setup, state: State, increment: Increment) -> None:
    """Set the embeddings of the classes that are new in this increment, in C and C′; the first one stays random."""
    classes, C = state.classes, state.nets.C.module
    if setup.method.head != "cosine" or not classes.before or not classes.new:
        return
    heads = [network.module.head.weight for network in (state.nets.C, state.nets.teacher)]  # type: ignore[union-attr]
    with running(C, norms=False, others=False), setup.fabric.autocast():
        for slot in range(classes.before, len(classes)):
            images = increment.images[increment.labels == classes.labels[slot]].to(setup.device)
            features = C.features(normalize(images)).float()  # type: ignore[operator]
            embedding = imprinted(features, heads[0][: classes.before])  # type: ignore[index]
            for weight in heads:
                weight[slot] = embedding  # type: ignore[operator]
