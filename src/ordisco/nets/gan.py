"""The G and D that the settings name."""

from __future__ import annotations

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
    """D for images of that shape."""
    if s.gan_net == "dcgan":
        return PlainDiscriminator(image_shape, num_classes, s.d_width)
    return Discriminator(image_shape, num_classes, s.d_width, s.d_tail, s.d_head)
