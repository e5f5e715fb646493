"""LeCam regularisation by hand."""

import pytest
import torch

from ordisco.maths.lecam import DECAY, averages, followed, lecam


def test_the_term_by_hand():
    real, fake = torch.tensor([2.0, -3.0, 1.0]), torch.tensor([0.0, 1.5])
    # α_F = −1, α_R = 1: real 3², 0 (below α_F), 2² by 0.5, 0.25, 0.25; fake 1², 0 (above α_R)
    found = lecam(real, torch.tensor([0.5, 0.25, 0.25]), fake, torch.tensor(1.0), torch.tensor(-1.0))
    assert found.item() == pytest.approx(0.5 * 9 + 0.25 * 4 + 0.5 * 1)


def test_the_averages_begin_with_the_first_step_and_then_follow():
    sums = torch.zeros(3)
    sums = followed(sums, torch.tensor(4.0), torch.tensor(-2.0))
    assert [average.item() for average in averages(sums)] == [4, -2]
    sums = followed(sums, torch.tensor(1.0), torch.tensor(0.0))
    assert [average.item() for average in averages(sums)] == pytest.approx(
        [(4 * DECAY + 1) / (DECAY + 1), -2 * DECAY / (DECAY + 1)]
    )


def test_no_gradient_goes_into_the_averages():
    real = torch.tensor([1.0, 2.0], requires_grad=True)
    assert not followed(torch.zeros(3), real.mean(), real.mean()).requires_grad
