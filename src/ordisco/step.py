"""One training step: D, G, C and the teacher C′ in order. ORDisCo and every baseline go through it.

The mini-batches of all terms are put together so that each network is called once: D on real, unlabelled and
generated images, C on the labelled images and all views of the others. D has no batch norm, so for D that is
the same as one call a term; batch norm in C sees the whole mini-batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ordisco import losses
from ordisco.adversary import discriminator_step, generator_step
from ordisco.networks import by_mini_batch
from ordisco.penalties import SI
from ordisco.replay import draw_noise
from ordisco.ssl import Views, align_distribution, update_running_mean
from ordisco.unified import less_forget, less_forget_weight, margin_ranking

if TYPE_CHECKING:
    from ordisco.learner import Learner

TRACE = 50  # steps whose losses are kept, to be reported and checked together
TERMS = ("supervised", "unlabeled", "replay", "discriminator", "generator", "penalty")


@dataclass
class Batch:
    """The images of one step, in [−1, 1], and their class slots; None where a method has no such images."""

    x_l: Tensor  # labelled, from b_l ∪ SMB
    y_l: Tensor
    x_u: Tensor | None  # unlabelled, from b_ul (∪ UMB)
    x_g: Tensor | None = None  # generated now, with a gradient to G
    y_g: Tensor | None = None
    x_r: Tensor | None = None  # replayed into C
    y_r: Tensor | None = None


def train_step(learner: Learner) -> dict[str, Tensor]:
    """D, G, C, then C′; returns the value of each loss term."""
    s = learner.settings
    progress = learner.step_in_increment / learner.steps
    replay_weight = s.replay.replay_weight * replay_ramp(progress, s.replay.replay_start, s.replay.replay_ramp)
    consistency_weight = s.unlabeled.consistency_weight * losses.ramp_up(progress, s.unlabeled.consistency_ramp)
    terms: dict[str, Tensor] = {}

    learner.seed_step("data")
    batch = draw(learner)
    if learner.nets.G is not None:
        learner.seed_step("gan")
        for _ in range(s.gan.d_steps - 1):
            extra_discriminator_step(learner, progress)
        batch.x_g, batch.y_g = generate(learner, s.step.batch_generated)
    if replay_weight > 0 or learner.method.replay == "offline-last":  # there, also D learns from replayed images
        batch.x_r, batch.y_r = replayed(learner, batch, progress)

    learner.seed_step("classifier")
    views = unlabeled_views(learner, batch)
    teacher = tuple(teach(learner, view) for view in views.teacher)
    if learner.nets.G is not None:
        labels = pseudo_labels(learner, batch.x_u, teacher)
        terms["discriminator"], terms["penalty"] = discriminator_step(learner, batch, labels, progress)
        terms["generator"] = generator_step(learner, batch)
    learner.seed_step("student")  # dropout in C is the same whether or not C′ was asked for pseudo-labels
    terms |= classifier_step(learner, batch, views, teacher, consistency_weight, replay_weight)
    decay = min(s.classifier.ema, 1 - 1 / (learner.total_steps + 1))
    learner.nets.teacher.flat.average(learner.nets.C.flat, decay)
    return terms


def extra_discriminator_step(learner: Learner, progress: float) -> None:
    """A D step on images of its own, for several D steps a G step."""
    batch = draw(learner)
    with torch.no_grad():
        batch.x_g, batch.y_g = generate(learner, learner.settings.step.batch_generated)
    if learner.method.replay == "offline-last":
        batch.x_r, batch.y_r = replayed(learner, batch, progress)
    discriminator_step(learner, batch, pseudo_labels(learner, batch.x_u, ()), progress)


# ---------------------------------------------------------------------- images


def draw(learner: Learner) -> Batch:
    """Labelled and unlabelled images of this increment and of memory."""
    sizes = learner.settings.step
    x_l, y_l = learner.labeled.draw(sizes.batch_labeled)
    x_u = learner.unlabeled.draw(sizes.batch_unlabeled)[0] if len(learner.unlabeled) else None
    assert y_l is not None
    return Batch(x_l, y_l, x_u)


def generate(learner: Learner, count: int) -> tuple[Tensor, Tensor]:
    """Images drawn now from G, y′ uniform over the classes seen so far."""
    assert learner.nets.G is not None
    z, y = draw_noise(count, learner.settings.gan.z_dim, len(learner.classes), learner.device)
    with learner.fabric.autocast():
        x = learner.nets.G.module(z, y)
    return x.float(), y


def replayed(learner: Learner, batch: Batch, progress: float) -> tuple[Tensor | None, Tensor | None]:
    """What is replayed into C: images of the living generator (online), or those of saved generators."""
    if learner.method.replay == "online":
        return replayed_online(learner, batch, progress)
    saved = learner.kept.saved
    if saved is not None and len(saved):
        return saved.draw(learner.settings.step.batch_generated, learner.settings.gan.z_dim)
    return None, None


def replayed_online(learner: Learner, batch: Batch, progress: float) -> tuple[Tensor | None, Tensor | None]:
    """The very images just generated; or images of the moving average of G, or of old classes only."""
    s, nets = learner.settings, learner.nets
    only_old = progress < s.replay.replay_new and learner.classes_before < len(learner.classes)
    if nets.G_mean is None and not only_old:
        return (None, None) if batch.x_g is None else (batch.x_g.detach(), batch.y_g)
    classes = learner.classes_before if only_old else len(learner.classes)
    if nets.sampler is None or classes == 0:
        return None, None
    z, y = draw_noise(s.step.batch_generated, s.gan.z_dim, classes, learner.device)
    with torch.no_grad(), learner.fabric.autocast(), by_mini_batch(nets.sampler.module):
        return nets.sampler.module(z, y).float(), y


def replay_ramp(progress: float, start: float, ramp: float) -> float:
    """0 before `start`, then up to 1 in a straight line over the share `ramp` of the increment."""
    if progress < start:
        return 0.0
    return min(1.0, (progress - start) / ramp) if ramp > 0 else 1.0


# ---------------------------------------------------------------------- the teacher's word


class Seen:
    """C restricted to the classes seen so far."""

    def __init__(self, C: nn.Module, classes: int) -> None:
        self.C, self.classes = C, classes

    def __call__(self, x: Tensor) -> Tensor:
        """Logits (n, classes seen)."""
        logits: Tensor = self.C(x)
        return logits[:, : self.classes].float()

    def modules(self) -> Iterator[nn.Module]:
        """C's modules."""
        return self.C.modules()


def unlabeled_views(learner: Learner, batch: Batch) -> Views:
    """The views of unlabelled and replayed images that the unlabelled loss asks for."""
    present = [x for x in (batch.x_u, batch.x_r) if x is not None]
    if learner.unlabeled_loss is None or not present:
        return Views((), ())
    C = Seen(learner.nets.C.module, len(learner.classes))
    with learner.fabric.autocast():
        return learner.unlabeled_loss.views(torch.cat(present), learner.augment, C)


@torch.no_grad()
def teach(learner: Learner, x: Tensor) -> Tensor:
    """Logits of C′ for the classes seen so far."""
    with learner.fabric.autocast(), learner.nets.teaching() as C_prime:
        logits: Tensor = C_prime(x)
    return logits[:, : len(learner.classes)].float()


def pseudo_labels(learner: Learner, x_u: Tensor | None, teacher: tuple[Tensor, ...]) -> Tensor | None:
    """C(x) of Eq. 4: the (aligned) class probabilities of C′, from the view it has already seen if there is one."""
    if x_u is None:
        return None
    logits = teacher[0][: len(x_u)] if teacher else teach(learner, x_u)
    p = logits.softmax(1)
    return p if learner.settings.unlabeled.align == "none" else align(learner, p, "pseudo_labels")


def align(learner: Learner, p: Tensor, use: str) -> Tensor:
    """Distribution alignment with the classes expected among the unlabelled images.

    Each use has its own running mean, so that D's pseudo-labels leave the targets of C alone.
    """
    now = learner.averaged(p.detach().mean(0))
    old = learner.mean_prediction.get(use)
    mean = now if old is None else update_running_mean(old, now[None])
    learner.mean_prediction[use] = mean
    return align_distribution(p, learner.expected, mean)


# ---------------------------------------------------------------------- C


def classifier_step(
    learner: Learner,
    batch: Batch,
    views: Views,
    teacher: tuple[Tensor, ...],
    consistency_weight: float,
    replay_weight: float,
) -> dict[str, Tensor]:
    """Eqs. 1–3, 6 and 7: one call of C on all its inputs, then the penalties of the baselines."""
    C, k = learner.nets.C, len(learner.classes)
    inputs = [learner.augment.weak(batch.x_l), *views.student]
    if batch.x_r is not None and not views.student:
        inputs.append(learner.augment.weak(batch.x_r))
    x = torch.cat(inputs)
    with learner.fabric.autocast():
        features = C.module.features(x)  # type: ignore[operator]
        logits = C.module.head(features)[:, :k].float()  # type: ignore[operator]
    logits_l, *student = logits.split([len(part) for part in inputs])
    n_u = 0 if batch.x_u is None else len(batch.x_u)

    supervised = losses.supervised(logits_l, batch.y_l)
    unlabeled = replay = supervised.new_zeros(())
    per_image = logits.new_zeros(len(student[0]) if student else 0)
    if views.student and learner.unlabeled_loss is not None:
        per_image = learner.unlabeled_loss.loss(tuple(student), teacher, lambda p: align_targets(learner, p, n_u))
        per_image = consistency_weight * per_image
        unlabeled = per_image[:n_u].mean() if n_u else unlabeled
    if batch.x_r is not None and batch.y_r is not None:
        # The first view of a replayed image serves as labelled and as unlabelled data.
        start = n_u if views.student else 0
        replay = replay_weight * losses.replay(
            student[0][start:], batch.y_r, per_image[start:], learner.settings.replay.replay_unlabeled
        )
    loss = losses.classifier(losses.classifier_partial(supervised, unlabeled), replay)
    if learner.method.head == "cosine":
        loss = loss + unified_terms(learner, x, features, batch)
    terms = {"supervised": supervised.detach(), "unlabeled": unlabeled.detach(), "replay": replay.detach()}
    if learner.kept.penalty is not None:
        terms["penalty"] = learner.kept.penalty.value(C.flat.theta)
    backward_classifier(learner, loss, supervised)
    return terms


def align_targets(learner: Learner, p: Tensor, n_u: int) -> Tensor:
    """Align the targets of the unlabelled images; those of replayed images are left alone."""
    if learner.settings.unlabeled.align != "all" or n_u == 0:
        return p
    return torch.cat([align(learner, p[:n_u], "targets"), p[n_u:]])


def unified_terms(learner: Learner, x: Tensor, features: Tensor, batch: Batch) -> Tensor:
    """The Unified Classifier's less-forget constraint on all images and margin ranking on old labelled ones."""
    old, m = learner.kept.old_features, learner.settings.memory
    if old is None:
        return features.new_zeros(())
    new_classes = len(learner.classes) - learner.classes_before
    with torch.no_grad(), learner.fabric.autocast():
        before = old.module(x)
    weight = less_forget_weight(m.less_forget, learner.classes_before, new_classes)
    loss = weight * less_forget(before.float(), features.float()).mean()
    if new_classes:
        labelled = features[: len(batch.x_l)].float()
        cosines = learner.nets.C.module.head.cosines(labelled)[:, : len(learner.classes)]  # type: ignore[operator, union-attr]
        loss = loss + m.margin_ranking * margin_ranking(cosines, batch.y_l, learner.classes_before).mean()
    return loss


def backward_classifier(learner: Learner, loss: Tensor, supervised: Tensor) -> None:
    """Gradients of C, those of EWC, SI or MAS added in closed form, and the optimiser's step."""
    C, penalty = learner.nets.C, learner.kept.penalty
    path_gradient = None
    if isinstance(penalty, SI) and learner.method.penalty_on == "sl":
        supervised.backward(retain_graph=True)
        learner.reduce(C)
        path_gradient = C.flat.grad.clone()
        C.flat.grad.zero_()
    loss.backward()
    learner.reduce(C)
    if penalty is None:
        C.step()
        return
    if path_gradient is None:
        path_gradient = C.flat.grad.clone()
    C.flat.grad.add_(penalty.gradient(C.flat.theta))
    before = C.flat.theta.clone()
    C.step()
    if isinstance(penalty, SI):
        penalty.after_step(path_gradient, C.flat.theta - before)
