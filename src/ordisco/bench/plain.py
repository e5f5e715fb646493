"""The training step of ORDisCo written the straightforward way: the oracle of `step.py` and `gan_step.py`.

The same equations on the same draws: images augmented one by one, a call of the networks for each loss term,
channels-first layout, the penalty by autograd over the parameters, and a loop over the parameters for Adam and the
moving averages. C is called once on all its images here too, and C′ on all of its: batch norm couples the images of a
call, so that splitting it would be another mathematics. The unlabelled loss is a mean teacher or FixMatch labelled
by C′.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco import losses
from ordisco.bench import plain_images
from ordisco.generators import draw_noise
from ordisco.learner import Learner
from ordisco.nets import classifier, dcgan, discriminator, generator
from ordisco.nets.modes import running
from ordisco.replay import replay_ramp
from ordisco.ssl import align_distribution, update_running_mean


class PlainStep:
    """Takes the steps of a learner in the plain way; the learner's own `step` must not be mixed in."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.settings = learner, learner.settings
        c, g, u = self.settings.classifier, self.settings.gan, self.settings.unlabeled
        self.state, gan = learner.state, learner.state.nets.gan
        assert gan is not None
        assert g.d_steps == 1
        assert u.unlabeled_loss == "mean-teacher" or (u.unlabeled_loss, u.labeller) == ("fixmatch", "teacher")
        self.C, self.C_prime = learner.state.nets.C.module, learner.state.nets.teacher.module
        self.G, self.D = gan.G.module, gan.D.module
        self.G_mean = None if gan.G_mean is None else gan.G_mean.module
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
        learner, state, s = self.learner, self.state, self.settings
        state.nets.train()
        self.k, self.progress = len(state.classes), state.step / learner.steps
        replay_weight = s.replay.replay_weight * replay_ramp(self.progress, s.replay.replay_start, s.replay.replay_ramp)

        assert learner.pools is not None
        self.seed("data")
        x_l, index = plain_images.draw(learner.pools.images, s.step.batch_labeled)
        y_l = learner.pools.slots[index]
        x_u, _ = plain_images.draw(learner.pools.unlabeled, s.step.batch_unlabeled)
        self.seed("gan")
        z, y_g = self.noise(self.k)
        x_r, y_r = self.replayed(z, y_g) if replay_weight > 0 else (None, None)

        self.seed("classifier")
        x_all = x_u if x_r is None else torch.cat([x_u, x_r])
        strong = s.unlabeled.unlabeled_loss == "fixmatch" or s.unlabeled.student_view == "strong"
        student_view = self.strong(x_all) if strong else self.weak(x_all)
        teacher_view = self.weak(x_all)

        p = self.align(self.taught(teacher_view)[: len(x_u)], "pseudo_labels", s.unlabeled.align != "none")
        terms = self.discriminator(x_l, y_l, x_u, p, z, y_g)
        terms["generator"] = self.generator(z, y_g)

        self.seed("student")
        target = self.taught(teacher_view)
        target = torch.cat([self.align(target[: len(x_u)], "targets", s.unlabeled.align == "all"), target[len(x_u) :]])
        terms |= self.classifier(x_l, y_l, student_view, target, len(x_u), y_r, replay_weight)
        decay = min(s.classifier.ema, 1 - 1 / (state.total_steps + 1))
        follow(self.C_prime, self.C, decay)
        state.step += 1
        state.total_steps += 1
        return terms

    # ------------------------------------------------------------------ images

    def seed(self, part: str) -> None:
        """Seed torch as the fast step does."""
        self.learner.setup.seed_step(self.state.total_steps, part)

    def noise(self, classes: int) -> tuple[Tensor, Tensor]:
        """Z and y′ for as many images as a step generates."""
        return draw_noise(self.settings.step.batch_generated, self.settings.gan.z_dim, classes, self.learner.device)

    def generated(self, z: Tensor, y: Tensor) -> Tensor:
        """Images of G, without a gradient and without a trace in its running statistics."""
        with torch.no_grad(), running(self.G, norms=True):
            images: Tensor = self.G(z, y)
        return images

    def replayed(self, z: Tensor, y: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Images for C: of G, generated anew from D's noise, or of its moving average, or of old classes only."""
        old, seen = self.state.classes.before, self.k
        only_old = self.progress < self.settings.replay.replay_new and old < seen
        if self.G_mean is None and not only_old:
            return self.generated(z, y), y
        if only_old and old == 0:
            return None, None
        z, y = self.noise(old if only_old else seen)
        sampler = self.G if self.G_mean is None else self.G_mean
        with torch.no_grad(), running(sampler, norms=True):
            return sampler(z, y), y

    def weak(self, images: Tensor) -> Tensor:
        """The views of a small change."""
        return plain_images.weak(images, self.learner.setup.augment.translate, self.learner.setup.augment.flip)

    def strong(self, images: Tensor) -> Tensor:
        """The views of a large change."""
        return plain_images.strong(images, self.learner.setup.augment.translate, self.learner.setup.augment.flip)

    # ------------------------------------------------------------------ D and G

    def discriminator(
        self, x_l: Tensor, y_l: Tensor, x_u: Tensor, p: Tensor, z: Tensor, y_g: Tensor
    ) -> dict[str, float]:
        """Eqs. 4 and 8, calls of D for each term."""
        s = self.settings.gan
        form: losses.Adversarial = s.adversarial
        x_l, x_u, x_g = self.moved_for_D(x_l, x_u, self.generated(z, y_g))
        confidence, likely = p.max(1)
        share = s.pseudo_real if self.progress >= s.pseudo_real_start else 0.0
        weights = losses.pair_weights(len(x_l), (confidence >= s.pseudo_threshold).float(), share)
        if s.d_balance:
            weights = losses.balanced(weights, torch.cat([y_l, likely]), self.k)
        w_l, w_u = weights.tensor_split([len(x_l)])
        loss = losses.real_pairs(losses.pair(self.judged(x_l), y_l), w_l, form)
        if share > 0:
            loss = loss + losses.real_pairs(losses.pair(self.judged(x_u), likely), w_u, form)
        if s.mismatched > 0:
            wrong = (w_l * losses.mismatched_pairs_fake(self.judged(x_l), y_l, form)).sum()
            if share > 0:
                wrong = wrong + (w_u * losses.mismatched_pairs_fake(self.judged(x_u), likely, form)).sum()
            loss = loss + s.mismatched * wrong
        loss = loss + s.alpha * losses.called_fake(losses.pair(self.judged(x_g), y_g), form).mean()
        if s.alpha < 1:
            p = p if s.third_term == "expectation" else losses.one_hot_argmax(p)
            loss = loss + (1 - s.alpha) * losses.pseudo_pairs_fake(self.judged(x_u), p, form).mean()
        penalty = self.penalty()
        self.update("D", loss + penalty)
        self.D.power_iteration()  # type: ignore[operator]
        return {"discriminator": loss.item(), "penalty": penalty.item()}

    def penalty(self) -> Tensor:
        """The second term of Eq. 8, parameter by parameter."""
        held, total, offset = self.state.memories.penalty_on_D, torch.zeros(()), 0
        if held is None or not held.holds:
            return total
        for parameter in self.D.parameters():
            part = slice(offset, offset + parameter.numel())
            moved = parameter.flatten() - held.vectors["anchor"][part]
            total = total + held.weight * (held.vectors["importance"][part] * moved.square()).sum()
            offset += parameter.numel()
        return total

    def generator(self, z: Tensor, y: Tensor) -> float:
        """Eq. 5 on images generated anew from the same noise."""
        s = self.settings.gan
        self.D.requires_grad_(False)
        d = losses.pair(self.judged(*self.moved_for_D(self.G(z, y))), y)
        loss = losses.generator(d, s.adversarial)
        self.D.requires_grad_(True)
        self.update("G", loss)
        if self.G_mean is not None:
            follow(self.G_mean, self.G, min(s.g_ema, 1 - 1 / (self.state.total_steps + 1)))
        return loss.item()

    def judged(self, x: Tensor) -> Tensor:
        """D(x, y) for every class y seen so far."""
        d: Tensor = self.D(x)
        return d[:, : self.k]

    def moved_for_D(self, *parts: Tensor) -> tuple[Tensor, ...]:
        """Images of several kinds, each image shifted at random if the settings say so."""
        pixels = self.settings.gan.d_translate
        moved = plain_images.weak(torch.cat(parts), pixels, flip=False) if pixels else torch.cat(parts)
        return moved.split([len(part) for part in parts])

    # ------------------------------------------------------------------ C

    def taught(self, x: Tensor) -> Tensor:
        """The class probabilities of C′."""
        with torch.no_grad(), self.state.nets.teaching() as C_prime:
            return C_prime(x)[:, : self.k].softmax(1)

    def align(self, p: Tensor, use: str, wanted: bool) -> Tensor:
        """Distribution alignment, as in `targets.aligned`."""
        if not wanted:
            return p
        old = self.state.mean_prediction.get(use)
        mean = p.mean(0) if old is None else update_running_mean(old, p)
        self.state.mean_prediction[use] = mean
        assert self.learner.pools is not None
        return align_distribution(p, self.learner.pools.expected, mean)

    def classifier(
        self, x_l: Tensor, y_l: Tensor, view: Tensor, target: Tensor, n_u: int, y_r: Tensor | None, replay_weight: float
    ) -> dict[str, float]:
        """Eqs. 1–3, 6 and 7."""
        u = self.settings.unlabeled
        logits = self.C(torch.cat([self.weak(x_l), view]))[:, : self.k]
        logits_l, logits_u = logits.tensor_split([len(x_l)])
        supervised = losses.supervised(logits_l, y_l)
        if u.unlabeled_loss == "fixmatch":
            confidence, label = target.max(1)
            per_image = F.cross_entropy(logits_u, label, reduction="none") * (confidence >= u.threshold)
        else:
            per_image = losses.consistency(logits_u, target)
        per_image = u.consistency_weight * losses.ramp_up(self.progress, u.consistency_ramp) * per_image
        unlabeled = per_image[:n_u].mean()
        loss = losses.classifier_partial(supervised, unlabeled)
        terms = {"supervised": supervised.item(), "unlabeled": unlabeled.item()}
        if y_r is not None:
            more = self.settings.replay.replay_unlabeled
            replayed = replay_weight * losses.replay(logits_u[n_u:], y_r, per_image[n_u:], more)
            loss = losses.classifier(loss, replayed)
            terms["replay"] = replayed.item()
        self.update("C", loss)
        return terms

    def update(self, name: str, loss: Tensor) -> None:
        """Backward, then Adam."""
        self.adam[name].zero_grad(set_to_none=False)
        loss.backward()
        self.adam[name].step()


@torch.no_grad()
def follow(average: nn.Module, module: nn.Module, decay: float) -> None:
    """The moving average of a network, tensor by tensor."""
    for mine, other in zip(average.state_dict().values(), module.state_dict().values(), strict=True):
        if mine.is_floating_point():
            mine.mul_(decay).add_(other, alpha=1 - decay)


@contextmanager
def channels_first() -> Iterator[None]:
    """The networks without their change of layout."""
    modules = (classifier, dcgan, discriminator, generator)
    kept = [module.channels_last for module in modules]
    for module in modules:
        module.channels_last = lambda x: x.contiguous()  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, function in zip(modules, kept, strict=True):
            module.channels_last = function  # type: ignore[attr-defined]
