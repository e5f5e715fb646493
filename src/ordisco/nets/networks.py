"""The networks of a learner: C, its teacher C′, G and D, with their flat vectors and their optimisers."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ordisco.nets.classifier import make_classifier
from ordisco.nets.gan import make_discriminator, make_generator
from ordisco.nets.modes import running
from ordisco.nets.network import Layout, Network
from ordisco.settings.learner import GanSettings, LearnerSettings

Shape = tuple[int, int, int]


class Gan:
    """G and D and, where the settings ask for one, the moving average of G."""

    def __init__(self, settings: GanSettings, image_shape: Shape, num_classes: int, device: torch.device) -> None:
        self.settings, self.image_shape, self.device = settings, image_shape, device
        self.G = Network(make_generator(settings, image_shape, num_classes), device)
        self.D = Network(make_discriminator(settings, image_shape, num_classes), device)
        self.G_mean: Network | None = None
        if settings.g_ema > 0:
            self.G_mean = Network(copy.deepcopy(self.G.module).eval().requires_grad_(False), device)

    @property
    def sampler(self) -> Network:
        """The generator that replays: the moving average of G if there is one."""
        return self.G if self.G_mean is None else self.G_mean

    @property
    def restarts(self) -> bool:
        """Does G begin each increment as its moving average?"""
        return self.settings.g_restart == "average" and self.G_mean is not None

    @torch.no_grad()
    def restart(self) -> None:
        """G becomes its moving average, if it restarts: from one increment to the next, one is all there is to keep."""
        if self.restarts and self.G_mean is not None:
            self.G.flat.load("G", self.G_mean.flat.state("G"))

    @property
    def forgets_D(self) -> bool:
        """Does D begin each increment anew?"""
        return self.settings.d_restart == "fresh"

    def begin_D(self, num_classes: int) -> None:
        """A D that knows nothing in the place of the one there is, with its moments."""
        self.D = Network(make_discriminator(self.settings, self.image_shape, num_classes), self.device)

    def start_optimizers(self, keep: bool) -> None:
        """Optimisers for an increment."""
        betas = (self.settings.gan_beta1, self.settings.gan_beta2)
        self.G.start_optimizer(self.settings.g_lr, betas, keep)
        self.D.start_optimizer(self.settings.d_lr, betas, keep)


class Networks:
    """C, its teacher C′ and, where a method has a GAN, G and D."""

    def __init__(
        self,
        settings: LearnerSettings,
        image_shape: Shape,
        num_classes: int,
        head: str,
        gan: bool,
        device: torch.device,
    ) -> None:
        c = settings.classifier
        self.settings = c
        self.capacity = num_classes
        self.C = Network(make_classifier(c.c_net, image_shape, num_classes, c.width, c.dropped, head), device)
        self.teacher = Network(copy.deepcopy(self.C.module).eval().requires_grad_(False), device)
        self.gan = Gan(settings.gan, image_shape, num_classes, device) if gan else None

    def named(self) -> Iterator[tuple[str, Network]]:
        """Those that there are, by the paper's names."""
        yield "C", self.C
        yield "teacher", self.teacher
        if self.gan is not None:
            yield "G", self.gan.G
            yield "D", self.gan.D
            if self.gan.G_mean is not None:
                yield "G_mean", self.gan.G_mean

    def start_optimizers(self) -> None:
        """Optimisers for an increment: fresh ones, or with the moments of the last where the settings keep them."""
        keep = self.settings.moments == "kept"
        self.C.start_optimizer(self.settings.c_lr, (self.settings.c_beta1, self.settings.c_beta2), keep)
        if self.gan is not None:
            self.gan.start_optimizers(keep)

    def stop_optimizers(self) -> None:
        """Forget the optimisers' moments, unless the settings keep them."""
        if self.settings.moments == "fresh":
            for _, network in self.named():
                network.optimizer = None

    def train(self) -> None:
        """C and G in training mode; C′ and the moving average of G stay in evaluation mode but for `teaching`."""
        for network in (self.C, None if self.gan is None else self.gan.G):
            if network is not None and not network.module.training:
                network.module.train()

    @contextmanager
    def teaching(self) -> Iterator[nn.Module]:
        """C′ as it teaches: batch norm by the mini-batch, like C, and dropout if the settings say so.

        Its running statistics, which serve prediction, are gathered after an increment (`learner/statistics.py`); they
        are neither used nor changed here.
        """
        with running(self.teacher, norms=True, others=self.settings.teacher_dropout):
            yield self.teacher.module

    def grow(self, num_classes: int) -> dict[str, Layout]:
        """Make room for more classes in every network."""
        self.capacity = num_classes
        layouts = {name: network.grow(num_classes) for name, network in self.named()}
        for averaged in (self.teacher, None if self.gan is None else self.gan.G_mean):
            if averaged is not None:
                averaged.module.requires_grad_(False)
        layouts["C"].copy_new(
            self.C.module, self.teacher.module
        )  # a new class begins alike in C and C′, G and its average
        if self.gan is not None and self.gan.G_mean is not None:
            layouts["G"].copy_new(self.gan.G.module, self.gan.G_mean.module)
        return layouts

    def state(self) -> dict[str, Tensor]:
        """Everything of the networks that a checkpoint needs."""
        return {key: value for name, network in self.named() for key, value in network.state(name).items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put a checkpoint back."""
        for name, network in self.named():
            if f"{name}.theta" in tensors:  # not of a D that begins each increment anew
                network.load(name, tensors)
