"""Dropout by uniform numbers: what it leaves, scales, and how it lies in memory."""

import torch

from ordisco.nets.dropout import Dropout, mask
from ordisco.nets.layout import channels_last


def test_it_zeroes_the_share_p_and_scales_the_rest_and_the_gradient_alike():
    torch.manual_seed(0)
    x = torch.ones(100, 100, requires_grad=True)
    out = Dropout(0.2)(x)
    out.sum().backward()
    kept = out.detach() > 0
    assert abs(kept.float().mean().item() - 0.8) < 0.015
    assert torch.equal(out.detach(), kept / 0.8)
    assert torch.equal(x.grad, out.detach())


def test_it_does_nothing_in_evaluation_mode_or_without_a_share():
    x = torch.randn(4, 3)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


def test_the_mask_has_the_layout_and_type_of_what_it_is_for():
    x = channels_last(torch.randn(2, 3, 4, 4)).bfloat16()
    assert mask(x, 0.5).stride() == x.stride()
    assert mask(x, 0.5).dtype == torch.bfloat16
    assert set(mask(x, 0.5).flatten().tolist()) == {0.0, 2.0}
