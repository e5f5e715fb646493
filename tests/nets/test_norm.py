"""Batch norm by folded rows against torch's own: values, gradients and running statistics."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ordisco.nets import norm
from ordisco.nets.classifier import NineConv
from ordisco.nets.generator import Generator
from ordisco.nets.norm import BatchNorm2d, folded, moments, pays


def maps(n: int, channels: int, side: int, seed: int = 0) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    x = 3 + 2 * torch.randn(n, channels, side, side, generator=draw)
    return x.contiguous(memory_format=torch.channels_last)


def both(channels: int, affine: bool = True, momentum: float | None = 0.1) -> tuple[BatchNorm2d, nn.BatchNorm2d]:
    ours, its = (cls(channels, affine=affine, momentum=momentum) for cls in (BatchNorm2d, nn.BatchNorm2d))
    if affine:
        with torch.no_grad():
            for layer in (ours, its):
                layer.weight.copy_(torch.linspace(-1, 2, channels))
                layer.bias.copy_(torch.linspace(1, 0, channels))
    return ours, its


LARGE = (75, 24, 16)  # images, channels, side: a map that is folded


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("shape", [LARGE, (300, 8, 12), (160, 12, 12), (129, 40, 8), (67, 17, 17)])
def test_values_gradients_and_statistics_are_those_of_torch(shape: tuple[int, int, int], affine: bool):
    ours, its = both(shape[1], affine)
    its = its.double()  # the sums are of thousands of numbers: the reference is exact
    x, y = maps(*shape).requires_grad_(), maps(*shape).double().requires_grad_()
    assert pays(x)
    g = maps(*shape, seed=1) - 3
    out, expected = ours(x), its(y)
    out.backward(g)
    expected.backward(g.double())
    assert torch.allclose(out.double(), expected, atol=1e-4)
    assert torch.allclose(x.grad.double(), y.grad, atol=1e-4)
    assert out.is_contiguous(memory_format=torch.channels_last)
    assert x.grad.is_contiguous(memory_format=torch.channels_last)
    for name, parameter in its.named_parameters():
        gradient = ours.get_parameter(name).grad.double()
        assert (gradient - parameter.grad).abs().max() < 1e-5 * x.numel() / shape[1], name
    assert torch.allclose(ours.running_mean.double(), its.running_mean, atol=1e-5)
    assert torch.allclose(ours.running_var.double(), its.running_var, rtol=1e-4)
    assert ours.num_batches_tracked == its.num_batches_tracked == 1


def test_the_mean_over_all_calls_where_momentum_is_none():
    ours, its = both(24, momentum=None)
    for seed in range(3):
        ours(maps(*LARGE, seed)), its(maps(*LARGE, seed))
    assert torch.allclose(ours.running_mean, its.running_mean, atol=1e-5)
    assert torch.allclose(ours.running_var, its.running_var, rtol=1e-4)


def test_no_trace_where_statistics_are_left_alone_and_none_in_evaluation_mode():
    ours, _ = both(24)
    ours.track_running_stats = False
    ours(maps(*LARGE))
    assert ours.running_mean.eq(0).all()
    assert ours.num_batches_tracked == 0
    ours.track_running_stats = True
    x = maps(*LARGE)
    assert torch.equal(
        ours.eval()(x), nn.functional.batch_norm(x, ours.running_mean, ours.running_var, ours.weight, ours.bias)
    )


def test_a_gradient_in_another_layout():
    ours, its = both(24)
    x, y = (maps(*LARGE).requires_grad_() for _ in range(2))
    g = maps(*LARGE, seed=1).contiguous()
    ours(x).backward(g), its(y).backward(g)
    assert torch.allclose(x.grad, y.grad, atol=1e-4)


def test_moments_by_hand():
    x = torch.tensor([[1.0, 10.0], [3.0, 10.0], [5.0, 10.0], [7.0, 30.0]]).view(1, 2, 2, 2).permute(0, 3, 1, 2)
    mean, variance = moments(x)
    assert mean.tolist() == [4.0, 15.0]
    assert variance.tolist() == [5.0, 75.0]


def test_running_statistics_by_hand():
    layer = BatchNorm2d(1)
    norm.track(layer, torch.tensor([4.0]), torch.tensor([6.0]), count=4)  # unbiased: 6 · 4 / 3
    assert (layer.running_mean.item(), layer.running_var.item()) == pytest.approx((0.4, 0.9 + 0.8))


def test_folded_rows_are_the_same_memory():
    x = maps(*LARGE)
    rows, k = folded(x)
    assert k * 24 == rows.shape[1] >= norm.ROW
    assert rows.shape[1] % norm.LINE == 0
    assert rows.data_ptr() == x.data_ptr()
    assert rows.numel() == x.numel()
    rows, k = folded(maps(3, 24, 5))  # an odd number of pixels cannot be shared out
    assert k == 1
    assert rows.shape == (75, 24)


@pytest.mark.parametrize(
    "x",
    [
        maps(75, 24, 4),  # small
        maps(75, 32, 16),  # whole cache lines, two vectors
        maps(*LARGE).contiguous(),  # channels-first
        maps(*LARGE).double(),
        torch.empty(75, 24, 16, 16, device="meta").contiguous(memory_format=torch.channels_last),
    ],
    ids=["small", "32 channels", "channels-first", "64 bits", "meta"],
)
def test_where_it_does_not_pay_torch_does_it(x: torch.Tensor, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(norm, "moments", never)
    layer = BatchNorm2d(x.shape[1], device=x.device, dtype=x.dtype)
    assert layer(x).shape == x.shape


def test_the_networks_have_it():
    C, G = NineConv((1, 16, 16), 2, width=8), Generator((1, 8, 8), 2, width=8, z_dim=4)
    for network in (C, G):
        layers = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
        assert layers
        assert all(isinstance(layer, BatchNorm2d) for layer in layers)
