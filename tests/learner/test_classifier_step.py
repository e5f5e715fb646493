"""C's step: its gradient against Eqs. 1–3, 6 and 7, and C touched by its own losses only."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from conftest import increment_of, learn_without_checks, make_learner
from midway import classify, drawn, flat_gradient, ready, taught, touched
from ordisco.data.pixels import normalize
from ordisco.learner.batch import Augmentation, Batch, Pairs
from ordisco.learner.classifier_step import unified_terms
from ordisco.maths import losses
from ordisco.maths.unlabeled import UNLABELED_LOSSES
from ordisco.nets.classifier import make_classifier

pytestmark = pytest.mark.usefixtures("gradients_stay")


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *(("ordisco", loss) for loss in UNLABELED_LOSSES),
        *((name, "mean-teacher") for name in ("smb", "smb+umb+uc", "offline-all", "offline-last")),
    ],
)
def test_the_c_step_gives_a_gradient_to_c_only(name: str, loss: str):
    learner = ready(name, increments=2, unlabeled_loss=loss)
    classify(learner, drawn(learner))
    assert touched(learner) == {"C"}


@pytest.mark.parametrize("loss", UNLABELED_LOSSES)
def test_the_unlabelled_loss_alone_reaches_c_only(loss: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(losses, "supervised", lambda logits, labels: 0 * logits.sum())
    learner = ready(unlabeled_loss=loss, dropout=0.3)
    terms = classify(learner, drawn(learner, replay=False))
    assert terms["unlabeled"] > 0
    assert terms["supervised"] == terms["replay"] == 0
    assert touched(learner) == {"C"}


def test_the_supervised_loss_alone_reaches_c_only():
    learner = ready(unlabeled_loss="none")
    terms = classify(learner, drawn(learner, replay=False))
    assert terms["supervised"] > 0
    assert terms["unlabeled"] == terms["replay"] == 0
    assert touched(learner) == {"C"}


@pytest.mark.parametrize(
    ("name", "loss"), [*(("ordisco", loss) for loss in (*UNLABELED_LOSSES, "none")), ("offline-all", "mean-teacher")]
)
def test_replay_alone_reaches_c_and_not_the_generator(name: str, loss: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(losses, "supervised", lambda logits, labels: 0 * logits.sum())
    learner = ready(name, increments=2, unlabeled_loss=loss)
    images = drawn(learner)
    images = images._replace(batch=Batch(images.batch.labeled, None))
    terms = classify(learner, images)
    assert terms["replay"] > 0
    assert terms["supervised"] == terms["unlabeled"] == 0
    assert touched(learner) == {"C"}
    assert not images.again.x.requires_grad
    if name == "offline-all":
        assert len(learner.state.memories.generators) == 1
        assert not any(flat.grad.any() for flat, _ in learner.state.memories.generators.saved)


def test_rows_of_unseen_classes_get_no_gradient():
    learner = ready()
    classify(learner, drawn(learner))
    head = learner.state.nets.C.module.head
    assert head.weight.grad[:3].any(dim=1).all()
    assert not head.weight.grad[3:].any()


def test_the_gradient_of_c_is_that_of_eqs_1_2_3_6_7():
    learner = ready()
    C, images = learner.state.nets.C, drawn(learner)
    sizes = [len(images.x_l), len(images.x_u), len(images.again.x)]
    logits = C.module(torch.cat([images.x_l, images.x_u, images.again.x]))[:, :3]
    labeled, unlabeled, replayed = logits.split(sizes)
    teacher_u, teacher_r = taught(learner, torch.cat([images.x_u, images.again.x])).split(sizes[1:])
    sl = F.cross_entropy(labeled, images.y_l)
    ul = 0.7 * (unlabeled.softmax(1) - teacher_u).square().sum(1).mean()
    replay = F.cross_entropy(replayed, images.again.y) + 0.7 * (replayed.softmax(1) - teacher_r).square().sum(1).mean()
    expected = flat_gradient(sl + ul + 0.4 * replay, C)
    terms = classify(learner, images, consistency=0.7, replay=0.4)
    torch.testing.assert_close(C.flat.grad, expected, rtol=1e-4, atol=1e-6)
    found = [terms[name].item() for name in ("supervised", "unlabeled", "replay")]
    assert found == pytest.approx([sl.item(), ul.item(), 0.4 * replay.item()], rel=1e-4)


@pytest.mark.parametrize("name", ["ewc-sl", "mas-sl", "si-sl"])
def test_a_penalty_on_c_adds_its_gradient(name: str):
    learner = ready(name, increments=2, c_penalty=3.0, unlabeled_loss="none")
    C, penalty = learner.state.nets.C, learner.state.memories.penalty_on_C
    penalty.vectors["importance"] = torch.rand_like(C.flat.theta)
    C.flat.theta.add_(torch.randn_like(C.flat.theta), alpha=0.1)
    images = drawn(learner, replay=False)
    loss = F.cross_entropy(C.module(images.x_l)[:, :3], images.y_l)
    expected = flat_gradient(loss, C)
    moved = C.flat.theta - penalty.vectors["anchor"]
    terms = classify(learner, images)
    torch.testing.assert_close(C.flat.grad, expected + 2 * 3 * penalty.vectors["importance"] * moved)
    torch.testing.assert_close(terms["penalty"], 3 * (penalty.vectors["importance"] * moved.square()).sum())


@pytest.mark.parametrize("name", ["si-sl", "si-sl+ul"])
def test_si_follows_the_gradient_of_the_loss_it_is_on(name: str, monkeypatch: pytest.MonkeyPatch):
    learner = ready(name)
    C, penalty, images, seen = learner.state.nets.C, learner.state.memories.penalty_on_C, drawn(learner, False), []
    note = penalty.before_step
    monkeypatch.setattr(penalty, "before_step", lambda theta, g: seen.append(g.clone()) or note(theta, g))
    logits = C.module(torch.cat([images.x_l, images.x_u]))[:, :3]
    loss = F.cross_entropy(logits[: len(images.x_l)], images.y_l)
    if name == "si-sl+ul":
        distance = logits[len(images.x_l) :].softmax(1) - taught(learner, images.x_u)
        loss = loss + 0.7 * distance.square().sum(1).mean()
    expected = flat_gradient(loss, C)
    classify(learner, images)
    assert len(seen) == 1
    torch.testing.assert_close(seen[0], expected, rtol=1e-4, atol=1e-6)


def test_the_unified_classifier_adds_its_terms_after_the_first_increment():
    first, second = ready("smb+umb+uc"), ready("smb+umb+uc", increments=2)
    for learner, old in ((first, False), (second, True)):
        images = drawn(learner)
        x = torch.cat([images.x_l, images.x_u])
        features = learner.state.nets.C.module.features(x)
        value = unified_terms(learner.setup, learner.state, x, features, images.batch.labeled)
        assert bool(value > 0) == old
    before = second.state.memories.old_features.module(x)
    expected = 5.0 * (1 - F.cosine_similarity(before, features)).mean()  # no new class: no margin ranking
    torch.testing.assert_close(value, expected)


def test_the_unified_classifier_ranks_old_labels_above_new_classes():
    learner = ready("smb+umb+uc", increments=2)
    learner.finish()
    learner.begin(increment_of([3, 3, 4, 4], [3, 4, 3], seed=3))
    assert (learner.state.classes.before, learner.classes) == (3, [0, 1, 2, 3, 4])
    x, y = learner.pools.draw(12, 1).labeled.x, torch.tensor([0, 1, 2, 3, 4, 0, 0, 1, 3, 4, 2, 2])
    learner.state.nets.C.flat.theta.mul_(1.1)
    features = learner.state.nets.C.module.features(x)
    before = learner.state.memories.old_features.module(x)
    cosines = F.normalize(features, dim=1) @ F.normalize(learner.state.nets.C.module.head.weight, dim=1).t()
    ranking = [
        sum(max(0.0, 0.5 - row[slot].item() + row[new].item()) for new in (3, 4)) if slot < 3 else 0.0
        for row, slot in zip(cosines, y.tolist(), strict=True)
    ]
    forget = (1 - F.cosine_similarity(before, features)).mean().item()
    expected = 5 * (3 / 2) ** 0.5 * forget + sum(ranking) / 8  # of the images of old classes
    found = unified_terms(learner.setup, learner.state, x, features, Pairs(x, y))
    assert found.item() == pytest.approx(expected, rel=1e-4)
    assert sum(ranking) > 0


def test_the_weight_of_generated_images_as_unlabelled_data():
    learner = ready(replay_unlabeled=0.25)
    images = drawn(learner)
    found = classify(learner, images, 0.7, 0.4)["replay"]
    logits = learner.state.nets.C.module(torch.cat([images.x_l, images.x_u, images.again.x]))[
        -len(images.again.x) :, :3
    ]
    target = taught(learner, torch.cat([images.x_u, images.again.x]))[len(images.x_u) :]
    unlabeled = 0.7 * (logits.softmax(1) - target).square().sum(1).mean()
    torch.testing.assert_close(found, (0.4 * (F.cross_entropy(logits, images.again.y) + 0.25 * unlabeled)).detach())


@pytest.mark.parametrize("view", ["first", "weak"])
@pytest.mark.parametrize("labeller", ["student", "teacher"])
def test_the_view_of_replayed_images_as_labelled_data(view: str, labeller: str, monkeypatch: pytest.MonkeyPatch):
    """Strong views are the images upside down, weak ones the images as they are."""
    monkeypatch.setattr(Augmentation, "strong", lambda self, x: x.flip(2))
    learner = ready(unlabeled_loss="fixmatch", labeller=labeller, replay_view=view, replay_unlabeled=0.25)
    C, images = learner.state.nets.C, drawn(learner)
    both = torch.cat([images.x_u, images.again.x])
    inputs = [images.x_l, both.flip(2)]  # all that C sees together
    inputs += [both] if labeller == "student" else []
    inputs += [images.again.x] if view == "weak" else []
    logits = C.module(torch.cat(inputs))[:, :3]
    strong = logits[len(images.x_l) :][: len(both)]
    n_r = len(images.again.x)
    labels = taught(learner, both).argmax(1)
    if labeller == "student":
        labels = logits[len(images.x_l) + len(both) :][: len(both)].argmax(1)
    as_labeled = logits[-n_r:] if view == "weak" else strong[-n_r:]
    replay = F.cross_entropy(as_labeled, images.again.y) + 0.25 * 0.7 * F.cross_entropy(strong[-n_r:], labels[-n_r:])
    unlabeled = 0.7 * F.cross_entropy(strong[:-n_r], labels[:-n_r])
    loss = F.cross_entropy(logits[: len(images.x_l)], images.y_l) + unlabeled + 0.4 * replay
    expected = flat_gradient(loss, C)
    terms = classify(learner, images, 0.7, 0.4)
    torch.testing.assert_close(terms["replay"], 0.4 * replay.detach())
    torch.testing.assert_close(C.flat.grad, expected, rtol=1e-4, atol=1e-6)
    assert touched(learner) == {"C"}


def test_the_unified_classifier_imprints_new_classes_and_holds_the_old_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()  # with the optimiser's steps
    learner = make_learner("smb+umb+uc", num_classes=4, steps=3, dropout=0.0)
    learner.learn(increment_of([0, 0, 1, 1], [0, 1, 0]))
    C, teacher = learner.state.nets.C.module, learner.state.nets.teacher.module
    old = C.head.weight[:2].detach().clone()
    task = increment_of([2, 2, 3, 3], [2, 3, 3], seed=1)
    learner.begin(task)
    with torch.no_grad():
        features = copy.deepcopy(C).eval().features(normalize(task.images[task.labels == 3]))
    direction = F.normalize(F.normalize(features, dim=1).mean(0), dim=0)
    torch.testing.assert_close(C.head.weight[3].detach(), direction * old.norm(dim=1).mean())
    assert torch.equal(C.head.weight[2:], teacher.head.weight[2:])
    new = C.head.weight[2:].detach().clone()
    learn_without_checks(learner)
    assert torch.equal(C.head.weight[:2], old)
    assert not torch.equal(C.head.weight[2:], new)


def test_where_no_class_is_new_the_unified_classifier_learns_all_embeddings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    learner = make_learner("smb+umb+uc", num_classes=2, steps=2)
    learner.learn(increment_of([0, 1], [0, 1]))
    before = learner.state.nets.C.module.head.weight.detach().clone()
    learner.begin(increment_of([0, 1], [0, 1], seed=1))
    assert torch.equal(learner.state.nets.C.module.head.weight, before)  # nothing to imprint
    learn_without_checks(learner)
    assert not torch.equal(learner.state.nets.C.module.head.weight, before)


@pytest.mark.parametrize("net", ["nine-conv", "wrn-28"])
def test_features_of_a_cosine_head_end_without_an_activation(net: str):
    for head, last in (("linear", nn.LeakyReLU), ("cosine", nn.BatchNorm2d)):
        layers = list(make_classifier(net, (1, 8, 8), 3, 4, 0.0, head).features)
        assert isinstance(layers[-2], last)


def test_the_share_of_trusted_targets_is_measured():
    learner = ready("smb", unlabeled_loss="fixmatch", labeller="teacher", threshold=0.0)
    assert classify(learner, drawn(learner, replay=False))["trusted"] == 1
    learner = ready("smb", unlabeled_loss="fixmatch", labeller="teacher", threshold=1.0)
    assert classify(learner, drawn(learner, replay=False))["trusted"] == 0
    assert "trusted" not in classify(ready("smb"), drawn(ready("smb"), replay=False))
