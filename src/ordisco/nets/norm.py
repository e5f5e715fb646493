"""Batch norm whose sums are taken over several pixels side by side: the same numbers up to rounding, sooner.

On a CPU torch adds up channels-last maps pixel by pixel, and each thread has a row of sums, one a channel. With few
channels such a row fills no vector, and rows that are not whole cache lines are written by two threads at once: with 24
channels two threads take three times as long as one. The same memory read as (pixels / k, k · channels) has long rows;
the k sums of each channel are put together afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

LINE = 16  # numbers of 32 bits in a cache line
ROW = 64  # channels of a row that is long enough
LARGE = 2**18  # numbers of a map from which on it pays


class BatchNorm2d(nn.BatchNorm2d):
    """torch's batch norm."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise; by torch's own in evaluation mode, on a GPU, and wherever that is as fast."""
        if not self.training or not pays(x):
            return super().forward(x)
        mean, variance = moments(x)
        count = x.numel() // x.shape[1]
        track(self, mean, variance, count)
        return normalized(x, self, mean, variance, count)


def pays(x: Tensor) -> bool:
    """Is it a large channels-last map of few channels, or of a number that makes threads share cache lines?"""
    channels = x.shape[1]
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.numel() >= LARGE
        and (channels < 2 * LINE or channels % LINE > 0)
        and x.is_contiguous(memory_format=torch.channels_last)
    )


def folded(x: Tensor) -> tuple[Tensor, int]:
    """A channels-last map as long rows (pixels / k, k · channels), and k; 1 where the pixels cannot be shared out.

    >>> rows, k = folded(torch.zeros(2, 24, 4, 4).contiguous(memory_format=torch.channels_last))
    >>> (tuple(rows.shape), k)
    ((8, 96), 4)
    """
    n, channels, h, w = x.shape
    pixels, k = n * h * w, 1
    while k * channels < ROW or k * channels % LINE:
        k *= 2
        if pixels % k:
            k = 1
            break
    return x.permute(0, 2, 3, 1).reshape(pixels // k, k * channels), k


@torch.no_grad()
def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each channel, from those of the folded rows."""
    rows, k = folded(x)
    means, variances = torch.ops.aten.batch_norm_update_stats(rows, None, None, 0.0)
    means, variances = means.view(k, -1), variances.view(k, -1)
    mean = means.mean(0)
    return mean, (variances + (means - mean).square()).mean(0)


@torch.no_grad()
def track(layer: _BatchNorm, mean: Tensor, variance: Tensor, count: int) -> None:
    """Move the running statistics, as torch does: by the unbiased variance, and momentum None is the plain mean."""
    if not layer.track_running_stats or layer.running_mean is None or layer.running_var is None:
        return
    assert layer.num_batches_tracked is not None
    layer.num_batches_tracked.add_(1)
    momentum = 1 / int(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
    # unseen by autograd, which still needs the statistics beside them in the flat vector
    layer.running_mean.data.lerp_(mean, momentum)
    layer.running_var.data.lerp_(variance * (count / max(1, count - 1)), momentum)


def alone(sums: Tensor) -> Tensor:
    """The sums over all rows, where there is one process."""
    return sums


def normalized(
    x: Tensor,
    layer: _BatchNorm,
    mean: Tensor,
    variance: Tensor,
    count: int,
    total: Callable[[Tensor], Tensor] = alone,
) -> Tensor:
    """(x − mean) / √(variance + ε) · weight + bias, with mean and variance functions of `count` values a channel.

    `total` adds up sums over the processes among whom the values are shared out.
    """
    out: Tensor = _Normalized.apply(x, layer.weight, layer.bias, mean, variance, layer.eps, count, total)  # type: ignore[no-untyped-call]
    return out


class _Normalized(torch.autograd.Function):
    """With s = weight / √(variance + ε) and x̂ the normalised x: dx = s · (g − mean(g) − x̂ · mean(g · x̂))."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        eps: float,
        count: int,
        total: Callable[[Tensor], Tensor],
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.eps, ctx.count, ctx.total = eps, count, total
        return torch.batch_norm(x, weight, bias, mean, variance, False, 0.0, eps, False)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, variance = ctx.saved_tensors
        if not gradient.is_contiguous(memory_format=torch.channels_last):
            gradient = gradient.contiguous(memory_format=torch.channels_last)
        along, plain = sums(gradient, x, mean, variance, ctx.eps)
        inverse = (variance + ctx.eps).rsqrt()
        scale = inverse if weight is None else inverse * weight
        of_all = ctx.total(torch.stack([along, plain])) * (scale / ctx.count)
        slope = of_all[0] * inverse
        shape = (1, -1, 1, 1)
        constant = torch.addcmul((slope * mean - of_all[1]).view(shape), gradient, scale.view(shape))
        dx = constant.addcmul_(x, slope.view(shape), value=-1)
        return (dx, *((None, None) if weight is None else (along, plain)), None, None, None, None, None)


def sums(gradient: Tensor, x: Tensor, mean: Tensor, variance: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Of g · x̂ and of g over the values of each channel: the gradients of weight and bias."""
    rows, k = folded(gradient)
    _, along, plain = torch.ops.aten.native_batch_norm_backward(
        rows, folded(x)[0], None, mean.repeat(k), variance.repeat(k), None, None, False, eps, [False, True, True]
    )
    return along.view(k, -1).sum(0), plain.view(k, -1).sum(0)
