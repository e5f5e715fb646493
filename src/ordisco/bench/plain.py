"""ORDisCo, the whole method in one file, written the straightforward way. Read it beside the paper.

The same equations on the same random numbers as the fast step, of which it is the oracle: images augmented one by one,
a call of D for each loss term, gradients by autograd, a loop over parameters for Adam, the moving averages and
Eqs. 8–10. C is called once on all its images here too, and C′ on all of its: batch norm couples the images of a call,
so that splitting it would be another mathematics. The unlabelled loss is a mean teacher, or FixMatch labelled by C′.
Beyond the paper it has what the presets have, and `d_colour`; else the paper's form: rates, replay, D, what is kept.
`examples/plain_ordisco.py` runs it on the digits.
"""

from __future__ import annotations

import copy
import functools

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.bench import plain_images
from ordisco.data.pixels import normalize
from ordisco.learner.generators import draw_noise
from ordisco.learner.replay import replay_ramp
from ordisco.learner.seeding import derive_seed, seeded
from ordisco.maths import losses
from ordisco.maths.unlabeled import make_unlabeled_loss
from ordisco.maths.unlabeled.align import align_distribution
from ordisco.nets.classifier import make_classifier
from ordisco.nets.gan import make_discriminator, make_generator
from ordisco.nets.modes import gathering, running
from ordisco.settings.learner import LearnerSettings

CPU, TRANSLATE = torch.device("cpu"), 1  # a view may be shifted by so many pixels
Shape = tuple[int, int, int]


class PlainORDisCo:
    """Learns increments of uint8 images with labels, −1 where there is none."""

    def __init__(self, settings: LearnerSettings, num_classes: int, image_shape: Shape, seed: int = 0) -> None:
        c, self.settings, self.seed = settings.classifier, settings, seed
        loss = make_unlabeled_loss(settings.unlabeled)
        self.strong = functools.partial(plain_images.strong, any_colours=settings.unlabeled.strong_colours == "any")
        self.weight = 0.0 if loss is None else loss.weight  # of the unlabelled loss, after its ramp
        with seeded(CPU, seed, "init"):
            self.C: nn.Module = make_classifier(c.c_net, image_shape, num_classes, c.width, c.dropped, "linear")
            self.G: nn.Module = make_generator(settings.gan, image_shape, num_classes)
            self.D: nn.Module = make_discriminator(settings.gan, image_shape, num_classes)
        self.C_prime = copy.deepcopy(self.C).eval().requires_grad_(False)
        self.G_mean = copy.deepcopy(self.G).eval().requires_grad_(False) if settings.gan.g_ema > 0 else None
        self.old_classes, self.classes = 0, list[int]()  # labels in the order they came; the position is the slot
        self.buffer_x, self.buffer_y = torch.zeros(0, *image_shape, dtype=torch.uint8), torch.zeros(0, dtype=torch.long)
        self.xi: list[Tensor] = []  # ξ of Eq. 9, a tensor a parameter of D
        self.anchor: list[Tensor] = []  # θ* of Eq. 8
        self.measured = self.total_steps = 0  # b of Eq. 9; steps of all increments

    def learn(self, images: Tensor, labels: Tensor) -> None:
        """Train on an increment, then keep its labelled images (SMB) and what matters in D."""
        self.begin(images, labels)
        with seeded(CPU, self.seed, "learn"):
            for _ in range(self.settings.step.steps):
                self.step()
        self.end()

    def begin(self, images: Tensor, labels: Tensor) -> None:
        """b_l ∪ SMB and b_ul; fresh optimisers."""
        c, g, known = self.settings.classifier, self.settings.gan, labels >= 0
        self.classes += [label for label in labels[known].unique().tolist() if label not in self.classes]
        self.labeled_x = torch.cat([self.buffer_x, images[known]])
        slots = torch.tensor([self.classes.index(label) for label in labels[known].tolist()])
        self.labeled_y = torch.cat([self.buffer_y, slots])
        self.unlabeled_x = images[~known]
        self.expected = torch.bincount(slots, minlength=len(self.classes)) / len(slots)
        self.predicted = {use: torch.zeros(len(self.classes) + 1) for use in ("pseudo_labels", "targets")}
        of_C, of_GAN = (c.c_beta1, c.c_beta2), (g.gan_beta1, g.gan_beta2)
        networks = {"C": (self.C, c.c_lr, of_C), "G": (self.G, g.g_lr, of_GAN), "D": (self.D, g.d_lr, of_GAN)}
        self.adam = {
            name: torch.optim.Adam(network.parameters(), lr, betas, foreach=False)
            for name, (network, lr, betas) in networks.items()
        }
        self.steps_done = 0

    def end(self) -> None:
        """Eqs. 9 and 10 on the unlabelled images, with the labels of C′; then the buffer takes the labelled ones."""
        self.gather_statistics()
        new = [torch.zeros_like(parameter) for parameter in self.D.parameters()]
        for image, y in zip(self.unlabeled_x, self.predict_slots(self.unlabeled_x), strict=True):
            d = self.judged(normalize(image[None]))[0, y]
            for xi, gradient in zip(new, torch.autograd.grad(d.square(), list(self.D.parameters())), strict=True):
                xi += gradient.abs() / len(self.unlabeled_x)
        b, old = self.measured, self.xi or new
        self.xi = [(b * xi + more) / (b + 1) for xi, more in zip(old, new, strict=True)]
        self.measured += 1
        self.anchor = [parameter.detach().clone() for parameter in self.D.parameters()]
        self.buffer_x, self.buffer_y = self.labeled_x, self.labeled_y
        self.old_classes = len(self.classes)

    @torch.no_grad()
    def gather_statistics(self) -> None:
        """C′ and the G that replays gather batch norm's statistics over mini-batches, at their weights of now."""
        n, sampler = self.settings.classifier.statistics, self.G if self.G_mean is None else self.G_mean
        count = self.settings.step.batch_labeled + self.settings.step.batch_unlabeled
        k = round(count * len(self.labeled_x) / (len(self.labeled_x) + len(self.unlabeled_x)))
        with seeded(CPU, self.seed, "statistics", self.total_steps):
            with gathering(self.C_prime):
                for _ in range(n):
                    x_l, x_u = (
                        plain_images.draw(self.labeled_x, k)[0],
                        plain_images.draw(self.unlabeled_x, count - k)[0],
                    )
                    x = torch.cat([x_l, x_u, generated(sampler, *self.noise(len(self.classes)))])
                    self.C_prime(plain_images.weak(x, TRANSLATE, flip=False))
            with gathering(sampler):
                for _ in range(n):
                    sampler(*self.noise(len(self.classes)))

    def step(self) -> dict[str, float]:
        """D, G, C, then C′; returns the loss terms."""
        s = self.settings
        self.k, self.progress = len(self.classes), self.steps_done / s.step.steps
        replay_weight = s.replay.replay_weight * replay_ramp(self.progress, s.replay.replay_start, s.replay.replay_ramp)
        self.draw_from("data")
        x_l, y_l, x_u = self.images()
        self.draw_from("gan")
        for _ in range(s.gan.d_steps - 1):
            self.extra_discriminator_step()
        z, y_g = self.noise(self.k)
        x_r, y_r = self.replayed(z, y_g) if replay_weight > 0 else (x_u[:0], y_g[:0])

        self.draw_from("classifier")
        strong = s.unlabeled.unlabeled_loss == "fixmatch" or s.unlabeled.student_view == "strong"
        x_all = torch.cat([x_u, x_r])
        student_view = (self.strong if strong else plain_images.weak)(x_all, TRANSLATE, flip=False)
        p = self.taught(plain_images.weak(x_all, TRANSLATE, flip=False), x_l, y_l)
        pseudo = self.aligned(p[: len(x_u)], "pseudo_labels", s.unlabeled.align != "none")
        self.draw_from("judged")
        terms = self.discriminator_step(x_l, y_l, x_u, pseudo, z, y_g)
        terms["generator"] = self.generator_step(z, y_g)

        self.draw_from("student")
        targets = torch.cat([self.aligned(p[: len(x_u)], "targets", s.unlabeled.align == "all"), p[len(x_u) :]])
        terms |= self.classifier_step(x_l, y_l, student_view, targets, len(x_u), y_r, replay_weight)
        follow(self.C_prime, self.C, min(s.classifier.ema, 1 - 1 / (self.total_steps + 1)))
        self.steps_done += 1
        self.total_steps += 1
        return terms

    def extra_discriminator_step(self) -> None:
        """A D step on images of its own, for several D steps a G step."""
        x_l, y_l, x_u = self.images()
        z, y_g = self.noise(self.k)
        p = self.aligned(self.taught(x_u, x_l, y_l), "pseudo_labels", self.settings.unlabeled.align != "none")
        self.discriminator_step(x_l, y_l, x_u, p, z, y_g)

    def discriminator_step(
        self, x_l: Tensor, y_l: Tensor, x_u: Tensor, p: Tensor, z: Tensor, y_g: Tensor
    ) -> dict[str, float]:
        """Eqs. 4 and 8, calls of D for each term."""
        s, form = self.settings.gan, self.settings.gan.adversarial
        x_l, x_u, x_g = plain_images.shown([x_l, x_u, generated(self.G, z, y_g)], s.d_translate, s.d_colour)
        confidence, likely = p.max(1)
        share = s.pseudo_real if self.progress >= s.pseudo_real_start else 0.0
        weights = losses.pair_weights(len(x_l), (confidence >= s.pseudo_threshold).float(), share)
        if s.d_balance:
            weights = losses.balanced(weights, torch.cat([y_l, likely]), self.k)
        w_l, w_u = weights.tensor_split([len(x_l)])
        loss = losses.real_pairs(losses.pair(self.judged(x_l), y_l), w_l, form)
        loss = loss + losses.real_pairs(losses.pair(self.judged(x_u), likely), w_u, form)  # w_u is 0 in the paper
        if s.mismatched > 0:
            x, y = torch.cat([x_l, x_u]), torch.cat([y_l, likely])
            loss = loss + s.mismatched * (weights * losses.mismatched_pairs_fake(self.judged(x), y, form)).sum()
        loss = loss + s.alpha * losses.called_fake(losses.pair(self.judged(x_g), y_g), form).mean()
        if s.alpha < 1:
            p = p if s.third_term == "expectation" else losses.one_hot_argmax(p)
            loss = loss + (1 - s.alpha) * losses.pseudo_pairs_fake(self.judged(x_u), p, form).mean()
        penalty = torch.zeros(())
        if self.xi:
            for theta, anchor, xi in zip(self.D.parameters(), self.anchor, self.xi, strict=True):
                penalty = penalty + s.d_penalty * (xi * (theta - anchor).square()).sum()
        self.update("D", loss + penalty)
        self.D.power_iteration()  # type: ignore[operator]
        return {"discriminator": loss.item(), "penalty": penalty.item()}

    def generator_step(self, z: Tensor, y: Tensor) -> float:
        """Eq. 5 on images generated anew from the same noise; D gets no gradient."""
        s = self.settings.gan
        self.D.requires_grad_(False)
        d = losses.pair(self.judged(*plain_images.shown([self.G(z, y)], s.d_translate, s.d_colour)), y)
        loss = losses.generator(d, s.adversarial)
        self.D.requires_grad_(True)
        self.update("G", loss)
        if self.G_mean is not None:
            follow(self.G_mean, self.G, min(s.g_ema, 1 - 1 / (self.total_steps + 1)))
        return loss.item()

    def classifier_step(
        self, x_l: Tensor, y_l: Tensor, view: Tensor, target: Tensor, n_u: int, y_r: Tensor, replay_weight: float
    ) -> dict[str, float]:
        """Eqs. 1–3, 6 and 7."""
        u = self.settings.unlabeled
        labelled = self.strong if self.settings.classifier.labeled_view == "strong" else plain_images.weak
        logits = self.C(torch.cat([labelled(x_l, TRANSLATE, flip=False), view]))[:, : self.k]
        logits_l, logits_u = logits.tensor_split([len(x_l)])
        supervised = losses.supervised(logits_l, y_l)
        if u.unlabeled_loss == "fixmatch":
            confidence, label = target.max(1)
            per_image = F.cross_entropy(logits_u, label, reduction="none") * (confidence >= u.threshold)
        else:
            per_image = losses.consistency(logits_u, target)
        per_image = self.weight * losses.ramp_up(self.progress, u.consistency_ramp) * per_image
        unlabeled, replayed, more = per_image[:n_u].mean(), torch.zeros(()), self.settings.replay.replay_unlabeled
        if len(y_r):
            replayed = replay_weight * losses.replay(logits_u[n_u:], y_r, per_image[n_u:], more)
        self.update("C", losses.classifier(losses.classifier_partial(supervised, unlabeled), replayed))
        return {"supervised": supervised.item(), "unlabeled": unlabeled.item(), "replay": replayed.item()}

    def images(self) -> tuple[Tensor, Tensor, Tensor]:
        """Labelled images with their slots, and unlabelled ones."""
        x_l, index = plain_images.draw(self.labeled_x, self.settings.step.batch_labeled)
        return x_l, self.labeled_y[index], plain_images.draw(self.unlabeled_x, self.settings.step.batch_unlabeled)[0]

    def noise(self, classes: int) -> tuple[Tensor, Tensor]:
        """Z and y′ for as many images as a step generates."""
        return draw_noise(self.settings.step.batch_generated, self.settings.gan.z_dim, classes, CPU)

    def replayed(self, z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Images for C: of G, from D's noise, or of its moving average, or of old classes only (none at first)."""
        only_old = self.progress < self.settings.replay.replay_new and self.old_classes < self.k
        if only_old and self.old_classes == 0:
            return torch.zeros(0, *self.labeled_x.shape[1:]), y[:0]
        if self.G_mean is not None or only_old:
            z, y = self.noise(self.old_classes if only_old else self.k)
        return generated(self.G if self.G_mean is None else self.G_mean, z, y), y

    def judged(self, x: Tensor) -> Tensor:
        """D(x, y) for every class y seen so far."""
        return self.D(x)[:, : len(self.classes)]

    def taught(self, x: Tensor, x_l: Tensor, y_l: Tensor) -> Tensor:
        """The class probabilities of C′, by the statistics of the mini-batch and of images of classes not in it."""
        dropout, absent = self.settings.classifier.teacher_dropout, self.expected[y_l] == 0
        x = torch.cat([x, plain_images.weak(x_l[absent], TRANSLATE, flip=False)])
        with torch.no_grad(), running(self.C_prime, norms=True, others=dropout):
            return self.C_prime(x)[: len(x) - int(absent.sum()), : self.k].softmax(1)

    def aligned(self, p: Tensor, use: str, wanted: bool) -> Tensor:
        """Distribution alignment with the increment's class frequencies."""
        self.predicted[use] = 0.99 * self.predicted[use] + torch.cat([p.sum(0), torch.tensor([len(p)])])
        sums, count = self.predicted[use].tensor_split([self.k])
        return align_distribution(p, self.expected, sums / count) if wanted else p

    def update(self, name: str, loss: Tensor) -> None:
        """Backward, then Adam."""
        self.adam[name].zero_grad()
        loss.backward()
        self.adam[name].step()

    def draw_from(self, part: str) -> None:
        """Seed torch for a part of this step."""
        torch.manual_seed(derive_seed(self.seed, part, self.total_steps, 0))

    @torch.no_grad()
    def predict_slots(self, images: Tensor) -> Tensor:
        """The most likely class of uint8 images by C′, as a position in `classes`."""
        return self.C_prime(normalize(images))[:, : len(self.classes)].argmax(1)


@torch.no_grad()
def follow(average: nn.Module, module: nn.Module, decay: float) -> None:
    """The moving average of a network's weights, tensor by tensor."""
    for mine, other in zip(average.parameters(), module.parameters(), strict=True):
        mine.mul_(decay).add_(other, alpha=1 - decay)


def generated(G: nn.Module, z: Tensor, y: Tensor) -> Tensor:
    """Images without a gradient and without a trace in batch norm's running statistics."""
    with torch.no_grad(), running(G, norms=True):
        return G(z, y)
