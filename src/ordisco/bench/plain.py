"""The training step of ORDisCo with a mean teacher, written the straightforward way: the oracle of `step.py`.

The same equations on the same draws: images augmented one by one, one call of a network a loss term, channels-first
layout, the penalty by autograd over the parameters, and a loop over the parameters for Adam and the moving average.
C and C′ are called once on all their images here too: batch norm couples the images of a call, so that splitting it
would be another mathematics.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco import losses
from ordisco.data import normalize
from ordisco.learner import Learner
from ordisco.nets import classifier, discriminator, generator
from ordisco.pools import Pool
from ordisco.replay import draw_noise
from ordisco.ssl import align_distribution, update_running_mean
from ordisco.step import replay_ramp


class PlainStep:
    """Takes the steps of a learner in the plain way; the learner's own `step` must not be mixed in."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        c, g = learner.settings.classifier, learner.settings.gan
        assert learner.nets.G is not None and learner.nets.D is not None
        self.C, self.teacher = learner.nets.C.module, learner.nets.teacher.module
        self.G, self.D = learner.nets.G.module, learner.nets.D.module
        betas = (g.gan_beta1, g.gan_beta2)
        self.adam = {
            "C": self.optimizer(self.C, c.c_lr, (c.c_beta1, c.c_beta2)),
            "G": self.optimizer(self.G, g.g_lr, betas),
            "D": self.optimizer(self.D, g.d_lr, betas),
        }

    @staticmethod
    def optimizer(module: nn.Module, lr: float, betas: tuple[float, float]) -> torch.optim.Adam:
        """Adam with a loop over the parameters."""
        return torch.optim.Adam(module.parameters(), lr=lr, betas=betas, foreach=False, fused=False)

    def step(self) -> dict[str, float]:
        """D, G, C, then C′; returns the loss terms."""
        with channels_first():
            return self._step()

    def _step(self) -> dict[str, float]:
        learner, s = self.learner, self.learner.settings
        learner.nets.train()
        progress = learner.step_in_increment / learner.steps
        replay_weight = s.replay.replay_weight * replay_ramp(progress, s.replay.replay_start, s.replay.replay_ramp)
        consistency = s.unlabeled.consistency_weight * losses.ramp_up(progress, s.unlabeled.consistency_ramp)
        k = len(learner.classes)

        learner.seed_step("data")
        x_l, y_l = draw(learner.labeled, s.step.batch_labeled)
        x_u, _ = draw(learner.unlabeled, s.step.batch_unlabeled)
        assert y_l is not None
        learner.seed_step("gan")
        z, y_g = draw_noise(s.step.batch_generated, s.gan.z_dim, k, learner.device)

        learner.seed_step("classifier")
        with torch.no_grad(), still(self.G):  # the samples for D and for the replay
            x_fake, x_r = self.G(z, y_g), self.G(z, y_g)
        x_all = torch.cat([x_u, x_r]) if replay_weight > 0 else x_u
        student_view, teacher_view = self.weak(x_all), self.weak(x_all)
        with torch.no_grad(), learner.nets.teaching() as C_prime:
            target = C_prime(teacher_view)[:, :k].softmax(1)

        terms = self.discriminator(
            x_l, y_l, x_u, self.align(target[: len(x_u)], "pseudo_labels"), x_fake, y_g, progress
        )
        terms["generator"] = self.generator(z, y_g)

        learner.seed_step("student")
        if s.unlabeled.align == "all":
            target = torch.cat([self.align(target[: len(x_u)], "targets"), target[len(x_u) :]])
        logits = self.C(torch.cat([self.weak(x_l), student_view]))[:, :k]
        logits_l, logits_u, logits_r = logits.tensor_split([len(x_l), len(x_l) + len(x_u)])
        supervised = losses.supervised(logits_l, y_l)
        unlabeled = consistency * losses.consistency(logits_u, target[: len(x_u)]).mean()
        loss = losses.classifier_partial(supervised, unlabeled)
        if replay_weight > 0:
            per_image = consistency * losses.consistency(logits_r, target[len(x_u) :])
            replayed = replay_weight * losses.replay(logits_r, y_g, per_image)
            loss = losses.classifier(loss, replayed)
            terms["replay"] = replayed.item()
        self.update("C", loss)
        decay = min(s.classifier.ema, 1 - 1 / (learner.total_steps + 1))
        for mine, other in zip(self.teacher.state_dict().values(), self.C.state_dict().values(), strict=True):
            if mine.is_floating_point():
                mine.mul_(decay).add_(other, alpha=1 - decay)
        learner.step_in_increment += 1
        learner.total_steps += 1
        return terms | {"supervised": supervised.item(), "unlabeled": unlabeled.item()}

    def discriminator(
        self, x_l: Tensor, y_l: Tensor, x_u: Tensor, p: Tensor, x_g: Tensor, y_g: Tensor, progress: float
    ) -> dict[str, float]:
        """Eqs. 4 and 8, a call of D for each term."""
        s, kept, k = self.learner.settings.gan, self.learner.kept, len(self.learner.classes)
        form: losses.Adversarial = s.adversarial  # type: ignore[assignment]
        hard = losses.one_hot_argmax(p)
        pseudo = (self.D(x_u)[:, :k] * hard).sum(1) if progress >= s.pseudo_real_start else None
        real = losses.called_real(losses.pair(self.D(x_l)[:, :k], y_l), form).mean()
        if pseudo is not None:
            real = (1 - s.pseudo_real) * real + s.pseudo_real * losses.called_real(pseudo, form).mean()
        third = losses.pseudo_pairs_fake(self.D(x_u)[:, :k], p if s.third_term == "expectation" else hard, form)
        loss = losses.discriminator(real, losses.pair(self.D(x_g)[:, :k], y_g), third, s.alpha, form)
        penalty = loss.new_zeros(())
        if kept.xi is not None and kept.anchor is not None:
            offset = 0
            for parameter in self.D.parameters():
                part = slice(offset, offset + parameter.numel())
                moved = parameter.flatten() - kept.anchor[part]
                penalty = penalty + s.d_penalty * (kept.xi[part] * moved.square()).sum()
                offset += parameter.numel()
        self.update("D", loss + penalty)
        self.D.power_iteration()  # type: ignore[operator]
        return {"discriminator": loss.item(), "penalty": penalty.item()}

    def generator(self, z: Tensor, y: Tensor) -> float:
        """Eq. 5 on images generated anew from the same noise."""
        self.D.requires_grad_(False)
        d = losses.pair(self.D(self.G(z, y)), y)
        loss = losses.generator(d, self.learner.settings.gan.adversarial)  # type: ignore[arg-type]
        self.D.requires_grad_(True)
        self.update("G", loss)
        return loss.item()

    def update(self, name: str, loss: Tensor) -> None:
        """Backward, then Adam."""
        self.adam[name].zero_grad(set_to_none=False)
        loss.backward()
        self.adam[name].step()

    def align(self, p: Tensor, use: str) -> Tensor:
        """Distribution alignment, as in `step.align`."""
        if self.learner.settings.unlabeled.align == "none":
            return p
        means = self.learner.mean_prediction
        means[use] = p.mean(0) if use not in means else update_running_mean(means[use], p)
        return align_distribution(p, self.learner.expected, means[use])

    def weak(self, images: Tensor) -> Tensor:
        """`augment.weak`, image by image."""
        t, flip, n = self.learner.augment.translate, self.learner.augment.flip, len(images)
        shift = torch.randint(-t, t + 1, (2, n, 1))
        mirror = torch.rand(n, 1) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
        views = []
        for i in range(n):
            down, right = t + int(shift[0, i]), t + int(shift[1, i])
            padded = F.pad(images[i : i + 1], (t, t, t, t), mode="reflect")[0]
            view = padded[:, down : down + images.shape[2], right : right + images.shape[3]]
            views.append(view.flip(2) if mirror[i] else view)
        return torch.stack(views)


def draw(pool: Pool, count: int) -> tuple[Tensor, Tensor | None]:
    """`Pool.draw`, image by image."""
    index = torch.randint(len(pool), (count,), device=pool.images.device)
    images = torch.stack([normalize(pool.images[i]) for i in index])
    return images, None if pool.slots is None else pool.slots[index]


@contextmanager
def still(G: nn.Module) -> Iterator[None]:
    """G by mini-batch statistics, its running ones left as they are."""
    norms = [part for part in G.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True


@contextmanager
def channels_first() -> Iterator[None]:
    """The networks without their change of layout."""
    modules = (classifier, discriminator, generator)
    kept = [module.channels_last for module in modules]
    for module in modules:
        module.channels_last = lambda x: x.contiguous()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, function in zip(modules, kept, strict=True):
            module.channels_last = function  # type: ignore[attr-defined]
