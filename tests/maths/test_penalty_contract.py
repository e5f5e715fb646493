"""What every penalty promises, those on C and D's stabiliser alike, through the interface that a step uses."""

from collections.abc import Callable
from functools import partial
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.data.pixels import normalize
from ordisco.maths.penalties import Evidence, Penalty, make_penalty
from ordisco.maths.stabilize import Stabilizer
from ordisco.nets.flat import Flat
from ordisco.nets.network import Layout
from ordisco.settings.methods import PenaltyName

ON_C = [name for name in get_args(PenaltyName) if name != "none"]
MAKE: dict[str, Callable[[float], Penalty]] = {name: partial(make_penalty, name, "sl+ul") for name in ON_C}
MAKE["stabilizer"] = Stabilizer
MAKE["stabilizer, normalised"] = partial(Stabilizer, normalised=True)
WEIGHT = 0.5

every_penalty = pytest.mark.parametrize("name", MAKE)


def network(classes: int = 3) -> Flat:
    torch.manual_seed(0)
    return Flat(nn.Sequential(nn.Flatten(), nn.Linear(4, classes)))


def evidence(flat: Flat, seed: int, classes: int = 3) -> Evidence:
    images = torch.randint(0, 256, (6, 1, 2, 2), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)
    return Evidence(flat.module, images, torch.arange(6) % classes, classes, chunk=4)


def train(penalty: Penalty, flat: Flat, shown: Evidence, steps: int) -> None:
    """Gradient descent without the penalty, in place as an optimiser does it."""
    for _ in range(steps):
        loss = F.cross_entropy(flat.module(normalize(shown.images)), shown.slots)
        gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(flat.module.parameters()))])
        penalty.before_step(flat.theta, gradient)
        flat.theta.sub_(0.3 * gradient)
        gradient.zero_()
        penalty.after_step(flat.theta)


def learn(penalty: Penalty, flat: Flat, seed: int) -> None:
    """One increment."""
    shown = evidence(flat, seed)
    penalty.begin(flat.theta)
    train(penalty, flat, shown, 3)
    penalty.end(flat.theta, shown)


def learned(name: str, increments: int = 1, weight: float = WEIGHT) -> tuple[Penalty, Flat]:
    penalty, flat = MAKE[name](weight), network()
    for seed in range(increments):
        learn(penalty, flat, seed)
    return penalty, flat


def gradient(penalty: Penalty, theta: Tensor) -> Tensor:
    """What the penalty adds."""
    added = penalty.gradient(theta)
    return torch.zeros_like(theta) if added is None else added


@every_penalty
def test_nothing_is_held_before_the_first_increment_has_ended(name: str):
    penalty, flat = MAKE[name](WEIGHT), network()
    for begin in (False, True):
        if begin:
            penalty.begin(flat.theta)
            train(penalty, flat, evidence(flat, 0), 3)
        assert not penalty.holds
        assert penalty.value(flat.theta + 1).item() == 0
        assert not gradient(penalty, flat.theta + 1).any()
    assert penalty.count == 0


@every_penalty
@pytest.mark.parametrize("increments", [1, 2])
def test_zero_at_theta_star_and_positive_away_from_it(name: str, increments: int):
    penalty, flat = learned(name, increments)
    assert penalty.count == increments
    assert torch.equal(penalty.vectors["anchor"], flat.theta)
    assert penalty.vectors["importance"].min() >= 0
    assert penalty.vectors["importance"].shape == flat.theta.shape
    assert penalty.value(flat.theta).item() == 0
    assert not gradient(penalty, flat.theta).any()
    flat.theta.add_(torch.randn_like(flat.theta))  # in place: θ* is a copy
    moved = (flat.theta - penalty.vectors["anchor"]).square()
    assert penalty.value(flat.theta) > 0
    importance = penalty.vectors["importance"]
    if "normalised" in name:
        importance = importance / importance.mean()
    torch.testing.assert_close(penalty.value(flat.theta), WEIGHT * (importance * moved).sum())


@every_penalty
def test_its_gradient_is_that_of_its_value(name: str):
    penalty, flat = learned(name, 2)
    theta = (flat.theta + torch.randn_like(flat.theta)).requires_grad_()
    (expected,) = torch.autograd.grad(penalty.value(theta), theta)
    assert expected.any()
    torch.testing.assert_close(gradient(penalty, theta.detach()), expected)


@every_penalty
def test_a_weight_of_0_holds_nothing(name: str):
    penalty, flat = learned(name, weight=0.0)
    assert not penalty.holds
    assert penalty.value(flat.theta + 1).item() == 0
    assert not gradient(penalty, flat.theta + 1).any()


@every_penalty
def test_an_increment_is_learned_without_a_trace_in_the_network(name: str):
    penalty, flat = learned(name)
    before, shown = flat.theta.clone(), evidence(flat, 1)
    flat.module.train()
    penalty.begin(flat.theta)
    penalty.end(flat.theta, shown)
    assert torch.equal(flat.theta, before)
    assert not flat.grad.any()
    assert flat.module.training


@every_penalty
@pytest.mark.parametrize("place", ["new", "between", "in the middle"])
def test_a_saved_penalty_goes_on_bit_for_bit(name: str, place: str):
    first, flat = learned(name, 0 if place == "new" else 1)
    shown = evidence(flat, 5)
    if place == "in the middle":
        first.begin(flat.theta)
        train(first, flat, shown, 2)
    state = {key: tensor.clone() for key, tensor in first.state().items()}
    kept = {key: tensor.clone() for key, tensor in state.items()}
    second = MAKE[name](WEIGHT)
    second.load(state)
    assert second.state().keys() == state.keys()
    assert second.count == first.count
    assert torch.equal(second.value(flat.theta + 1), first.value(flat.theta + 1))
    start = flat.theta.clone()
    for penalty in (first, second):
        flat.theta.copy_(start)
        if place != "in the middle":
            penalty.begin(flat.theta)
        train(penalty, flat, shown, 2)
        penalty.end(flat.theta, shown)
    mine, its = first.state(), second.state()
    assert mine.keys() == its.keys()
    assert all(torch.equal(mine[key], its[key]) for key in mine)
    assert second.value(flat.theta + 1) > 0
    assert all(torch.equal(state[key], kept[key]) for key in state)  # it went on with copies


@every_penalty
def test_loading_takes_copies_and_forgets_what_was_there(name: str):
    penalty, _ = learned(name, 2)
    state = penalty.state()
    other = MAKE[name](WEIGHT)
    other.load(state)
    for vector in other.vectors.values():
        vector.add_(1)
    assert all(not torch.equal(other.vectors[key], penalty.vectors[key]) for key in penalty.vectors)
    other.load(MAKE[name](WEIGHT).state())
    assert not other.holds
    assert other.count == 0


@every_penalty
def test_growth_keeps_old_entries_and_gives_new_ones_no_importance(name: str):
    penalty, small = learned(name)
    theta = small.theta + 1
    value, added = penalty.value(theta), gradient(penalty, theta)
    penalty.begin(small.theta)  # SI has vectors of its own from here on
    train(penalty, small, evidence(small, 1), 1)
    before = {key: vector.clone() for key, vector in penalty.vectors.items()}
    large = network(5)
    layout = Layout(*([p.shape for p in flat.module.parameters()] for flat in (small, large)))
    penalty.grow(layout.relay)
    assert penalty.vectors.keys() == before.keys()
    for key, vector in penalty.vectors.items():
        weight, bias = vector[:20].view(5, 4), vector[20:]
        assert torch.equal(weight[:3].flatten(), before[key][:12])
        assert torch.equal(bias[:3], before[key][12:])
        assert not weight[3:].any()
        assert not bias[3:].any()
    grown = torch.cat([theta[:12], torch.randn(8), theta[12:], torch.randn(2)])  # new entries wherever they like
    torch.testing.assert_close(penalty.value(grown), value)
    found = gradient(penalty, grown)
    torch.testing.assert_close(torch.cat([found[:12], found[20:23]]), added)
    assert not found[12:20].any()
    assert not found[23:].any()
    train(penalty, large, evidence(large, 2, classes=5), 1)
    penalty.end(large.theta, evidence(large, 2, classes=5))
    assert torch.equal(penalty.vectors["anchor"], large.theta)


@every_penalty
def test_it_keeps_two_vectors_between_increments(name: str):
    penalty, flat = learned(name, 2)
    assert penalty.vectors.keys() == {"anchor", "importance"}
    assert sum(vector.nbytes for vector in penalty.vectors.values()) == 2 * flat.theta.nbytes


@every_penalty
def test_it_names_the_vectors_that_it_keeps_on_the_way(name: str):
    penalty, flat = learned(name)
    penalty.begin(flat.theta)
    assert penalty.vectors.keys() - {"anchor", "importance"} == set(penalty.underway)
