"""Eqs. 8–10: the penalty on D, its running importance, and importance against a backward pass an image."""

import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from torch import Tensor

from conftest import blobs, make_learner
from ordisco.data.pixels import normalize
from ordisco.maths.penalties import Evidence, quadratic, quadratic_gradient, running_mean
from ordisco.maths.stabilize import Stabilizer
from ordisco.nets.discriminator import Discriminator
from ordisco.nets.flat import Flat
from ordisco.streams.stream import Stream


def test_eq_8_by_hand():
    theta, anchor, xi = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 2.0, 5.0]), torch.tensor([0.5, 9.0, 0.25])
    # 0.1 · (0.5·1² + 9·0² + 0.25·2²)
    assert quadratic(theta, anchor, xi, 0.1).item() == pytest.approx(0.15)
    assert quadratic(anchor, anchor, xi, 0.1).item() == 0
    # 2·0.1·ξ(θ − θ*)
    assert quadratic_gradient(theta, anchor, xi, 0.1).tolist() == pytest.approx([0.1, 0.0, -0.1])


def test_the_gradient_of_eq_8_is_that_of_autograd():
    torch.manual_seed(0)
    theta, anchor, xi = torch.randn(20, dtype=torch.float64), torch.randn(20).double(), torch.rand(20).double()
    theta.requires_grad_()
    (expected,) = torch.autograd.grad(quadratic(theta, anchor, xi, 0.3), theta)
    torch.testing.assert_close(quadratic_gradient(theta.detach(), anchor, xi, 0.3), expected)


@examples(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=8))
def test_eq_9_is_the_plain_mean_over_increments(values: list[float]):
    mean = torch.zeros(1, dtype=torch.float64)
    for b, value in enumerate(values, 1):
        mean = running_mean(mean, torch.tensor([value], dtype=torch.float64), b)
    assert mean.item() == pytest.approx(sum(values) / len(values))


def naive(D: Discriminator, images: Tensor, labels: Tensor) -> Tensor:
    """Eq. 10 read aloud: for each image a backward pass, the absolute value, then the mean."""
    total = torch.zeros(sum(p.numel() for p in D.parameters()))
    for image, label in zip(images, labels, strict=True):
        squared = D(normalize(image[None]))[0, label] ** 2
        gradients = torch.autograd.grad(squared, list(D.parameters()))
        total += torch.cat([g.flatten() for g in gradients]).abs()
    return total / len(images)


@pytest.mark.parametrize("chunk", [1, 3, 64])
@pytest.mark.parametrize("head", ["pool", "flat"])
def test_eq_10_equals_a_backward_pass_an_image(head: str, chunk: int):
    torch.manual_seed(1)
    D = Discriminator((1, 8, 8), 3, 3, 1, head)
    flat, images, labels = Flat(D), blobs([0, 1, 2, 3, 4, 5, 0], seed=0), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    before = flat.theta.clone(), flat.buffers.clone()
    xi = Stabilizer(1.0).importance(Evidence(D, images, labels, 3, chunk))
    torch.testing.assert_close(xi, naive(D, images, labels), rtol=1e-4, atol=1e-6)
    assert xi.shape == flat.theta.shape
    assert xi.min() >= 0
    assert not flat.grad.any()
    assert torch.equal(before[0], flat.theta)
    assert torch.equal(before[1], flat.buffers)


def test_eq_10_is_not_the_gradient_of_the_mean():
    torch.manual_seed(1)
    D = Discriminator((1, 8, 8), 2, 3, 1)
    images, labels = blobs([0, 1, 2, 3, 4, 5], seed=0), torch.tensor([0, 1, 1, 0, 0, 1])
    d = D(normalize(images)).gather(1, labels[:, None])
    gradients = torch.autograd.grad(d.square().mean(), list(D.parameters()))
    of_the_mean = torch.cat([g.flatten() for g in gradients]).abs()
    xi = Stabilizer(1.0).importance(Evidence(D, images, labels, 2, 8))
    assert (xi >= of_the_mean - 1e-5).all()
    assert xi.sum() > 1.05 * of_the_mean.sum()


def test_a_learner_keeps_the_mean_importance_and_the_last_d(instances: Stream):
    learner, measured = make_learner("ordisco"), []
    for increment in instances:
        learner.learn(increment)
        D, held = learner.state.nets.gan.D, learner.state.memories.penalty_on_D
        unlabeled = increment.unlabeled
        slots = learner.predict_slots(unlabeled)  # C′ has not changed since it was measured
        measured.append(naive(D.module, unlabeled, slots))
        assert torch.equal(held.vectors["anchor"], D.flat.theta)
        expected = torch.stack(measured).mean(0)
        torch.testing.assert_close(held.vectors["importance"], expected, rtol=1e-4, atol=1e-6)
    assert held.count == 3
    D.flat.theta.add_(1)
    assert not torch.equal(held.vectors["anchor"], D.flat.theta)  # a copy


def test_theta_star_moves_without_unlabelled_images_and_the_importance_stays():
    D = Flat(Discriminator((1, 8, 8), 2, 3, 1))
    images, nothing = blobs([0, 1, 2], seed=0), torch.zeros(0, dtype=torch.int64)
    stabilizer = Stabilizer(0.5)
    stabilizer.end(D.theta, Evidence(D.module, images[:0], nothing, 2, 8))
    assert torch.equal(stabilizer.vectors["anchor"], D.theta)
    assert stabilizer.count == 0
    D.theta.add_(1)
    assert not stabilizer.holds
    assert stabilizer.value(D.theta) == 0
    stabilizer.end(D.theta, Evidence(D.module, images, torch.tensor([0, 1, 0]), 2, 8))
    xi = stabilizer.vectors["importance"].clone()
    D.theta.add_(1)
    assert stabilizer.value(D.theta) > 0
    stabilizer.end(D.theta, Evidence(D.module, images[:0], nothing, 2, 8))
    assert torch.equal(stabilizer.vectors["anchor"], D.theta)
    assert torch.equal(stabilizer.vectors["importance"], xi)
    assert stabilizer.count == 1


def test_the_normalised_form_does_not_depend_on_the_size_of_xi():
    theta = torch.tensor([1.0, 2.0, 3.0])
    values = []
    for scale in (1e-4, 1.0, 50.0):
        stabilizer = Stabilizer(0.1, normalised=True)
        stabilizer.keep(torch.zeros(3), scale * torch.tensor([1.0, 2.0, 3.0]))
        values.append(stabilizer.value(theta).item())
    assert values == pytest.approx([0.1 * (0.5 * 1 + 1 * 4 + 1.5 * 9)] * 3)  # ξ / mean ξ = 0.5, 1, 1.5
    nothing = Stabilizer(0.1, normalised=True)
    nothing.keep(torch.zeros(3), torch.zeros(3))  # D that judged nothing: nothing is important
    assert nothing.value(theta) == 0
    paper = Stabilizer(0.1)
    paper.keep(torch.zeros(3), torch.tensor([1.0, 2.0, 3.0]))
    assert paper.value(theta).item() == pytest.approx(0.1 * (1 + 8 + 27))


@pytest.mark.parametrize("form", ["paper", "normalised"])
def test_the_settings_choose_the_form_of_xi(form: str):
    held = make_learner("ordisco", d_importance=form, d_penalty=0.25).state.memories.penalty_on_D
    assert isinstance(held, Stabilizer)
    assert (held.weight, held.normalised) == (0.25, form == "normalised")


# ---------------------------------------------------------------------- in half precision


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("normalised", [False, True])
def test_half_a_penalty_is_the_whole_one_up_to_rounding(size: float, normalised: bool):
    """Whatever the size of ξ, nothing underflows or overflows."""
    draw = torch.Generator().manual_seed(0)
    anchor, xi = torch.randn(200, generator=draw), size * torch.rand(200, generator=draw).pow(4)
    theta = anchor + torch.randn(200, generator=draw)
    whole, half = Stabilizer(0.1, normalised), Stabilizer(0.1, normalised, half=True)
    for penalty in (whole, half):
        penalty.keep(anchor, xi)
    kept = half.vectors["importance"].float() * half.scale
    assert ((kept - xi).abs() <= 2**-11 * xi + 2**-24 * xi.max() * 1.01).all()
    assert ((kept > 0) == (xi > 0)).all()
    assert half.value(theta).dtype == half.gradient(theta).dtype == torch.float32
    torch.testing.assert_close(half.value(theta), whole.value(theta), rtol=5e-3, atol=0)
    found, expected = half.gradient(theta), whole.gradient(theta)
    assert (found - expected).norm() < 5e-3 * expected.norm()
    assert (half.kept_bytes, whole.kept_bytes) == (2 * 200, 4 * 200)


def test_half_a_penalty_follows_eq_9_and_comes_back_from_a_file():
    half = Stabilizer(0.1, half=True)
    half.keep(torch.zeros(3), half.joined(torch.tensor([1.0, 4.0, 0.0])))
    half.keep(torch.ones(3), half.joined(torch.tensor([3.0, 2.0, 8.0])))
    torch.testing.assert_close(half.vectors["importance"].float() * half.scale, torch.tensor([2.0, 3.0, 4.0]))
    again = Stabilizer(0.1, half=True)
    again.load(half.state())
    theta = torch.tensor([2.0, 0.0, 1.0])
    assert again.value(theta) == half.value(theta) > 0
    assert (again.scale, again.count) == (4.0, 2)
    nothing = Stabilizer(0.1, half=True)
    nothing.keep(torch.zeros(3), torch.zeros(3))
    assert nothing.value(theta) == 0


def test_a_learner_keeps_half_the_bytes(instances: Stream):
    learner = make_learner("ordisco", kept_precision="16", steps=1)
    learner.learn(instances[0])
    assert learner.bytes_kept()["importance"] == learner.state.nets.gan.D.flat.theta.nbytes / 2
    learner.learn(instances[1])
    assert learner.state.memories.penalty_on_D.count == 2
