"""What C′ says of unlabelled images: to C, and to D."""

import math
from dataclasses import replace

import pytest
import torch

from conftest import increment_of, make_learner
from midway import classify, drawn, pseudo, ready, taught
from ordisco.data.pixels import normalize
from ordisco.errors import OrdiscoError
from ordisco.learner.batch import Augmentation, Pairs, Unlabeled
from ordisco.learner.targets import aligned, aligned_targets, beside, teach, unlabeled_views
from ordisco.maths.unlabeled.align import align_distribution
from ordisco.maths.unlabeled.base import Views

pytestmark = pytest.mark.usefixtures("gradients_stay")


def test_pseudo_labels_are_those_of_the_teacher_on_the_view_it_has_seen():
    learner = ready()
    images = drawn(learner)
    torch.testing.assert_close(pseudo(learner, images.batch).p, taught(learner, images.x_u))
    view = (torch.randn(11, 3),)  # 6 unlabelled and 5 replayed images
    torch.testing.assert_close(pseudo(learner, images.batch, view).p, view[0][:6].softmax(1))
    assert torch.equal(pseudo(learner, images.batch).x, images.x_u)
    assert pseudo(learner, replace(images.batch, unlabeled=None)) is None


@pytest.mark.parametrize("noisy", [True, False])
def test_the_teacher_teaches_by_the_mini_batch_and_keeps_its_statistics_and_mode(noisy: bool):
    learner = ready(dropout=0.5, teacher_dropout=noisy)
    x, before = drawn(learner).x_u, learner.state.nets.teacher.flat.buffers.clone()
    counts = [value.clone() for name, value in learner.state.nets.teacher.module.named_buffers() if "num" in name]
    first, second = (teach(learner.setup, learner.state, x, x[:0]) for _ in range(2))
    assert torch.equal(first, second) == (not noisy)  # ε′ of Eq. 3
    learner.state.nets.teacher.flat.buffers.add_(1)
    torch.testing.assert_close(
        teach(learner.setup, learner.state, x, x[:0]), second, rtol=0, atol=math.inf if noisy else 0
    )
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
    pools = replace(learner.pools, expected=torch.tensor([[0.5, 0.5, 0.0]]))
    p = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
    mean, now = torch.tensor([0.4, 0.2, 0.4]), torch.tensor([0, 0])
    found = aligned(state, pools, p, now, "targets")
    torch.testing.assert_close(found, align_distribution(p, pools.expected[0], mean))
    torch.testing.assert_close(found[0], torch.tensor([0.75, 0.5, 0.0]) / 1.25)  # 0.6·0.5/0.4, 0.2·0.5/0.2
    aligned(state, pools, torch.tensor([[0.0, 1.0, 0.0]]), now[:1], "targets")
    torch.testing.assert_close(state.predicted["targets"], torch.tensor([[0.792, 0.396 + 1, 0.792, 1.98 + 1]]))
    assert not state.predicted["pseudo_labels"].any()
    one = Unlabeled(drawn(learner).x_u[:1], now[:1])
    both = aligned_targets(setup, state, pools, p, one)
    assert torch.equal(both[1], p[1])  # a replayed image is left alone
    assert not torch.equal(both[0], p[0])
    assert torch.equal(aligned_targets(setup, state, pools, p, None), p)
    assert aligned_targets(setup, state, pools, None, one) is None  # a loss without targets


def test_images_of_each_increment_are_aligned_with_the_labels_that_came_with_it():
    learner = ready("jt", align="all")
    pools = replace(learner.pools, expected=torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    p = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6], [0.2, 0.4, 0.4]])
    found = aligned(learner.state, pools, p, torch.tensor([0, 0, 1]), "targets")
    torch.testing.assert_close(found[:2], align_distribution(p[:2], pools.expected[0], torch.tensor([0.4, 0.2, 0.4])))
    torch.testing.assert_close(found[2], torch.tensor([0.0, 0.0, 1.0]))


def test_increments_of_which_the_same_is_expected_share_a_mean_prediction():
    learner = make_learner("jt", num_classes=4, align="all")
    learner.learn(increment_of([0, 1], [0, 1]))
    learner.learn(increment_of([2, 3], [2, 3], seed=1))
    learner.begin(increment_of([0, 1], [0, 1], seed=2))
    pools = learner.pools
    assert pools.expected.tolist() == [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    assert pools.increments.bincount().tolist() == [4, 2]  # those of the first and the third together, of the second
    p = torch.tensor([[0.4, 0.4, 0.1, 0.1], [0.8, 0.0, 0.1, 0.1]])
    aligned(learner.state, pools, p, torch.tensor([0, 0]), "targets")
    torch.testing.assert_close(learner.state.predicted["targets"][0], torch.tensor([1.2, 0.4, 0.2, 0.2, 2.0]))


def test_an_increment_that_was_begun_with_other_means_is_not_gone_on_with():
    learner = ready("jt", align="all")
    learner.step()
    learner.attach(learner.increment)
    learner.state.predicted["targets"] = torch.cat([learner.state.predicted["targets"]] * 2)
    with pytest.raises(OrdiscoError, match="begun by a version that aligned its images otherwise"):
        learner.attach(learner.increment)


@pytest.mark.parametrize(("which", "seen"), [("unlabeled", []), ("old-classes", [0, 1]), ("labeled", [0, 1, 2, 3])])
def test_whom_the_teacher_sees_beside_what_it_teaches(which: str, seen: list[int]):
    learner = make_learner("smb", num_classes=4, teacher_batch=which, dropout=0.0)
    learner.setup = replace(learner.setup, augment=Augmentation(0, False))
    learner.learn(increment_of([0, 1], [0, 1]))
    learner.begin(increment_of([2, 3], [2, 3], seed=1))
    labeled = Pairs(normalize(learner.pools.images), learner.pools.slots)
    company = beside(learner.setup, learner.pools, labeled)
    assert torch.equal(company, labeled.x[torch.isin(labeled.y, torch.tensor(seen, dtype=torch.int64))])
    x = normalize(learner.pools.unlabeled)
    with learner.state.nets.teaching() as C_prime:
        expected = C_prime(torch.cat([x, company]))[: len(x)]
    found = teach(learner.setup, learner.state, x, company)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("labels", [[0, 1, 2], []], ids=["new instances", "no labels"])
def test_where_every_class_may_be_there_the_teacher_sees_no_labelled_image(labels: list[int]):
    learner = make_learner("smb", num_classes=3)
    learner.learn(increment_of([0, 1, 2], [0, 1, 2]))
    learner.begin(increment_of(labels, [0, 1, 2], seed=1))
    labeled = Pairs(normalize(learner.pools.images), learner.pools.slots)
    assert len(labeled.y) >= 3
    assert len(beside(learner.setup, learner.pools, labeled)) == 0


@pytest.mark.parametrize(("align", "labels", "targets"), [("none", 0, 0), ("pseudo-labels", 1, 0), ("all", 1, 1)])
def test_what_is_aligned(align: str, labels: bool, targets: bool):
    learner = ready(align=align)
    images = drawn(learner)
    pseudo(learner, images.batch)
    classify(learner, images)
    assert ("pseudo_labels" in learner.state.predicted) == labels
    assert ("targets" in learner.state.predicted) == targets


def test_no_views_without_an_unlabelled_loss_or_images():
    learner = ready(unlabeled_loss="none")
    images = drawn(learner)
    assert unlabeled_views(learner.setup, learner.state, images.batch.unlabeled, images.again) == Views((), ())
    learner = ready()
    assert unlabeled_views(learner.setup, learner.state, None, None) == Views((), ())


def test_views_are_of_unlabelled_then_replayed_images():
    learner = ready()
    images = drawn(learner)
    some = images.batch.unlabeled
    for unlabeled, again in ((some, images.again), (some, None), (None, images.again)):
        present = [part.x for part in (unlabeled, again) if part is not None]
        views = unlabeled_views(learner.setup, learner.state, unlabeled, again)
        assert [len(side) for side in views] == [1, 1]
        assert torch.equal(views.student[0], torch.cat(present))  # no augmentation here
        assert torch.equal(views.teacher[0], torch.cat(present))


def test_fixmatch_labelled_by_the_teacher_asks_c_for_the_strong_view_only():
    learner = ready("smb", unlabeled_loss="fixmatch", labeller="teacher")
    views = unlabeled_views(learner.setup, learner.state, drawn(learner, replay=False).batch.unlabeled, None)
    assert (len(views.student), len(views.teacher)) == (1, 1)
