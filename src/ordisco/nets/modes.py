"""How a network runs for a while: batch norm by the mini-batch, dropout on or off, statistics left alone or anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


class HasModules(Protocol):
    """Anything with modules inside, such as a network or a view of one."""

    def modules(self) -> Iterator[nn.Module]:
        """All modules inside, itself included."""


@contextmanager
def running(network: HasModules, *, norms: bool | None = None, others: bool | None = None) -> Iterator[None]:
    """The network in other modes, without a trace in the running statistics of batch norm; put back at the end.

    `norms`: batch norm in training mode, so by the mini-batch, or in evaluation mode; `others`: all other modules,
    of which dropout is the one that minds. None leaves a mode as it is.
    """
    modules = list(network.modules())
    training = [module.training for module in modules]
    batch_norms = [module for module in modules if isinstance(module, _BatchNorm)]
    tracked = [norm.track_running_stats for norm in batch_norms]
    try:
        for module in modules:
            wanted = norms if isinstance(module, _BatchNorm) else others
            if wanted is not None:
                module.training = wanted
        for norm in batch_norms:
            norm.track_running_stats = False  # decides nothing in evaluation mode
        yield
    finally:
        for module, was in zip(modules, training, strict=True):
            module.training = was
        for norm, was in zip(batch_norms, tracked, strict=True):
            norm.track_running_stats = was


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
