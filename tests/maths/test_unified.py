"""The Unified Classifier's parts: values by hand."""

import math

import pytest
import torch
from torch import nn

from ordisco.maths.unified import imprinted, less_forget, less_forget_weight, margin_ranking
from ordisco.nets.cosine import CosineHead


def test_scores_are_scaled_cosines():
    head = CosineHead(2, 2, scale=4.0)
    head.weight.data = torch.tensor([[3.0, 0.0], [1.0, 1.0]])
    features = torch.tensor([[10.0, 0.0], [0.0, 0.1]])
    cosines = torch.tensor([[1.0, math.sqrt(0.5)], [0.0, math.sqrt(0.5)]])
    torch.testing.assert_close(head.cosines(features), cosines)
    torch.testing.assert_close(head(features), 4 * cosines)


def test_no_class_gains_by_a_longer_weight():
    head, features = CosineHead(5, 3), torch.randn(4, 5)
    before = head(features)
    head.weight.data[1] *= 50
    torch.testing.assert_close(head(features), before)


def test_scale_is_learned():
    head = CosineHead(5, 3)
    head(torch.randn(4, 5)).square().sum().backward()
    assert head.scale.grad is not None
    assert head.scale.grad.item() != 0
    assert {name for name, _ in head.named_parameters()} == {"weight", "scale"}


def test_growth_keeps_old_scores():
    head, features = CosineHead(5, 3), torch.randn(4, 5)
    before, rows = head(features).detach(), head.weight.detach().clone()
    head.grow(7)
    after = head(features)
    assert after.shape == (4, 7)
    torch.testing.assert_close(after[:, :3], before)
    assert torch.equal(head.weight[:3], rows)
    assert isinstance(head.weight, nn.Parameter)
    assert head.weight.requires_grad
    torch.testing.assert_close(head.weight.norm(dim=1), torch.ones(7))


def test_less_forget_is_one_minus_the_cosine():
    old = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], requires_grad=True)
    new = torch.tensor([[5.0, 0.0], [0.0, 2.0], [-1.0, 0.0]], requires_grad=True)
    loss = less_forget(old, new)
    torch.testing.assert_close(loss.tolist(), [0.0, 1.0, 2.0])
    loss.sum().backward()
    assert old.grad is None
    assert new.grad is not None
    torch.testing.assert_close(new.grad[1], torch.tensor([-0.5, 0.0]))


def test_less_forget_weighs_more_the_more_there_is_to_forget():
    assert less_forget_weight(5.0, num_old=8, num_new=2) == pytest.approx(10.0)
    assert less_forget_weight(5.0, num_old=2, num_new=2) == pytest.approx(5.0)
    assert less_forget_weight(5.0, num_old=10, num_new=0) == 5.0
    assert less_forget_weight(5.0, num_old=0, num_new=2) == 0.0


def test_margin_ranking_by_hand():
    # Two old classes, three new ones.
    cosines = torch.tensor(
        [
            [0.9, 0.0, 0.5, 0.3, 0.95],  # own 0.9; nearest new 0.95, 0.5: 0.55 + 0.1
            [0.0, 0.9, 0.1, 0.2, 0.3],  # far enough from all new ones
            [0.8, 0.8, 0.1, 0.9, 0.9],  # of a new class
            [0.8, 0.8, 0.9, 0.9, 0.9],  # unlabelled
        ],
        requires_grad=True,
    )
    loss = margin_ranking(cosines, torch.tensor([0, 1, 2, -1]), num_old=2)
    assert loss.item() == pytest.approx(0.65 / 2)  # the mean over the two images of old classes
    loss.backward()
    assert cosines.grad is not None
    assert cosines.grad[0].tolist() == [-1.0, 0.0, 0.5, 0.0, 0.5]
    assert cosines.grad[1:].abs().sum() == 0


def test_margin_ranking_with_few_or_no_new_classes():
    cosines = torch.tensor([[0.2, 0.1, 0.5]])
    one = margin_ranking(cosines, torch.tensor([0]), num_old=2)
    assert one.item() == pytest.approx(0.5 - 0.2 + 0.5)
    assert margin_ranking(cosines, torch.tensor([0]), num_old=3).item() == 0.0
    assert margin_ranking(cosines, torch.tensor([0]), num_old=0).item() == 0.0


def test_a_new_class_begins_at_the_mean_direction_of_its_features():
    features = torch.tensor([[2.0, 0.0], [0.0, 0.5]])  # directions (1, 0) and (0, 1)
    old = torch.tensor([[3.0, 4.0], [0.0, 1.0]])  # lengths 5 and 1
    torch.testing.assert_close(imprinted(features, old), torch.tensor([1.0, 1.0]) / 2**0.5 * 3)
