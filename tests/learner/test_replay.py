"""Which images are replayed into C, and when."""

import pytest
import torch
from torch import Tensor

from conftest import make_learner
from midway import FIRST, SECOND, deceive, drawn, generated, ready
from ordisco.learner.batch import Pairs
from ordisco.learner.learner import Learner
from ordisco.learner.replay import replay_ramp, replayed

pytestmark = pytest.mark.usefixtures("gradients_stay")


def again(learner: Learner, fakes: Pairs | None = None, progress: float = 1.0) -> Pairs | None:
    return replayed(learner.setup, learner.state, fakes, progress)


def test_online_replay_is_of_the_images_just_generated():
    learner = ready()
    images = drawn(learner)
    assert torch.equal(images.again.x, images.generated.x.detach())
    assert torch.equal(images.again.y, images.generated.y)


@pytest.mark.parametrize(("name", "kept"), [("offline-all", 2), ("offline-last", 1)])
def test_offline_replay_is_of_saved_generators(name: str, kept: int):
    learner = make_learner(name, num_classes=3)
    learner.begin(FIRST)
    assert again(learner) is None  # no generator saved yet
    learner.finish()
    learner.begin(SECOND)
    learner.finish()
    learner.begin(FIRST)
    assert len(learner.state.memories.generators) == kept
    for parameter in learner.state.nets.gan.G.module.parameters():
        parameter.data.fill_(float("nan"))  # it is not the living one
    x, y = again(learner)
    assert x.isfinite().all()
    assert x.shape == (5, 1, 8, 8)
    assert y.max() < 3


def test_replay_by_the_moving_average_of_g():
    learner = ready(g_ema=0.9)
    gan = learner.state.nets.gan
    assert gan.G_mean is not None
    gan.G_mean.flat.theta.add_(1.0)
    buffers = gan.G_mean.flat.buffers.clone()
    images = drawn(learner)
    assert images.again.x.shape == images.generated.x.shape
    assert not torch.equal(images.again.x, images.generated.x)
    assert not images.again.x.requires_grad
    assert torch.equal(gan.G_mean.flat.buffers, buffers)
    before = gan.G_mean.flat.theta.clone()
    learner.state.total_steps = 1000
    deceive(learner, images)
    torch.testing.assert_close(gan.G_mean.flat.theta, 0.9 * before + 0.1 * gan.G.flat.theta)
    sample = learner.sample(torch.tensor([0, 1]), seed=1)
    gan.G.flat.theta.zero_()
    assert torch.equal(learner.sample(torch.tensor([0, 1]), seed=1), sample)  # samples are those of the average


@pytest.mark.parametrize(
    ("restart", "g_ema", "same"), [("average", 0.9, True), ("none", 0.9, False), ("average", 0.0, False)]
)
def test_g_begins_an_increment_as_its_moving_average(
    restart: str, g_ema: float, same: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.undo()  # with the optimiser's steps
    learner = make_learner(num_classes=3, g_restart=restart, g_ema=g_ema)
    learner.learn(FIRST)
    gan, kept = learner.state.nets.gan, learner.bytes_kept()
    assert ("G" in kept) == (not same)
    assert kept.get("G_mean", kept.get("G")) == gan.G.flat.theta.nbytes + gan.G.flat.buffers.nbytes
    if gan.G_mean is not None:
        for mine, its in ((gan.G.flat.theta, gan.G_mean.flat.theta), (gan.G.flat.buffers, gan.G_mean.flat.buffers)):
            assert torch.equal(mine, its) == same
            assert mine.data_ptr() != its.data_ptr()
    learner.learn(SECOND)
    if gan.G_mean is not None:
        assert torch.equal(gan.G.flat.theta, gan.G_mean.flat.theta) == same


def test_the_moving_average_of_g_replays_by_the_statistics_of_the_mini_batch():
    learner = ready(g_ema=0.9)
    fakes = generated(learner)

    def seeded() -> Tensor:
        learner.setup.seed_step(0, "gan")
        return again(learner, fakes).x

    before = seeded()
    assert before.abs().mean() < 0.9  # not saturated
    learner.state.nets.gan.G_mean.flat.buffers.add_(1.0)
    assert torch.equal(seeded(), before)


@pytest.mark.parametrize("g_ema", [0.0, 0.9])
def test_new_classes_are_not_replayed_before_their_time(g_ema: float):
    learner = ready("ordisco", replay_new=0.5, g_ema=g_ema, batch_generated=64)
    learner.state.classes.before = 1  # of 3
    fakes = generated(learner)
    assert again(learner, fakes, 0.4).y.unique().tolist() == [0]
    assert again(learner, fakes, 0.5).y.unique().tolist() == [0, 1, 2]
    learner.state.classes.before = 0
    assert again(learner, fakes, 0.4) is None
    learner.state.classes.before = 3  # no class is new: New Instance
    assert again(learner, fakes, 0.4).y.unique().tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("progress", "start", "ramp", "expected"),
    [(0.0, 0.0, 0.25, 0.0), (0.1, 0.0, 0.25, 0.4), (0.5, 0.0, 0.25, 1.0), (0.2, 0.3, 0.0, 0.0), (0.3, 0.3, 0.0, 1.0)],
)
def test_the_ramp_of_replay(progress: float, start: float, ramp: float, expected: float):
    assert replay_ramp(progress, start, ramp) == pytest.approx(expected)
