"""A look at C′ before an increment is learned: `--evaluate-every`, and where `--max-steps` ends a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ordisco.data.dataset import Split
from ordisco.evaluation.accuracy import evaluate
from ordisco.learner.learner import Learner

QUICK_LOOK = 1_000  # test images when --max-steps ends a run early


def look(learner: Learner, test: Split, rows: Tensor) -> float | None:
    """The accuracy of C′ as it is now on rows of the test images, None in all processes but the first.

    Training goes on as if unseen.
    """
    with statistics_of_now(learner):
        return evaluate(learner, test, rows) if learner.fabric.is_global_zero else None


@contextmanager
def statistics_of_now(learner: Learner) -> Iterator[None]:
    """Batch-norm statistics that belong to the weights of this moment, put back afterwards."""
    networks = [network for _, network in learner.state.nets.named()]
    kept = [network.flat.buffers.clone() for network in networks]
    if learner.pools is not None:
        learner.gather_statistics()
    try:
        yield
    finally:
        for network, buffers in zip(networks, kept, strict=True):
            network.flat.buffers.copy_(buffers)


def a_few(rows: Tensor) -> Tensor:
    """At most so many test images as a short look takes, always the same."""
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:QUICK_LOOK]]
