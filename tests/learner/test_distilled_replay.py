"""What C learns replayed images by, and how far: the old C′ is a copy, there only while an increment is under way."""

import copy

import pytest
import torch
import torch.nn.functional as F

from conftest import increment_of, make_learner
from midway import classify, drawn, flat_gradient, ready, taught, touched
from ordisco.learner.batch import Pairs
from ordisco.learner.distil import targets_of_replay
from ordisco.streams.stream import Stream


@pytest.mark.parametrize(("form", "share"), [("distilled", 0.0), ("both", 0.5)])
@pytest.mark.usefixtures("gradients_stay")
def test_the_gradient_of_distilled_replay(form: str, share: float):
    learner = ready(increments=2, replay_targets=form, unlabeled_loss="none")
    learner.state.classes.before = 2  # of 3
    C, images, old = learner.state.nets.C, drawn(learner), learner.state.memories.old_teacher
    x, y = images.again.x, torch.tensor([0, 1, 2, 2, 0])
    images = images._replace(again=Pairs(x, y))
    p = old.module(x)[:, :2].softmax(1)  # by its own statistics; of old classes alone
    hard = F.one_hot(y, 3).float()
    target = torch.where((y < 2)[:, None], share * hard + (1 - share) * F.pad(p, (0, 1)), hard)
    logits = C.module(torch.cat([images.x_l, x]))[:, :3]
    labeled, replayed = logits.split([len(images.x_l), len(x)])
    loss = F.cross_entropy(labeled, images.y_l) - 0.4 * (target * replayed.log_softmax(1)).sum(1).mean()
    expected = flat_gradient(loss, C)
    classify(learner, images, replay=0.4)
    torch.testing.assert_close(C.flat.grad, expected, rtol=1e-4, atol=1e-6)
    assert touched(learner) == {"C"}
    assert not old.grad.any()


@pytest.mark.parametrize("name", ["ordisco", "offline-last"])
def test_the_old_teacher_is_the_last_one_while_an_increment_is_under_way(name: str, tasks: Stream):
    learner = make_learner(name, num_classes=2, replay_targets="distilled", steps=2)
    memories = learner.state.memories
    learner.begin(tasks[0])
    assert memories.old_teacher is None  # nothing to distil in the first increment
    learner.learn(tasks[0])
    before = copy.deepcopy(learner.state.nets.teacher.module).eval()
    x = torch.rand(4, 1, 8, 8)
    learner.begin(tasks[1])  # the networks grow
    with learner.random("test"):
        learner.step()
    assert not torch.equal(memories.old_teacher.theta, learner.state.nets.teacher.flat.theta)
    torch.testing.assert_close(memories.old_teacher.module(x)[:, :2], before(x))
    teacher = learner.state.nets.teacher.flat
    assert learner.bytes_kept()["old_teacher"] == teacher.theta.nbytes + teacher.buffers.nbytes
    learner.finish()
    assert memories.old_teacher is None
    assert "old_teacher" not in learner.bytes_kept()  # nothing more from one increment to the next


@pytest.mark.parametrize(("name", "form"), [("ordisco", "label"), ("smb", "distilled"), ("cgan+smb", "both")])
def test_where_nothing_is_distilled_nothing_is_copied(name: str, form: str):
    learner = make_learner(name, num_classes=2, replay_targets=form, steps=1)
    learner.learn(increment_of([0, 1], [0, 1]))
    learner.begin(increment_of([0, 1], [0, 1], seed=1))
    assert learner.state.memories.old_teacher is None
    y = torch.tensor([0, 1])
    assert targets_of_replay(learner.setup, learner.state, Pairs(torch.zeros(2, 1, 8, 8), y)) is y


@pytest.mark.parametrize("loss", ["mean-teacher", "none"])
@pytest.mark.usefixtures("gradients_stay")
def test_the_gradient_of_trusted_replay(loss: str):
    learner = ready(replay_trust="teacher", unlabeled_loss=loss, replay_unlabeled=0.25)
    C, images = learner.state.nets.C, drawn(learner)
    x, y, n_l, n_r = *images.again, len(images.x_l), len(images.again.x)
    if loss == "none":
        logits = C.module(torch.cat([images.x_l, x]))[:, :3]
        p, unlabeled, second = taught(learner, x), 0.0, 0.0  # C′ sees the replayed images by themselves
    else:
        logits = C.module(torch.cat([images.x_l, images.x_u, x]))[:, :3]
        p = taught(learner, torch.cat([images.x_u, x]))
        distance = 0.7 * (logits[n_l:].softmax(1) - p).square().sum(1)
        unlabeled, second, p = distance[:-n_r].mean(), distance[-n_r:], p[-n_r:]
    own = p[torch.arange(n_r), y]
    first = F.cross_entropy(logits[-n_r:], y, reduction="none")
    replay = (own / own.mean() * (first + 0.25 * second)).mean()
    loss_of_c = F.cross_entropy(logits[:n_l], images.y_l) + unlabeled + 0.4 * replay
    expected = flat_gradient(loss_of_c, C)
    terms = classify(learner, images, 0.7, 0.4)
    torch.testing.assert_close(terms["replay"], 0.4 * replay.detach())
    torch.testing.assert_close(C.flat.grad, expected, rtol=1e-4, atol=1e-6)
    assert touched(learner) == {"C"}
