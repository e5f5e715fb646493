"""What C′ says of unlabelled images: targets for C, pseudo-labels for D, aligned with the classes expected."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ordisco.learner.batch import Pairs, Pseudo
from ordisco.learner.pools import Pools
from ordisco.learner.state import Setup, State
from ordisco.maths.unlabeled.align import align_distribution, update_running_mean
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


def unlabeled_views(setup: Setup, state: State, unlabeled: Tensor | None, replayed: Pairs | None) -> Views:
    """The views of unlabelled and replayed images that the unlabelled loss asks for."""
    present = [x for x in (unlabeled, None if replayed is None else replayed.x) if x is not None]
    if setup.unlabeled_loss is None or not present:
        return Views((), ())
    C = Seen(state.nets.C.module, len(state.classes))
    with setup.fabric.autocast():
        return setup.unlabeled_loss.views(torch.cat(present), setup.augment, C)


@torch.no_grad()
def teach(setup: Setup, state: State, x: Tensor) -> Tensor:
    """Logits of C′ for the classes seen so far."""
    with setup.fabric.autocast(), state.nets.teaching() as C_prime:
        logits: Tensor = C_prime(x)
    return logits[:, : len(state.classes)].float()


def pseudo_labels(
    setup: Setup, state: State, pools: Pools, x_u: Tensor | None, teacher: tuple[Tensor, ...] = ()
) -> Pseudo | None:
    """C(x) of Eq. 4: the (aligned) class probabilities of C′, from the view it has already seen if there is one."""
    if x_u is None:
        return None
    logits = teacher[0][: len(x_u)] if teacher else teach(setup, state, x_u)
    p = logits.softmax(1)
    if setup.settings.unlabeled.align != "none":
        p = aligned(setup, state, pools, p, "pseudo_labels")
    return Pseudo(x_u, p)


def aligned_targets(setup: Setup, state: State, pools: Pools, p: Tensor | None, num_unlabeled: int) -> Tensor | None:
    """The targets of the unlabelled images aligned; those of replayed images, which follow, are left alone."""
    if p is None or setup.settings.unlabeled.align != "all" or num_unlabeled == 0:
        return p
    return torch.cat([aligned(setup, state, pools, p[:num_unlabeled], "targets"), p[num_unlabeled:]])


def aligned(setup: Setup, state: State, pools: Pools, p: Tensor, use: str) -> Tensor:
    """Distribution alignment with the classes expected among the unlabelled images.

    Each use has its own running mean, so that D's pseudo-labels leave the targets of C alone.
    """
    now = setup.averaged(p.detach().mean(0))
    old = state.mean_prediction.get(use)
    mean = now if old is None else update_running_mean(old, now[None])
    state.mean_prediction[use] = mean
    return align_distribution(p, pools.expected, mean)
