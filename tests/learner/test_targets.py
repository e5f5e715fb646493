"""What C′ says of unlabelled images: to C, and to D."""

import math
from dataclasses import replace

import pytest
import torch

from midway import classify, drawn, pseudo, ready, taught
from ordisco.learner.targets import aligned, aligned_targets, teach, unlabeled_views
from ordisco.maths.unlabeled.align import align_distribution
from ordisco.maths.unlabeled.base import Views

pytestmark = pytest.mark.usefixtures("gradients_stay")


def test_pseudo_labels_are_those_of_the_teacher_on_the_view_it_has_seen():
    learner = ready()
    images = drawn(learner)
    torch.testing.assert_close(pseudo(learner, images.x_u).p, taught(learner, images.x_u))
    view = (torch.randn(11, 3),)  # 6 unlabelled and 5 replayed images
    torch.testing.assert_close(pseudo(learner, images.x_u, view).p, view[0][:6].softmax(1))
    assert torch.equal(pseudo(learner, images.x_u).x, images.x_u)
    assert pseudo(learner, None) is None


@pytest.mark.parametrize("noisy", [True, False])
def test_the_teacher_teaches_by_the_mini_batch_and_keeps_its_statistics_and_mode(noisy: bool):
    learner = ready(dropout=0.5, teacher_dropout=noisy)
    x, before = drawn(learner).x_u, learner.state.nets.teacher.flat.buffers.clone()
    counts = [value.clone() for name, value in learner.state.nets.teacher.module.named_buffers() if "num" in name]
    first, second = teach(learner.setup, learner.state, x), teach(learner.setup, learner.state, x)
    assert torch.equal(first, second) == (not noisy)  # ε′ of Eq. 3
    learner.state.nets.teacher.flat.buffers.add_(1)
    torch.testing.assert_close(teach(learner.setup, learner.state, x), second, rtol=0, atol=math.inf if noisy else 0)
    learner.state.nets.teacher.flat.buffers.copy_(before)
    modules = list(learner.state.nets.teacher.module.modules())
    assert not any(module.training for module in modules)
    assert all(module.track_running_stats for module in modules if isinstance(module, torch.nn.BatchNorm2d))
    assert torch.equal(learner.state.nets.teacher.flat.buffers, before)
    after = [value for name, value in learner.state.nets.teacher.module.named_buffers() if "num" in name]
    assert all(torch.equal(a, b) for a, b in zip(after, counts, strict=True))


def test_alignment_by_hand_and_each_use_has_its_own_mean():
    learner = ready(align="all")
    setup, state = learner.setup, learner.state
    pools = replace(learner.pools, expected=torch.tensor([0.5, 0.5, 0.0]))
    p = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
    mean = torch.tensor([0.4, 0.2, 0.4])
    found = aligned(setup, state, pools, p, "targets")
    torch.testing.assert_close(found, align_distribution(p, pools.expected, mean))
    torch.testing.assert_close(found[0], torch.tensor([0.75, 0.5, 0.0]) / 1.25)  # 0.6·0.5/0.4, 0.2·0.5/0.2
    aligned(setup, state, pools, torch.tensor([[0.0, 1.0, 0.0]]), "targets")
    torch.testing.assert_close(state.mean_prediction["targets"], 0.99 * mean + 0.01 * torch.tensor([0.0, 1.0, 0.0]))
    assert "pseudo_labels" not in state.mean_prediction
    both = aligned_targets(setup, state, pools, p, 1)
    assert torch.equal(both[1], p[1])  # a replayed image is left alone
    assert not torch.equal(both[0], p[0])
    assert torch.equal(aligned_targets(setup, state, pools, p, 0), p)
    assert aligned_targets(setup, state, pools, None, 1) is None  # a loss without targets


@pytest.mark.parametrize(("align", "labels", "targets"), [("none", 0, 0), ("pseudo-labels", 1, 0), ("all", 1, 1)])
def test_what_is_aligned(align: str, labels: bool, targets: bool):
    learner = ready(align=align)
    images = drawn(learner)
    pseudo(learner, images.x_u)
    classify(learner, images)
    assert ("pseudo_labels" in learner.state.mean_prediction) == labels
    assert ("targets" in learner.state.mean_prediction) == targets


def test_no_views_without_an_unlabelled_loss_or_images():
    learner = ready(unlabeled_loss="none")
    images = drawn(learner)
    assert unlabeled_views(learner.setup, learner.state, images.x_u, images.again) == Views((), ())
    learner = ready()
    assert unlabeled_views(learner.setup, learner.state, None, None) == Views((), ())


def test_views_are_of_unlabelled_then_replayed_images():
    learner = ready()
    images = drawn(learner)
    for unlabeled, again in ((images.x_u, images.again), (images.x_u, None), (None, images.again)):
        present = [x for x in (unlabeled, again and again.x) if x is not None]
        views = unlabeled_views(learner.setup, learner.state, unlabeled, again)
        assert [len(side) for side in views] == [1, 1]
        assert torch.equal(views.student[0], torch.cat(present))  # no augmentation here
        assert torch.equal(views.teacher[0], torch.cat(present))


def test_fixmatch_labelled_by_the_teacher_asks_c_for_the_strong_view_only():
    learner = ready("smb", unlabeled_loss="fixmatch", labeller="teacher")
    views = unlabeled_views(learner.setup, learner.state, drawn(learner, replay=False).x_u, None)
    assert (len(views.student), len(views.teacher)) == (1, 1)
