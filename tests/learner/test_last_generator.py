"""Replay of the last increment's G: its images teach C and D, and the copy is there only meanwhile."""

import copy

import pytest
import torch

from conftest import increment_of, make_learner
from midway import discriminate, drawn, ready, touched
from ordisco.errors import UsageError
from ordisco.learner.replay import replayed
from ordisco.learner.step import real_pairs
from ordisco.streams.stream import Stream


@pytest.mark.usefixtures("gradients_stay")
def test_c_and_d_learn_from_images_of_old_classes_by_the_last_g():
    learner = ready("ordisco-last", increments=2)
    learner.state.classes.before = 2  # of 3
    last, images = learner.state.memories.last_G, drawn(learner)
    last.theta.add_(torch.randn_like(last.theta), alpha=0.1)  # it is not the G of now
    torch.manual_seed(3)
    again = replayed(learner.setup, learner.state, images.generated, 1.0)
    torch.manual_seed(3)
    y = torch.randint(2, (5,))
    z = torch.randn(5, learner.settings.gan.z_dim)
    assert torch.equal(again.y, y)
    torch.testing.assert_close(again.x, last.module(z, y))  # by its own statistics
    real = real_pairs(learner.setup, images.batch, again)
    assert torch.equal(real.x, torch.cat([images.x_l, again.x]))
    assert torch.equal(real.y, torch.cat([images.y_l, y]))
    discriminate(learner, images._replace(again=again))
    assert touched(learner) == {"D"}
    assert not last.grad.any()


@pytest.mark.parametrize("name", ["ordisco-last", "ordisco+"])
def test_the_last_g_is_there_while_an_increment_is_under_way(name: str, tasks: Stream):
    learner = make_learner(name, num_classes=2, g_ema=0.5, steps=2)
    memories = learner.state.memories
    learner.begin(tasks[0])
    assert memories.last_G is None  # there is none before the first increment
    learner.learn(tasks[0])
    before = copy.deepcopy(learner.state.nets.gan.sampler.module).eval()
    learner.begin(tasks[1])  # the networks grow
    z, y = torch.randn(4, learner.settings.gan.z_dim), torch.tensor([0, 1, 1, 0])
    with learner.random("test"):
        learner.step()
    torch.testing.assert_close(memories.last_G.module(z, y), before(z, y))
    sampler = learner.state.nets.gan.sampler.flat
    assert not torch.equal(memories.last_G.theta, sampler.theta)
    assert learner.bytes_kept()["last_G"] == sampler.theta.nbytes + sampler.buffers.nbytes
    learner.finish()
    assert memories.last_G is None
    assert "last_G" not in learner.bytes_kept()  # nothing more from one increment to the next


def test_without_images_old_classes_are_held_by_the_last_g_alone(tasks: Stream):
    """No image stays, labelled or not; C and D still learn from pairs of old classes, which G draws."""
    learner = make_learner("ordisco-no-images", num_classes=2, g_ema=0.5, steps=2)
    learner.learn(tasks[0])
    kept = learner.bytes_kept()
    assert (kept["labeled"], kept["unlabeled"]) == (0, 0)
    assert not any("images" in name for name in learner.saved()[0])
    learner.begin(tasks[1])
    assert set(learner.pools.slots.tolist()) == {2, 3}  # of the labelled images there are
    with learner.random("test"):
        again = replayed(learner.setup, learner.state, None, 1.0)
        assert set(again.y.tolist()) <= {0, 1}
        learner.step()
    learner.finish()
    assert len(learner.state.classes) == 4
    assert learner.bytes_kept()["labeled"] == 0


@pytest.mark.parametrize("name", ["ordisco", "smb"])
def test_where_the_last_g_is_not_replayed_nothing_is_copied(name: str):
    learner = make_learner(name, num_classes=2, steps=1)
    learner.learn(increment_of([0, 1], [0, 1]))
    learner.begin(increment_of([0, 1], [0, 1], seed=1))
    assert learner.state.memories.last_G is None


def test_a_d_that_begins_anew_is_not_kept(tasks: Stream):
    learner = make_learner("ordisco-last", num_classes=2, d_restart="fresh", steps=2)
    learner.learn(tasks[0])
    assert "D" not in learner.bytes_kept()
    assert not any(name.startswith("D.") for name in learner.saved()[0])
    before = learner.state.nets.gan.D
    learner.begin(tasks[1])
    D = learner.state.nets.gan.D
    assert D is not before
    assert D.flat.theta.shape == before.flat.theta.shape  # the old one has grown, too
    assert not torch.equal(D.flat.theta, before.flat.theta)
    again = make_learner("ordisco-last", num_classes=2, d_restart="fresh", steps=2)
    again.learn(tasks[0])
    again.begin(tasks[1])
    assert torch.equal(again.state.nets.gan.D.flat.theta, D.flat.theta)  # by the seed alone
    assert {name for name in learner.saved()[0] if name.startswith("D.")} >= {"D.theta", "D.buffers"}


def test_a_d_that_begins_anew_cannot_be_held():
    with pytest.raises(
        UsageError, match=r"^d_restart = 'fresh' is not allowed with ordisco: Reg holds D to what it was"
    ):
        make_learner("ordisco", d_restart="fresh")
