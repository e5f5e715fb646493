"""What C′ says of unlabelled images: targets for C, pseudo-labels for D, aligned with the classes expected."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ordisco.errors import OrdiscoError
from ordisco.learner.batch import Batch, Pairs, Pseudo, Unlabeled
from ordisco.learner.pools import Pools
from ordisco.learner.state import Setup, State
from ordisco.maths.unlabeled.align import align_distribution, mean_of, running_sums
from ordisco.maths.unlabeled.base import Views


class Seen:
    """C restricted to the classes seen so far."""

    def __init__(self, C: nn.Module, classes: int) -> None:
        self.C, self.classes = C, classes

    def __call__(self, x: Tensor) -> Tensor:
        """Logits (n, classes seen)."""
        logits: Tensor = self.C(x)
        return logits[:, : self.classes].float()

    def modules(self) -> Iterator[nn.Module]:
        """C's modules."""
        return self.C.modules()


def unlabeled_views(setup: Setup, state: State, unlabeled: Unlabeled | None, replayed: Pairs | None) -> Views:
    """The views of unlabelled and replayed images that the unlabelled loss asks for."""
    present = [images.x for images in (unlabeled, replayed) if images is not None]
    if setup.unlabeled_loss is None or not present:
        return Views((), ())
    C = Seen(state.nets.C.module, len(state.classes))
    with setup.fabric.autocast():
        return setup.unlabeled_loss.views(torch.cat(present), setup.augment, C)


def beside(setup: Setup, pools: Pools, labeled: Pairs) -> Tensor:
    """The labelled images that C′ sees beside what it teaches, so that it normalises over the classes that C does.

    The unlabelled images of a task of New Class are of its classes only. In New Instance all classes are there, and few
    labelled images, drawn again and again, would rule the statistics: none is taken.
    """
    match setup.settings.classifier.teacher_batch:
        case "unlabeled":
            return labeled.x[:0]
        case "old-classes":
            return setup.augment.weak(labeled.x[~pools.here[labeled.y]])
        case "labeled":
            return setup.augment.weak(labeled.x)


@torch.no_grad()
def teach(setup: Setup, state: State, x: Tensor, company: Tensor) -> Tensor:
    """Logits of C′ for the classes seen so far, of images seen together with others."""
    with setup.fabric.autocast(), state.nets.teaching() as C_prime:
        logits: Tensor = C_prime(torch.cat([x, company]))
    return logits[: len(x), : len(state.classes)].float()


def pseudo_labels(
    setup: Setup, state: State, pools: Pools, batch: Batch, teacher: tuple[Tensor, ...] = ()
) -> Pseudo | None:
    """C(x) of Eq. 4: the (aligned) class probabilities of C′, from the view it has already seen if there is one."""
    if batch.unlabeled is None:
        return None
    x, increments = batch.unlabeled
    logits = teacher[0][: len(x)] if teacher else teach(setup, state, x, beside(setup, pools, batch.labeled))
    p = logits.softmax(1)
    if setup.settings.unlabeled.align != "none":
        p = aligned(state, pools, p, increments, "pseudo_labels")
    return Pseudo(x, p)


def aligned_targets(
    setup: Setup, state: State, pools: Pools, p: Tensor | None, unlabeled: Unlabeled | None
) -> Tensor | None:
    """The targets of the unlabelled images aligned; those of replayed images, which follow, are left alone."""
    if p is None or setup.settings.unlabeled.align != "all" or unlabeled is None:
        return p
    count = len(unlabeled.x)
    return torch.cat([aligned(state, pools, p[:count], unlabeled.increments, "targets"), p[count:]])


def no_predictions(setup: Setup, pools: Pools) -> dict[str, Tensor]:
    """The running sums of each use of alignment that the settings ask for, before the first prediction."""
    align, (rows, classes) = setup.settings.unlabeled.align, pools.expected.shape
    uses = [
        *(["pseudo_labels"] if setup.method.gan and align != "none" else []),
        *(["targets"] if align == "all" else []),
    ]
    return {use: pools.expected.new_zeros(rows, classes + 1) for use in uses}


def check_predictions(state: State, pools: Pools) -> None:
    """Refuse running sums of an increment under way that are not those of its pools."""
    if any(len(sums) != len(pools.expected) for sums in state.predicted.values()):
        raise OrdiscoError(
            "the increment was begun by a version that aligned its images otherwise: start in a new directory"
        )


def aligned(state: State, pools: Pools, p: Tensor, increments: Tensor, use: str) -> Tensor:
    """Distribution alignment with the classes expected among the unlabelled images of each image's increment.

    Each use has its own running sums, so that D's pseudo-labels leave the targets of C alone.
    """
    sums = running_sums(state.predicted.get(use), p.detach(), increments, len(pools.expected))
    state.predicted[use] = sums
    return align_distribution(p, pools.expected[increments], mean_of(sums)[increments])
