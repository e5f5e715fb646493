"""Weights in 16 and in 8 bits: how far off, how many bytes, and that what was rounded stays as it is."""

from __future__ import annotations

import pytest
import torch

from ordisco.maths.rounding import BLOCK, blocks_of, bytes_of, from_eight, in_eight, in_half


def test_sixteen_bits_are_as_near_as_promised():
    x = torch.cat([torch.logspace(-12, 4.8, 500), -torch.logspace(-12, 4.8, 500), torch.zeros(1)]).float()
    error = (in_half(x).float() - x).abs()
    assert (error <= 2**-11 * x.abs() + 2**-25).all()
    assert error.max() > 0
    assert in_half(torch.tensor([1e9, -1e9])).tolist() == [65504, -65504]  # finite


def test_eight_bits_by_hand():
    """The largest of each 64 is code 127; a block of its own has a scale of its own."""
    x = torch.zeros(BLOCK + 2)
    x[0], x[1], x[2] = 254.0, -1.0, 3.0
    x[BLOCK], x[BLOCK + 1] = 0.5, -0.25
    codes, scales = in_eight(x)
    assert codes.dtype == torch.int8
    assert codes[:3].tolist() == [127, 0, 2]  # −0.5 and 1.5 of a scale of 2 are rounded to even
    assert codes[BLOCK:].tolist() == [127, -64]
    assert scales.tolist() == [2.0, 129 * 2.0**-15]  # 0.5 / 127 in bfloat16
    assert from_eight(codes, scales)[0] == 254.0


@pytest.mark.parametrize("size", [1, BLOCK, 5 * BLOCK + 7])
@pytest.mark.parametrize("magnitude", [1e-30, 1e-6, 1.0, 1e6])
def test_eight_bits_are_off_by_half_a_scale_and_stay(size, magnitude):
    x = torch.randn(size, generator=torch.Generator().manual_seed(size)) * magnitude
    codes, scales = in_eight(x)
    back = from_eight(codes, scales)
    assert back.shape == x.shape
    largest = torch.nn.functional.pad(x, (0, -size % BLOCK)).view(-1, BLOCK).abs().amax(1)
    off = torch.nn.functional.pad(back - x, (0, -size % BLOCK)).view(-1, BLOCK).abs().amax(1)
    assert bool((off <= largest / 127 * 0.76).all())  # half a scale, and a quarter where the scale was rounded down
    again = in_eight(back)
    assert torch.equal(again[0], codes)
    assert torch.equal(again[1], scales)
    assert codes.nbytes + scales.nbytes == bytes_of(size, 8)
    assert len(scales) == blocks_of(size)


def test_a_block_of_zeros_stays_zero():
    codes, scales = in_eight(torch.zeros(BLOCK))
    assert from_eight(codes, scales).tolist() == [0.0] * BLOCK
    assert bool(torch.isfinite(scales).all())
