"""Soft targets of replayed images and trust in them, by hand."""

import pytest
import torch

from ordisco.maths.distil import soft_targets, trust


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, [[0.7, 0.3, 0.0], [0.0, 0.0, 1.0], [0.4, 0.6, 0.0]]),
        (0.5, [[0.85, 0.15, 0.0], [0.0, 0.0, 1.0], [0.2, 0.8, 0.0]]),
        (1.0, [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    ],
)
def test_old_classes_are_softened_and_new_ones_are_not(share: float, expected: list[list[float]]):
    p_old = torch.tensor([[0.7, 0.3], [0.5, 0.5], [0.4, 0.6]])  # the second image is of the new class
    found = soft_targets(torch.tensor([0, 2, 1]), p_old, 3, share)
    torch.testing.assert_close(found, torch.tensor(expected))


def test_where_no_class_is_new_all_are_softened():
    p_old = torch.tensor([[0.7, 0.3], [0.1, 0.9]])
    assert torch.equal(soft_targets(torch.tensor([1, 1]), p_old, 2, 0.0), p_old)


def test_trust_is_the_probability_of_the_own_class_over_the_mean():
    p = torch.tensor([[0.8, 0.2], [0.6, 0.4], [0.2, 0.8]], requires_grad=True)
    weights = trust(p, torch.tensor([0, 1, 0]))  # 0.8, 0.4, 0.2: the mean is 1.4 / 3
    torch.testing.assert_close(weights, torch.tensor([2.4, 1.2, 0.6]) / 1.4)
    assert weights.mean().item() == pytest.approx(1)
    assert not weights.requires_grad
    assert trust(torch.tensor([[1.0, 0.0]]), torch.tensor([1])).tolist() == [0]  # nothing to divide by
