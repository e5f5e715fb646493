"""The G and D that the settings name."""

from __future__ import annotations

import torch

from ordisco.nets.dcgan import PlainDiscriminator, PlainGenerator
from ordisco.nets.discriminator import Discriminator
from ordisco.nets.generator import Generator
from ordisco.settings.learner import GanSettings

AnyGenerator = Generator | PlainGenerator


def make_generator(s: GanSettings, image_shape: tuple[int, int, int], num_classes: int) -> AnyGenerator:
    """G for images of that shape."""
    cls = PlainGenerator if s.gan_net == "dcgan" else Generator
    return cls(image_shape, num_classes, s.g_width, s.z_dim)


def make_discriminator(
    s: GanSettings, image_shape: tuple[int, int, int], num_classes: int
) -> Discriminator | PlainDiscriminator:
    """D for images of that shape; with LeCam, what is followed of its scores is a buffer, and so saved with D."""
    D = (
        PlainDiscriminator(image_shape, num_classes, s.d_width)
        if s.gan_net == "dcgan"
        else Discriminator(image_shape, num_classes, s.d_width, s.d_tail, s.d_head)
    )
    if s.lecam > 0:
        D.register_buffer("scores", torch.zeros(3))
    return D
