"""One step of all networks, shared by processes: each takes its rows of the mini-batch, and all get all outputs.

While `shared_out` lasts, a call of C's features, of G or of D computes this process's rows only. Losses, targets and
random draws stay outside: every process makes them for the whole mini-batch, from the same numbers. Batch norm uses
the statistics of the whole mini-batch, dropout the rows of the mask that one process would draw. So a step is that of
one process, up to rounding, whatever the number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ordisco.machine.group import Group, put_together, share_out
from ordisco.nets import norm
from ordisco.nets.dropout import mask
from ordisco.nets.networks import Networks


@contextmanager
def shared_out(nets: Networks, group: Group) -> Iterator[None]:
    """Have the calls of all networks made by the processes together; nothing is changed where there is only one."""
    if group.size == 1:
        yield
        return
    with ExitStack() as stack:
        for name, network in nets.named():
            whole = network.module.features if name in ("C", "teacher") else network.module
            assert isinstance(whole, nn.Module)
            stack.enter_context(_shared(whole, group))
        yield


class _Call:
    """The call under way: which rows of how many this process computes."""

    def __init__(self, group: Group) -> None:
        self.group, self.count = group, 0

    def begin(self, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        self.count = len(inputs[0])
        return tuple(share_out(x, self.group) for x in inputs)

    def end(self, module: nn.Module, inputs: tuple[Tensor, ...], out: Tensor) -> Tensor:
        return put_together(out, self.count, self.group)


@contextmanager
def _shared(module: nn.Module, group: Group) -> Iterator[None]:
    call = _Call(group)
    hooks = [module.register_forward_pre_hook(call.begin), module.register_forward_hook(call.end)]
    changed: list[nn.Module] = []
    for part in module.modules():
        if isinstance(part, _BatchNorm):
            part.forward = partial(batch_norm, part, group)  # type: ignore[method-assign]
        elif isinstance(part, nn.Dropout):
            part.forward = partial(_dropout, part, call)  # type: ignore[method-assign]
        else:
            continue
        changed.append(part)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for part in changed:
            del part.forward


def _dropout(layer: nn.Dropout, call: _Call, x: Tensor) -> Tensor:
    """Dropout by this process's rows of the whole mini-batch's mask."""
    if not layer.training or layer.p == 0:
        return x
    shape, dense = (call.count, *x.shape[1:]), x.stride(0) == math.prod(x.shape[1:])
    # in the layout of x, so that the mask is the one of one process
    whole = x.new_empty_strided(shape, x.stride()) if dense else x.new_empty(shape)
    return x * mask(whole, layer.p)[call.group.rows(call.count)]


def batch_norm(layer: _BatchNorm, group: Group, x: Tensor) -> Tensor:
    """Batch norm over the rows of all processes; torch's own works on CUDA only."""
    if not layer.training:
        return type(layer).forward(layer, x)
    mean, variance, count = moments(x, group)
    norm.track(layer, mean, variance, count)
    return norm.normalized(x, layer, mean, variance, count, group.sum_)


@torch.no_grad()
def moments(x: Tensor, group: Group) -> tuple[Tensor, Tensor, int]:
    """Mean and variance of each channel over the rows of all processes, and how many values that are."""
    channels, values = x.shape[1], x.numel() // x.shape[1]
    parts = torch.zeros(group.size, 3, channels, dtype=torch.float32, device=x.device)
    if values:
        variance, mean = torch.var_mean(x.float(), [dim for dim in range(x.dim()) if dim != 1], correction=0)
        parts[group.rank] = torch.stack([torch.full_like(mean, values), mean, variance])
    group.sum_(parts)
    counts, means, variances = parts.unbind(1)
    weights = counts / counts.sum(0)
    mean = (weights * means).sum(0)
    return mean, (weights * (variances + (means - mean).square())).sum(0), int(counts[:, 0].sum())
