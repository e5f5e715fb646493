"""How a network runs for a while: batch norm by the mini-batch, dropout on or off, statistics left alone or anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class HasModules(Protocol):
    """Anything with modules inside, such as a network or a view of one."""

    def modules(self) -> Iterable[nn.Module]:
        """All modules inside, itself included."""


@contextmanager
def running(network: HasModules, *, norms: bool | None = None, others: bool | None = None) -> Iterator[None]:
    """The network in other modes, without a trace in the running statistics of batch norm; put back at the end.

    `norms`: batch norm in training mode, so by the mini-batch, or in evaluation mode; `others`: all other modules,
    of which dropout is the one that minds. None leaves a mode as it is.
    """
    before: list[tuple[dict[str, object], str, bool]] = []  # plain flags, so without nn.Module's slow way of setting
    for module in network.modules():
        flags, norm = vars(module), isinstance(module, _BatchNorm)
        wanted = norms if norm else others
        if wanted is not None and flags["training"] != wanted:
            before.append((flags, "training", not wanted))
        if norm and flags["track_running_stats"]:  # decides nothing in evaluation mode
            before.append((flags, "track_running_stats", True))
    try:
        for flags, name, was in before:
            flags[name] = not was
        yield
    finally:
        for flags, name, was in before:
            flags[name] = was


@contextmanager
def gathering(network: HasModules) -> Iterator[None]:
    """Batch norm gathers its running statistics anew, as the mean over the mini-batches of the block; no dropout."""
    batch_norms = [module for module in network.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in batch_norms]
    training = [(module, module.training) for module in network.modules()]
    try:
        for module, _ in training:
            module.training = isinstance(module, _BatchNorm)
        for norm in batch_norms:
            norm.reset_running_stats()
            norm.momentum = None  # torch's word for the plain mean over all calls
        yield
    finally:
        for module, was in training:
            module.training = was
        for norm, momentum in zip(batch_norms, momenta, strict=True):
            norm.momentum = momentum
