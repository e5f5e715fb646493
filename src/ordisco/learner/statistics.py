"""Batch-norm statistics that belong to the weights: those of C′, which predicts, and of the G that draws samples.

The weights of C′ are averages of C's, but C's statistics are not those of C′: averaged along, they trail twice, and
early in a stream C′ calls everything one class. So C′ gathers its own, over the images that C learns from: labelled
and unlabelled ones by their numbers, and replayed ones. Labelled images, which C knows by heart, would be too many in
C's own mini-batches: they hold them at a fixed share. G gathers over images of all classes seen.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ordisco.learner.pools import Pools
from ordisco.learner.replay import drawn_from, replays
from ordisco.learner.state import Setup, State
from ordisco.nets.modes import gathering


@torch.no_grad()
def gather_statistics(setup: Setup, state: State, pools: Pools, between: Callable[[], None]) -> None:
    """The statistics of C′ and of the G that replays anew, at their weights of now; alike in every process.

    `between` is called after each mini-batch: images that are mapped from a file can be given back.
    """
    nets, batches = state.nets, setup.settings.classifier.statistics
    with gathering(nets.teacher.module):
        for _ in range(batches):
            x = mixture(setup, state, pools)
            with setup.fabric.autocast():
                nets.teacher.module(x)
            between()
    if nets.gan is not None:
        with gathering(nets.gan.sampler.module):
            for _ in range(batches):
                drawn_from(setup, nets.gan.sampler.module, len(state.classes))


def mixture(setup: Setup, state: State, pools: Pools) -> Tensor:
    """Weak views of labelled and unlabelled images at their natural shares, and of replayed ones if there are any."""
    sizes = setup.settings.step
    count, labeled = sizes.batch_labeled + sizes.batch_unlabeled, len(pools.images)
    of_labeled = round(count * labeled / (labeled + len(pools.unlabeled)))
    batch = pools.draw(of_labeled, count - of_labeled)
    again = replays(setup, state) if setup.settings.replay.replay_weight > 0 else None
    parts = [images.x for images in (batch.labeled, batch.unlabeled, again) if images is not None]
    return setup.augment.weak(torch.cat(parts))
