"""The training step: each gradient against its equation, and each network touched by its own losses only."""

import copy
import math
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from conftest import increment_of, make_learner, weights
from ordisco import adversary, losses, step
from ordisco.learner import Learner
from ordisco.networks import Network
from ordisco.pools import Augmentation
from ordisco.ssl import align_distribution
from ordisco.step import Batch, Views

LOSSES = ("mean-teacher", "pi-model", "pseudo-label", "vat", "fixmatch")
FIRST, SECOND = increment_of([0, 1, 2] * 2, [0, 1, 2] * 4, seed=1), increment_of([0, 1, 2] * 2, [2, 1, 0] * 4, seed=2)


@pytest.fixture(autouse=True)
def _gradients_stay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No optimiser step, so that a test can look at the gradients; and random numbers of its own."""
    monkeypatch.setattr(Network, "step", lambda self: None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def ready(name: str = "ordisco", increments: int = 1, **changes: object) -> Learner:
    """A learner in the middle of its last increment: no dropout, no augmentation, so that all can be recomputed."""
    learner = make_learner(name, num_classes=5, **{"dropout": 0.0, "threshold": 0.0, **changes})
    learner.augment = Augmentation(0, False)
    for increment in (FIRST, SECOND)[: increments - 1]:
        learner.begin(increment)
        learner.finish()
    learner.begin((FIRST, SECOND)[increments - 1])
    learner.nets.train()
    # a C′ and (for the penalty) a D that have moved
    learner.nets.teacher.flat.theta.add_(torch.randn_like(learner.nets.teacher.flat.theta), alpha=0.1)
    if learner.nets.D is not None:
        learner.nets.D.flat.theta.add_(torch.randn_like(learner.nets.D.flat.theta), alpha=0.1)
    return learner


def batch_of(learner: Learner, replay: bool = True) -> Batch:
    batch = step.draw(learner)
    if learner.nets.G is not None:
        batch.x_g, batch.y_g = step.generate(learner, learner.settings.step.batch_generated)
    if replay:
        batch.x_r, batch.y_r = step.replayed(learner, batch, 1.0)
    return batch


def touched(learner: Learner) -> set[str]:
    """The networks that have a gradient."""
    return {name for name, network in learner.nets.named() if network.flat.grad.any()}


def classify(learner: Learner, batch: Batch, consistency: float = 0.7, replay: float = 0.4) -> dict[str, Tensor]:
    views = step.unlabeled_views(learner, batch)
    teacher = tuple(step.teach(learner, view) for view in views.teacher)
    return step.classifier_step(learner, batch, views, teacher, consistency, replay)


def taught(learner: Learner, x: Tensor) -> Tensor:
    """What C′ says of a mini-batch: probabilities of the 3 classes, batch norm by the mini-batch, no dropout (0.0)."""
    return copy.deepcopy(learner.nets.teacher.module).train()(x)[:, :3].softmax(1).detach()


def flat_gradient(loss: Tensor, network: Network) -> Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(network.module.parameters()))])


# ---------------------------------------------------------------------- which networks learn from which loss


def test_the_d_step_gives_a_gradient_to_d_only():
    learner = ready()
    batch = batch_of(learner)
    step.discriminator_step(learner, batch, step.pseudo_labels(learner, batch.x_u, ()), 1.0)
    assert touched(learner) == {"D"}
    assert batch.x_g.requires_grad  # though the way to G was open


@pytest.mark.parametrize("term", ["real", "generated", "pseudo", "penalty"])
def test_each_term_of_d_reaches_d_only(term: str, monkeypatch: pytest.MonkeyPatch):
    learner = ready(increments=2)
    if term != "penalty":
        learner.kept.xi = None
    if term != "real":
        monkeypatch.setattr(losses, "real_pairs", lambda d, *_: 0 * d.sum())
    monkeypatch.setattr(
        losses,
        "discriminator",
        lambda real, generated, pseudo, alpha, form: {
            "real": real,
            "generated": generated.mean(),
            "pseudo": pseudo.mean(),
            "penalty": real,
        }[term],
    )
    batch = batch_of(learner)
    step.discriminator_step(learner, batch, step.pseudo_labels(learner, batch.x_u, ()), 1.0)
    assert touched(learner) == {"D"}


def test_the_g_step_gives_a_gradient_to_g_only():
    learner = ready()
    step.generator_step(learner, batch_of(learner))
    assert touched(learner) == {"G"}


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        *(("ordisco", loss) for loss in LOSSES),
        *((name, "mean-teacher") for name in ("smb", "smb+umb+uc", "offline-all", "offline-last")),
    ],
)
def test_the_c_step_gives_a_gradient_to_c_only(name: str, loss: str):
    learner = ready(name, increments=2, unlabeled_loss=loss)
    classify(learner, batch_of(learner))
    assert touched(learner) == {"C"}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_unlabelled_loss_alone_reaches_c_only(loss: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(losses, "supervised", lambda logits, labels: 0 * logits.sum())
    learner = ready(unlabeled_loss=loss, dropout=0.3)
    terms = classify(learner, batch_of(learner, replay=False))
    assert terms["unlabeled"] > 0
    assert terms["supervised"] == terms["replay"] == 0
    assert touched(learner) == {"C"}


def test_the_supervised_loss_alone_reaches_c_only():
    learner = ready(unlabeled_loss="none")
    terms = classify(learner, batch_of(learner, replay=False))
    assert terms["supervised"] > 0
    assert terms["unlabeled"] == terms["replay"] == 0
    assert touched(learner) == {"C"}


@pytest.mark.parametrize(
    ("name", "loss"), [*(("ordisco", loss) for loss in (*LOSSES, "none")), ("offline-all", "mean-teacher")]
)
def test_replay_alone_reaches_c_and_not_the_generator(name: str, loss: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(losses, "supervised", lambda logits, labels: 0 * logits.sum())
    learner = ready(name, increments=2, unlabeled_loss=loss)
    batch = batch_of(learner)
    batch.x_u = None
    terms = classify(learner, batch)
    assert terms["replay"] > 0
    assert terms["supervised"] == terms["unlabeled"] == 0
    assert touched(learner) == {"C"}
    assert not batch.x_r.requires_grad
    if learner.kept.saved is not None:
        assert not any(flat.grad.any() for flat, _ in learner.kept.saved.saved)


def test_a_whole_step_reaches_c_g_and_d_and_never_the_teacher():
    learner = ready(increments=2)
    learner.step_in_increment = 2  # past the ramp of replay
    step.train_step(learner)
    assert touched(learner) == {"C", "G", "D"}
    assert not any(p.requires_grad for p in learner.nets.teacher.module.parameters())


def test_without_a_gan_there_is_nothing_but_c():
    learner = ready("smb")
    step.train_step(learner)
    assert [name for name, _ in learner.nets.named()] == ["C", "teacher"]
    assert touched(learner) == {"C"}


def test_rows_of_unseen_classes_get_no_gradient():
    learner = ready()
    classify(learner, batch_of(learner))
    head = learner.nets.C.module.head
    assert head.weight.grad[:3].any(dim=1).all()
    assert not head.weight.grad[3:].any()


# ---------------------------------------------------------------------- the gradients themselves


@pytest.mark.parametrize("form", ["logistic", "hinge"])
@pytest.mark.parametrize("third", ["argmax", "expectation"])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_the_gradient_of_d_is_that_of_eqs_4_and_8(form: str, third: str, share: float):
    learner = ready(increments=2, adversarial=form, third_term=third, pseudo_real=share, alpha=0.3, d_penalty=0.2)
    D, batch = learner.nets.D, batch_of(learner)
    p = step.teach(learner, batch.x_u).softmax(1)

    def cost(d: Tensor, real: bool) -> Tensor:
        sign = -1 if real else 1
        return F.softplus(sign * d) if form == "logistic" else F.relu(1 + sign * d)

    def scores(x: Tensor, y: Tensor) -> Tensor:
        return D.module(x)[torch.arange(len(y)), y]

    hard = p.argmax(1)
    loss = (1 - share) * cost(scores(batch.x_l, batch.y_l), True).mean()
    loss = loss + share * cost(scores(batch.x_u, hard), True).mean()
    loss = loss + 0.3 * cost(scores(batch.x_g.detach(), batch.y_g), False).mean()
    if third == "argmax":
        loss = loss + 0.7 * cost(scores(batch.x_u, hard), False).mean()
    else:
        loss = loss + 0.7 * (p * cost(D.module(batch.x_u)[:, :3], False)).sum(1).mean()
    expected = flat_gradient(loss, D)
    moved = D.flat.theta - learner.kept.anchor
    expected = expected + 2 * 0.2 * learner.kept.xi * moved
    value, penalty = step.discriminator_step(learner, batch, p, 1.0)
    torch.testing.assert_close(D.flat.grad, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(value, loss.detach())
    torch.testing.assert_close(penalty, 0.2 * (learner.kept.xi * moved.square()).sum())
    assert penalty > 0


@pytest.mark.parametrize(("progress", "counted"), [(0.1, False), (0.2, True)])
def test_pseudo_labelled_pairs_are_real_only_after_their_start(progress: float, counted: bool):
    learner = ready(pseudo_real=0.6, pseudo_real_start=0.2)
    batch = batch_of(learner)
    p = step.pseudo_labels(learner, batch.x_u, ())
    found = adversary.discriminator_loss(learner, batch, p, progress)
    always = ready(pseudo_real=0.6 if counted else 0.0, pseudo_real_start=0.0)
    always.nets.D.flat.copy(learner.nets.D.flat)
    torch.testing.assert_close(found, adversary.discriminator_loss(always, batch, p, progress))


@pytest.mark.parametrize("form", ["logistic", "hinge"])
def test_the_gradient_of_g_is_that_of_eq_5(form: str):
    learner = ready(adversarial=form)
    batch = batch_of(learner)
    d = learner.nets.D.module(batch.x_g)[torch.arange(len(batch.y_g)), batch.y_g]
    loss = F.softplus(-d).mean() if form == "logistic" else -d.mean()
    expected = torch.autograd.grad(loss, list(learner.nets.G.module.parameters()), retain_graph=True)
    value = step.generator_step(learner, batch)
    torch.testing.assert_close(learner.nets.G.flat.grad, torch.cat([g.flatten() for g in expected]))
    torch.testing.assert_close(value, loss.detach())


def test_the_gradient_of_c_is_that_of_eqs_1_2_3_6_7():
    learner = ready()
    C, batch = learner.nets.C, batch_of(learner)
    sizes = [len(batch.x_l), len(batch.x_u), len(batch.x_r)]
    logits = C.module(torch.cat([batch.x_l, batch.x_u, batch.x_r]))[:, :3]
    labeled, unlabeled, replayed = logits.split(sizes)
    teacher_u, teacher_r = taught(learner, torch.cat([batch.x_u, batch.x_r])).split(sizes[1:])
    sl = F.cross_entropy(labeled, batch.y_l)
    ul = 0.7 * (unlabeled.softmax(1) - teacher_u).square().sum(1).mean()
    replay = F.cross_entropy(replayed, batch.y_r) + 0.7 * (replayed.softmax(1) - teacher_r).square().sum(1).mean()
    expected = flat_gradient(sl + ul + 0.4 * replay, C)
    terms = classify(learner, batch, consistency=0.7, replay=0.4)
    torch.testing.assert_close(C.flat.grad, expected, rtol=1e-4, atol=1e-6)
    found = [terms[name].item() for name in ("supervised", "unlabeled", "replay")]
    assert found == pytest.approx([sl.item(), ul.item(), 0.4 * replay.item()], rel=1e-4)


@pytest.mark.parametrize("name", ["ewc-sl", "mas-sl", "si-sl"])
def test_a_penalty_on_c_adds_its_gradient(name: str):
    learner = ready(name, increments=2, c_penalty=3.0, unlabeled_loss="none")
    C, penalty = learner.nets.C, learner.kept.penalty
    penalty.vectors["importance"] = torch.rand_like(C.flat.theta)
    C.flat.theta.add_(torch.randn_like(C.flat.theta), alpha=0.1)
    batch = batch_of(learner, replay=False)
    loss = F.cross_entropy(C.module(batch.x_l)[:, :3], batch.y_l)
    expected = flat_gradient(loss, C)
    moved = C.flat.theta - penalty.vectors["anchor"]
    terms = classify(learner, batch)
    torch.testing.assert_close(C.flat.grad, expected + 2 * 3 * penalty.vectors["importance"] * moved)
    torch.testing.assert_close(terms["penalty"], 3 * (penalty.vectors["importance"] * moved.square()).sum())


@pytest.mark.parametrize("name", ["si-sl", "si-sl+ul"])
def test_si_follows_the_gradient_of_the_loss_it_is_on(name: str, monkeypatch: pytest.MonkeyPatch):
    learner = ready(name)
    C, batch, seen = learner.nets.C, batch_of(learner, replay=False), []
    monkeypatch.setattr(learner.kept.penalty, "after_step", lambda gradient, delta: seen.append(gradient))
    logits = C.module(torch.cat([batch.x_l, batch.x_u]))[:, :3]
    loss = F.cross_entropy(logits[: len(batch.x_l)], batch.y_l)
    if name == "si-sl+ul":
        distance = logits[len(batch.x_l) :].softmax(1) - taught(learner, batch.x_u)
        loss = loss + 0.7 * distance.square().sum(1).mean()
    expected = flat_gradient(loss, C)
    classify(learner, batch)
    torch.testing.assert_close(seen[0], expected, rtol=1e-4, atol=1e-6)


def test_the_unified_classifier_adds_its_terms_after_the_first_increment():
    first, second = ready("smb+umb+uc"), ready("smb+umb+uc", increments=2)
    for learner, old in ((first, False), (second, True)):
        batch = batch_of(learner)
        x = torch.cat([batch.x_l, batch.x_u])
        features = learner.nets.C.module.features(x)
        value = step.unified_terms(learner, x, features, batch)
        assert bool(value > 0) == old
    before = second.kept.old_features.module(x)
    expected = 5.0 * (1 - F.cosine_similarity(before, features)).mean()  # no new class: no margin ranking
    torch.testing.assert_close(value, expected)


def test_the_unified_classifier_ranks_old_labels_above_new_classes():
    learner = ready("smb+umb+uc", increments=2)
    learner.finish()
    learner.begin(increment_of([3, 3, 4, 4], [3, 4, 3], seed=3))
    assert (learner.classes_before, learner.classes) == (3, [0, 1, 2, 3, 4])
    batch = Batch(learner.labeled.draw(12)[0], torch.tensor([0, 1, 2, 3, 4, 0, 0, 1, 3, 4, 2, 2]), None)
    learner.nets.C.flat.theta.mul_(1.1)
    features = learner.nets.C.module.features(batch.x_l)
    before = learner.kept.old_features.module(batch.x_l)
    cosines = F.normalize(features, dim=1) @ F.normalize(learner.nets.C.module.head.weight, dim=1).t()
    ranking = [
        sum(max(0.0, 0.5 - row[y].item() + row[new].item()) for new in (3, 4)) if y < 3 else 0.0
        for row, y in zip(cosines, batch.y_l.tolist(), strict=True)
    ]
    forget = (1 - F.cosine_similarity(before, features)).mean().item()
    expected = 5 * (3 / 2) ** 0.5 * forget + sum(ranking) / 12
    assert step.unified_terms(learner, batch.x_l, features, batch).item() == pytest.approx(expected, rel=1e-4)
    assert sum(ranking) > 0


# ---------------------------------------------------------------------- what they are computed on


def test_labels_of_generated_images_are_the_classes_seen():
    learner = ready()  # room for 5 classes, 3 seen
    _, y = step.generate(learner, 500)
    counts = torch.bincount(y, minlength=5)
    assert counts[3:].tolist() == [0, 0]
    assert counts[:3].min() > 120  # uniform: 167 each, standard deviation 11


def test_online_replay_is_of_the_images_just_generated():
    learner = ready()
    batch = batch_of(learner)
    assert torch.equal(batch.x_r, batch.x_g.detach())
    assert torch.equal(batch.y_r, batch.y_g)


@pytest.mark.parametrize(("name", "kept"), [("offline-all", 2), ("offline-last", 1)])
def test_offline_replay_is_of_saved_generators(name: str, kept: int):
    learner = make_learner(name, num_classes=3)
    learner.begin(FIRST)
    assert step.replayed(learner, step.draw(learner), 1.0) == (None, None)  # no generator saved yet
    learner.finish()
    learner.begin(SECOND)
    learner.finish()
    learner.begin(FIRST)
    assert len(learner.kept.saved) == kept
    for parameter in learner.nets.G.module.parameters():
        parameter.data.fill_(float("nan"))  # it is not the living one
    x, y = step.replayed(learner, step.draw(learner), 1.0)
    assert x.isfinite().all()
    assert x.shape == (5, 1, 8, 8)
    assert y.max() < 3


@pytest.mark.parametrize(("name", "real"), [("offline-last", 9), ("offline-all", 4), ("ordisco", 4)])
def test_only_strategy_2_shows_replayed_images_to_d_as_real(name: str, real: int, monkeypatch: pytest.MonkeyPatch):
    learner = ready(name, increments=2)
    batch, seen = batch_of(learner), []
    keep: Callable[..., Tensor] = losses.real_pairs
    monkeypatch.setattr(losses, "real_pairs", lambda d, w, form: seen.append(int((w > 0).sum())) or keep(d, w, form))
    step.discriminator_step(learner, batch, step.pseudo_labels(learner, batch.x_u, ()), 1.0)
    assert seen == [real]  # 4 labelled (and 5 replayed)


def test_pseudo_labels_are_those_of_the_teacher_on_the_view_it_has_seen():
    learner = ready()
    batch = batch_of(learner)
    torch.testing.assert_close(step.pseudo_labels(learner, batch.x_u, ()), taught(learner, batch.x_u))
    view = (torch.randn(11, 3),)  # 6 unlabelled and 5 replayed images
    torch.testing.assert_close(step.pseudo_labels(learner, batch.x_u, view), view[0][:6].softmax(1))
    assert step.pseudo_labels(learner, None, ()) is None


@pytest.mark.parametrize("noisy", [True, False])
def test_the_teacher_teaches_by_the_mini_batch_and_keeps_its_statistics_and_mode(noisy: bool):
    learner = ready(dropout=0.5, teacher_dropout=noisy)
    x, before = batch_of(learner).x_u, learner.nets.teacher.flat.buffers.clone()
    counts = [value.clone() for name, value in learner.nets.teacher.module.named_buffers() if "num" in name]
    first, second = step.teach(learner, x), step.teach(learner, x)
    assert torch.equal(first, second) == (not noisy)  # ε′ of Eq. 3
    learner.nets.teacher.flat.buffers.add_(1)
    torch.testing.assert_close(step.teach(learner, x), second, rtol=0, atol=math.inf if noisy else 0)
    learner.nets.teacher.flat.buffers.copy_(before)
    modules = list(learner.nets.teacher.module.modules())
    assert not any(module.training for module in modules)
    assert all(module.track_running_stats for module in modules if isinstance(module, torch.nn.BatchNorm2d))
    assert torch.equal(learner.nets.teacher.flat.buffers, before)
    after = [value for name, value in learner.nets.teacher.module.named_buffers() if "num" in name]
    assert all(torch.equal(a, b) for a, b in zip(after, counts, strict=True))


def test_alignment_by_hand_and_each_use_has_its_own_mean():
    learner = ready(align="all")
    learner.expected = torch.tensor([0.5, 0.5, 0.0])
    p = torch.tensor([[0.6, 0.2, 0.2], [0.2, 0.2, 0.6]])
    mean = torch.tensor([0.4, 0.2, 0.4])
    aligned = step.align(learner, p, "targets")
    torch.testing.assert_close(aligned, align_distribution(p, learner.expected, mean))
    torch.testing.assert_close(aligned[0], torch.tensor([0.75, 0.5, 0.0]) / 1.25)  # 0.6·0.5/0.4, 0.2·0.5/0.2
    step.align(learner, torch.tensor([[0.0, 1.0, 0.0]]), "targets")
    torch.testing.assert_close(learner.mean_prediction["targets"], 0.99 * mean + 0.01 * torch.tensor([0.0, 1.0, 0.0]))
    assert "pseudo_labels" not in learner.mean_prediction
    both = step.align_targets(learner, p, 1)
    assert torch.equal(both[1], p[1])  # a replayed image is left alone
    assert not torch.equal(both[0], p[0])


@pytest.mark.parametrize(("align", "labels", "targets"), [("none", 0, 0), ("pseudo-labels", 1, 0), ("all", 1, 1)])
def test_what_is_aligned(align: str, labels: bool, targets: bool):
    learner = ready(align=align)
    batch = batch_of(learner)
    step.pseudo_labels(learner, batch.x_u, ())
    classify(learner, batch)
    assert ("pseudo_labels" in learner.mean_prediction) == labels
    assert ("targets" in learner.mean_prediction) == targets


def test_no_views_without_an_unlabelled_loss_or_images():
    learner = ready(unlabeled_loss="none")
    assert step.unlabeled_views(learner, batch_of(learner)) == Views((), ())
    learner = ready()
    batch = batch_of(learner, replay=False)
    batch.x_u = None
    assert step.unlabeled_views(learner, batch) == Views((), ())


# ---------------------------------------------------------------------- order, ramps, teacher


@pytest.mark.parametrize(
    ("progress", "start", "ramp", "expected"),
    [(0.0, 0.0, 0.25, 0.0), (0.1, 0.0, 0.25, 0.4), (0.5, 0.0, 0.25, 1.0), (0.2, 0.3, 0.0, 0.0), (0.3, 0.3, 0.0, 1.0)],
)
def test_the_ramp_of_replay(progress: float, start: float, ramp: float, expected: float):
    assert step.replay_ramp(progress, start, ramp) == pytest.approx(expected)


def test_ramps_run_within_the_increment(monkeypatch: pytest.MonkeyPatch):
    learner, seen = ready(increments=2, steps=4, consistency_weight=2.0, replay_weight=3.0, replay_ramp=0.5), []
    monkeypatch.setattr(step, "classifier_step", lambda *args: seen.append(args[-2:]) or {})
    learner.total_steps = 4  # those of the first increment
    for _ in range(4):
        learner.step()
    assert [round(c / 2, 4) for c, _ in seen] == [0.0067, 0.2865, 1, 1]  # e⁻⁵, e^−1.25, 1, 1
    assert [r for _, r in seen] == [0, 1.5, 3, 3]


def test_d_then_g_then_c_and_several_d_steps(monkeypatch: pytest.MonkeyPatch):
    learner, order = ready(d_steps=3), []
    for name in ("discriminator_step", "generator_step", "classifier_step"):
        keep = getattr(step, name)
        monkeypatch.setattr(step, name, lambda *args, name=name, keep=keep: order.append(name[0]) or keep(*args))
    learner.step()
    assert order == ["d", "d", "d", "g", "c"]


def test_the_teacher_follows_parameters_and_statistics(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()  # with the optimiser's steps
    learner = make_learner("smb", ema=0.6)
    learner.begin(FIRST)
    expected = None
    with learner.random("test"):
        for t in range(4):
            learner.step()
            now, decay = weights(learner), min(0.6, 1 - 1 / (t + 1))  # 0, 1/2, 0.6, 0.6
            student = torch.cat([now["C.theta"], now["C.buffers"]])
            expected = student if expected is None else decay * expected + (1 - decay) * student
            torch.testing.assert_close(torch.cat([now["teacher.theta"], now["teacher.buffers"]]), expected)
    assert not torch.equal(now["teacher.buffers"], now["C.buffers"])
    assert learner.nets.C.module.training
    assert not any(module.training for module in learner.nets.teacher.module.modules())


# ---------------------------------------------------------------------- beyond the paper


def d_of(learner: Learner, x: Tensor) -> Tensor:
    return learner.nets.D.module(x)[:, :3]


@pytest.mark.parametrize("balance", [False, True])
def test_mismatched_and_balanced_pairs_in_the_loss_of_d(balance: bool):
    changes = {"pseudo_real": 0.6, "pseudo_real_start": 0.0, "alpha": 0.3, "d_balance": balance}
    learner = ready(**changes, mismatched=0.5, pseudo_threshold=0.5)
    batch = batch_of(learner)
    p = torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.9, 0.1, 0], [1.0, 0, 0]])
    y = torch.cat([batch.y_l, torch.tensor([0, 0, 1, 2, 0, 0])])
    w = torch.tensor([0.1] * 4 + [0.1, 0, 0.1, 0.1, 0.1, 0.1])  # the second pseudo-label is not trusted
    w = w / w.sum()
    if balance:
        mass = torch.stack([w[y == k].sum() for k in range(3)])
        w = w / mass[y] / (mass > 0).sum()
    d = d_of(learner, torch.cat([batch.x_l, batch.x_u]))
    wrong = torch.stack(
        [F.relu(1 + row[[k for k in range(3) if k != label]]).mean() for row, label in zip(d, y, strict=True)]
    )
    own = d[torch.arange(len(y)), y]
    d_g = d_of(learner, batch.x_g)[torch.arange(5), batch.y_g]
    loss = (w * F.relu(1 - own)).sum() + 0.3 * F.relu(1 + d_g).mean() + 0.5 * (w * wrong).sum()
    loss = loss + 0.7 * F.relu(1 + d[4:][torch.arange(6), y[4:]]).mean()
    torch.testing.assert_close(adversary.discriminator_loss(learner, batch, p, 1.0), loss)


def test_d_sees_shifted_images_and_g_learns_through_the_shift(monkeypatch: pytest.MonkeyPatch):
    learner = ready(d_translate=2)
    seen: list[Tensor] = []
    learner.nets.D.module.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    batch = batch_of(learner)
    step.generator_step(learner, batch)
    assert touched(learner) == {"G"}
    assert not torch.equal(seen[0], batch.x_g)
    pixels = batch.x_g.detach().flatten(1)
    for shifted, whole in zip(seen[0].detach().flatten(1), pixels, strict=True):
        assert torch.isin(shifted, whole).all()


def test_replay_by_the_moving_average_of_g():
    learner = ready(g_ema=0.9)
    assert learner.nets.G_mean is not None
    learner.nets.G_mean.flat.theta.add_(1.0)
    buffers = learner.nets.G_mean.flat.buffers.clone()
    batch = batch_of(learner)
    assert batch.x_r.shape == batch.x_g.shape
    assert not torch.equal(batch.x_r, batch.x_g)
    assert not batch.x_r.requires_grad
    assert torch.equal(learner.nets.G_mean.flat.buffers, buffers)
    before = learner.nets.G_mean.flat.theta.clone()
    learner.total_steps = 1000
    step.generator_step(learner, batch)
    torch.testing.assert_close(learner.nets.G_mean.flat.theta, 0.9 * before + 0.1 * learner.nets.G.flat.theta)
    sample = learner.sample(torch.tensor([0, 1]), seed=1)
    learner.nets.G.flat.theta.zero_()
    assert torch.equal(learner.sample(torch.tensor([0, 1]), seed=1), sample)  # samples are those of the average


def test_the_moving_average_of_g_replays_by_the_statistics_of_the_mini_batch():
    learner = ready(g_ema=0.9)
    batch = batch_of(learner)

    def drawn() -> Tensor:
        learner.seed_step("gan")
        return step.replayed(learner, batch, 1.0)[0]

    before = drawn()
    assert before.abs().mean() < 0.9  # not saturated
    learner.nets.G_mean.flat.buffers.add_(1.0)
    assert torch.equal(drawn(), before)


@pytest.mark.parametrize("g_ema", [0.0, 0.9])
def test_new_classes_are_not_replayed_before_their_time(g_ema: float):
    learner = ready("ordisco", replay_new=0.5, g_ema=g_ema, batch_generated=64)
    learner.classes_before = 1  # of 3
    batch = step.draw(learner)
    batch.x_g, batch.y_g = step.generate(learner, 64)
    assert step.replayed(learner, batch, 0.4)[1].unique().tolist() == [0]
    assert step.replayed(learner, batch, 0.5)[1].unique().tolist() == [0, 1, 2]
    learner.classes_before = 0
    assert step.replayed(learner, batch, 0.4) == (None, None)
    learner.classes_before = 3  # no class is new: New Instance
    assert step.replayed(learner, batch, 0.4)[1].unique().tolist() == [0, 1, 2]


def test_the_weight_of_generated_images_as_unlabelled_data():
    learner = ready(replay_unlabeled=0.25)
    batch = batch_of(learner)
    found = classify(learner, batch, 0.7, 0.4)["replay"]
    logits = learner.nets.C.module(torch.cat([batch.x_l, batch.x_u, batch.x_r]))[:, :3][-len(batch.x_r) :]
    target = taught(learner, torch.cat([batch.x_u, batch.x_r]))[len(batch.x_u) :]
    unlabeled = 0.7 * (logits.softmax(1) - target).square().sum(1).mean()
    torch.testing.assert_close(found, (0.4 * (F.cross_entropy(logits, batch.y_r) + 0.25 * unlabeled)).detach())


def test_fixmatch_labelled_by_the_teacher_asks_c_for_the_strong_view_only():
    learner = ready("smb", unlabeled_loss="fixmatch", labeller="teacher")
    views = step.unlabeled_views(learner, batch_of(learner, replay=False))
    assert (len(views.student), len(views.teacher)) == (1, 1)
