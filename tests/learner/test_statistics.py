"""Batch-norm statistics of C′ and of the G that draws samples: gathered at their own weights, for every method."""

import pytest
import torch
from torch import nn

from conftest import increment_of, learn_without_checks, make_learner
from ordisco.learner.pools import Pools
from ordisco.learner.statistics import mixture
from ordisco.settings.methods import METHODS

TASK = increment_of([0, 1, 2] * 2, [0, 1, 2] * 4, seed=1)


def norms(module: nn.Module) -> list[nn.BatchNorm2d]:
    return [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]


@pytest.mark.parametrize("changes", [{}, {"unlabeled_loss": "pi-model"}, {"unlabeled_loss": "none"}])
@pytest.mark.parametrize("name", ["st", "smb", "jt", "ordisco", "ewc-sl", "smb+umb+uc"])
def test_after_an_increment_the_teachers_statistics_are_those_of_its_own_weights(name: str, changes: dict[str, str]):
    learner = make_learner(name, num_classes=3, steps=8, c_lr=0.02, statistics=6, **changes)
    learner.begin(TASK)
    learn_without_checks(learner)
    teacher = learner.state.nets.teacher.module
    learner.state.nets.teacher.flat.buffers.fill_(123.0)  # whatever was there before counts nothing
    learner.gather_statistics()
    first, expected = norms(teacher)[0], []
    seen: list[torch.Tensor] = []
    handle = first.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0]))
    with learner.random("statistics", learner.total_steps), torch.no_grad():
        for _ in range(6):
            x = mixture(learner.setup, learner.state, learner.pools)
            teacher.eval()(x)
            expected.append(seen[-1].mean((0, 2, 3)))
    handle.remove()
    torch.testing.assert_close(first.running_mean, torch.stack(expected).mean(0))
    sizes = learner.settings.step
    generated = sizes.batch_generated if name == "ordisco" else 0
    assert len(x) == sizes.batch_labeled + sizes.batch_unlabeled + generated


def test_labelled_images_have_their_natural_share(monkeypatch: pytest.MonkeyPatch):
    learner = make_learner("smb", num_classes=3, batch_labeled=50, batch_unlabeled=10)
    learner.begin(TASK)  # 6 labelled images, 12 others
    drawn: list[tuple[int, int]] = []
    draw = Pools.draw
    monkeypatch.setattr(Pools, "draw", lambda self, *sizes: drawn.append(sizes) or draw(self, *sizes))
    assert len(mixture(learner.setup, learner.state, learner.pools)) == 60
    learner.begin(increment_of([0, 1, 2]))  # no other images: all are labelled
    assert len(mixture(learner.setup, learner.state, learner.pools)) == 60
    assert drawn == [(20, 40), (60, 0)]


def test_finish_gathers_and_prediction_within_an_increment_can(monkeypatch: pytest.MonkeyPatch):
    learner = make_learner("smb", num_classes=3, steps=4)
    learner.begin(TASK)
    learner.step()
    before = learner.state.nets.teacher.flat.buffers.clone()
    learner.gather_statistics()
    within = learner.state.nets.teacher.flat.buffers.clone()
    assert not torch.equal(within, before)
    while not learner.done:
        learner.step()
    learner.finish()
    assert not torch.equal(learner.state.nets.teacher.flat.buffers, within)


@pytest.mark.parametrize("g_ema", [0.0, 0.9])
@pytest.mark.parametrize("gan_net", ["residual", "dcgan"])
def test_samples_are_drawn_by_statistics_of_the_generators_own_weights(g_ema: float, gan_net: str):
    learner = make_learner("ordisco", num_classes=3, steps=6, g_ema=g_ema, gan_net=gan_net, statistics=64)
    learner.learn(TASK)
    G, gen = learner.state.nets.gan.sampler.module, torch.Generator().manual_seed(1)
    z, y = torch.randn(600, 4, generator=gen), torch.arange(600) % 3
    with torch.no_grad():
        by_running = G.eval()(z, y)
        by_batch = G.train()(z, y)
    G.eval()
    # a large mini-batch has the statistics of many small ones, but for chance
    assert (by_running - by_batch).abs().mean() < 0.05 * by_batch.std()


def test_every_method_predicts_after_one_step():
    for name in METHODS:
        learner = make_learner(name, num_classes=3, steps=1, umb_size=5, statistics=2)
        learner.learn(TASK)
        assert bool(torch.isfinite(learner.scores(TASK.images)).all())
        assert not torch.equal(
            learner.state.nets.teacher.flat.buffers, make_learner(name, num_classes=3).state.nets.teacher.flat.buffers
        )


def test_between_two_mini_batches_memory_can_be_given_back():
    learner, calls = make_learner("smb", num_classes=3, statistics=5), []
    learner.begin(TASK)
    learner.finish(lambda: calls.append(1))
    assert len(calls) == 5
