"""D's and G's steps: each gradient against its equation, and each network touched by its own losses only."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from conftest import increment_of, make_learner
from midway import deceive, discriminate, drawn, flat_gradient, generated, loss_of_d, pseudo, ready, touched
from ordisco.data import augment
from ordisco.data.pixels import normalize
from ordisco.learner.batch import Batch, Judged, Pseudo, Unlabeled
from ordisco.learner.gan_step import discriminator_loss
from ordisco.learner.learner import Learner
from ordisco.learner.targets import teach
from ordisco.maths import losses

pytestmark = pytest.mark.usefixtures("gradients_stay")


def test_the_d_step_gives_a_gradient_to_d_only():
    learner = ready()
    images = drawn(learner)
    discriminate(learner, images)
    assert touched(learner) == {"D"}
    assert images.generated.x.requires_grad  # though the way to G was open


@pytest.mark.parametrize("term", ["real", "generated", "pseudo", "penalty"])
def test_each_term_of_d_reaches_d_only(term: str, monkeypatch: pytest.MonkeyPatch):
    learner = ready(increments=2)
    if term != "penalty":
        learner.state.memories.penalty_on_D.vectors.clear()
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
    discriminate(learner, drawn(learner))
    assert touched(learner) == {"D"}


def test_the_g_step_gives_a_gradient_to_g_only():
    learner = ready()
    deceive(learner, drawn(learner))
    assert touched(learner) == {"G"}


@pytest.mark.parametrize("form", ["logistic", "hinge"])
@pytest.mark.parametrize("third", ["argmax", "expectation"])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_the_gradient_of_d_is_that_of_eqs_4_and_8(form: str, third: str, share: float):
    learner = ready(increments=2, adversarial=form, third_term=third, pseudo_real=share, alpha=0.3, d_penalty=0.2)
    D, images = learner.state.nets.gan.D, drawn(learner)
    p = teach(learner.setup, learner.state, images.x_u, images.x_u[:0]).softmax(1)

    def cost(d: Tensor, real: bool) -> Tensor:
        sign = -1 if real else 1
        return F.softplus(sign * d) if form == "logistic" else F.relu(1 + sign * d)

    def scores(x: Tensor, y: Tensor) -> Tensor:
        return D.module(x)[torch.arange(len(y)), y]

    hard = p.argmax(1)
    loss = (1 - share) * cost(scores(images.x_l, images.y_l), True).mean()
    loss = loss + share * cost(scores(images.x_u, hard), True).mean()
    loss = loss + 0.3 * cost(scores(images.generated.x.detach(), images.generated.y), False).mean()
    if third == "argmax":
        loss = loss + 0.7 * cost(scores(images.x_u, hard), False).mean()
    else:
        loss = loss + 0.7 * (p * cost(D.module(images.x_u)[:, :3], False)).sum(1).mean()
    expected = flat_gradient(loss, D)
    held = learner.state.memories.penalty_on_D.vectors
    moved = D.flat.theta - held["anchor"]
    expected = expected + 2 * 0.2 * held["importance"] * moved
    terms = discriminate(learner, images, Pseudo(images.x_u, p))
    value, penalty = terms["discriminator"], terms["penalty"]
    torch.testing.assert_close(D.flat.grad, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(value, loss.detach())
    torch.testing.assert_close(penalty, 0.2 * (held["importance"] * moved.square()).sum())
    assert penalty > 0


@pytest.mark.parametrize(("progress", "counted"), [(0.1, False), (0.2, True)])
def test_pseudo_labelled_pairs_are_real_only_after_their_start(progress: float, counted: bool):
    learner = ready(pseudo_real=0.6, pseudo_real_start=0.2)
    images = drawn(learner)
    p = pseudo(learner, images.batch)
    found = loss_of_d(learner, images, p, progress)
    always = ready(pseudo_real=0.6 if counted else 0.0, pseudo_real_start=0.0)
    always.state.nets.gan.D.flat.load("D", learner.state.nets.gan.D.flat.state("D"))
    torch.testing.assert_close(found, loss_of_d(always, images, p, progress))


@pytest.mark.parametrize("form", ["logistic", "hinge"])
def test_the_gradient_of_g_is_that_of_eq_5(form: str):
    learner = ready(adversarial=form)
    images = drawn(learner)
    x, y = images.generated
    d = learner.state.nets.gan.D.module(x)[torch.arange(len(y)), y]
    loss = F.softplus(-d).mean() if form == "logistic" else -d.mean()
    expected = torch.autograd.grad(loss, list(learner.state.nets.gan.G.module.parameters()), retain_graph=True)
    value = deceive(learner, images)
    torch.testing.assert_close(learner.state.nets.gan.G.flat.grad, torch.cat([g.flatten() for g in expected]))
    torch.testing.assert_close(value, loss.detach())


def test_d_sees_real_and_fake_images_in_other_colours_and_g_gets_its_gradient(monkeypatch: pytest.MonkeyPatch):
    learner, seen, keep = ready(d_colour=1.0), [], augment.tint
    monkeypatch.setattr(augment, "tint", lambda x, strength: seen.append((len(x), strength)) or keep(x, strength))
    images = drawn(learner)
    discriminate(learner, images)
    assert touched(learner) == {"D"}
    learner.state.nets.gan.D.flat.grad.zero_()
    deceive(learner, images)
    assert touched(learner) == {"G"}
    assert seen == [(4 + 6 + 5, 1.0), (5, 1.0)]


def test_lecam_in_the_loss_of_d_and_what_is_followed():
    learner = ready(lecam=0.3, alpha=1.0, pseudo_real=0.6, pseudo_real_start=0.0)
    D, images = learner.state.nets.gan.D, drawn(learner)
    sums, p = torch.tensor([3.0, -2.0, 2.0]), pseudo(learner, images.batch)
    D.module.scores.copy_(sums)
    y = torch.cat([images.y_l, p.p.argmax(1)])
    real = d_of(learner, torch.cat([images.x_l, images.x_u])).gather(1, y[:, None])[:, 0]
    fake = d_of(learner, images.generated.x.detach()).gather(1, images.generated.y[:, None])[:, 0]
    w = torch.tensor([0.4 / 4] * 4 + [0.6 / 6] * 6)
    sums = 0.99 * sums + torch.stack([(w * real).sum(), fake.mean(), torch.tensor(1.0)]).detach()
    alpha_r, alpha_f = sums[0] / sums[2], sums[1] / sums[2]
    loss = (w * F.relu(1 - real)).sum() + F.relu(1 + fake).mean()
    loss = loss + 0.3 * ((w * F.relu(real - alpha_f).square()).sum() + F.relu(alpha_r - fake).square().mean())
    expected = flat_gradient(loss, D)
    terms = discriminate(learner, images, p)
    torch.testing.assert_close(terms["discriminator"], loss.detach())
    torch.testing.assert_close(D.flat.grad, expected, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(D.module.scores, sums)
    assert D.flat.buffers.data_ptr() <= D.module.scores.data_ptr()  # saved with D
    assert touched(learner) == {"D"}


def test_d_gets_images_of_the_umb_as_real_pairs_with_labels_of_their_own_increment():
    """Two tasks of two classes: what C′ says of an image that was kept is aligned with the classes it came with."""
    learner = make_learner(
        "ordisco+umb", num_classes=4, align="all", pseudo_real=0.5, pseudo_real_start=0.0, umb_size=6
    )
    learner.learn(increment_of([0, 1], [0, 1] * 3))
    learner.begin(increment_of([2, 3], [2, 3] * 3, seed=1))
    pools, umb = learner.pools, learner.state.memories.umb
    assert pools.increments.tolist() == [1] * 6 + [0] * 6
    assert torch.equal(pools.unlabeled[6:], umb.images)
    x = normalize(pools.unlabeled)
    batch = Batch(pools.draw(4, 1).labeled, Unlabeled(x, pools.increments))
    found = pseudo(learner, batch)
    assert torch.equal(found.x, x)
    assert found.p[:6, :2].max() < 1e-3  # of this task: its own classes
    assert found.p[6:, 2:].max() < 1e-3  # kept: those of the first task
    pairs = Judged(batch.labeled, found, generated(learner))
    seen: list[Tensor] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            losses, "real_pairs", lambda d, w, form, keep=losses.real_pairs: seen.append(w) or keep(d, w, form)
        )
        discriminator_loss(learner.setup, learner.state.nets.gan, pairs, 4, 1.0)
    torch.testing.assert_close(seen[0], torch.tensor([0.5 / 4] * 4 + [0.5 / 12] * 12))  # the UMB's like the others


def test_labels_of_generated_images_are_the_classes_seen():
    learner = ready(batch_generated=500)  # room for 5 classes, 3 seen
    counts = torch.bincount(generated(learner).y, minlength=5)
    assert counts.sum() == 500
    assert counts[3:].tolist() == [0, 0]
    assert counts[:3].min() > 120  # uniform: 167 each, standard deviation 11


@pytest.mark.parametrize(
    ("name", "real"), [("offline-last", 9), ("ordisco-last", 9), ("offline-all", 4), ("ordisco", 4)]
)
def test_only_strategy_2_and_the_last_g_show_replayed_images_to_d_as_real(
    name: str, real: int, monkeypatch: pytest.MonkeyPatch
):
    learner = ready(name, increments=2)
    images, seen = drawn(learner), []
    keep: Callable[..., Tensor] = losses.real_pairs
    monkeypatch.setattr(losses, "real_pairs", lambda d, w, form: seen.append(int((w > 0).sum())) or keep(d, w, form))
    discriminate(learner, images)
    assert seen == [real]  # 4 labelled (and 5 replayed)


def d_of(learner: Learner, x: Tensor) -> Tensor:
    return learner.state.nets.gan.D.module(x)[:, :3]


@pytest.mark.parametrize("balance", [False, True])
def test_mismatched_and_balanced_pairs_in_the_loss_of_d(balance: bool):
    changes = {"pseudo_real": 0.6, "pseudo_real_start": 0.0, "alpha": 0.3, "d_balance": balance}
    learner = ready(**changes, mismatched=0.5, pseudo_threshold=0.5)
    images = drawn(learner)
    p = torch.tensor([[0.6, 0.3, 0.1], [0.4, 0.3, 0.3], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.9, 0.1, 0], [1.0, 0, 0]])
    y = torch.cat([images.y_l, torch.tensor([0, 0, 1, 2, 0, 0])])
    w = torch.tensor([0.1] * 4 + [0.1, 0, 0.1, 0.1, 0.1, 0.1])  # the second pseudo-label is not trusted
    w = w / w.sum()
    if balance:
        mass = torch.stack([w[y == k].sum() for k in range(3)])
        w = w / mass[y] / (mass > 0).sum()
    d = d_of(learner, torch.cat([images.x_l, images.x_u]))
    wrong = torch.stack(
        [F.relu(1 + row[[k for k in range(3) if k != label]]).mean() for row, label in zip(d, y, strict=True)]
    )
    own = d[torch.arange(len(y)), y]
    d_g = d_of(learner, images.generated.x)[torch.arange(5), images.generated.y]
    loss = (w * F.relu(1 - own)).sum() + 0.3 * F.relu(1 + d_g).mean() + 0.5 * (w * wrong).sum()
    loss = loss + 0.7 * F.relu(1 + d[4:][torch.arange(6), y[4:]]).mean()
    torch.testing.assert_close(loss_of_d(learner, images, Pseudo(images.x_u, p)), loss)


def test_d_sees_shifted_images_and_g_learns_through_the_shift(monkeypatch: pytest.MonkeyPatch):
    learner = ready(d_translate=2)
    seen: list[Tensor] = []
    learner.state.nets.gan.D.module.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    images = drawn(learner)
    deceive(learner, images)
    assert touched(learner) == {"G"}
    assert not torch.equal(seen[0], images.generated.x)
    pixels = images.generated.x.detach().flatten(1)
    for shifted, whole in zip(seen[0].detach().flatten(1), pixels, strict=True):
        assert torch.isin(shifted, whole).all()
