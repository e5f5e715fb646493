"""C, G and D of the paper, their spectral norm, the flat view of their parameters and the moving average."""

from ordisco.nets.classifier import NineConv, WideResNet, make_classifier
from ordisco.nets.count import Size, measure
from ordisco.nets.discriminator import Discriminator
from ordisco.nets.flat import Flat
from ordisco.nets.gan import AnyGenerator, make_discriminator, make_generator
from ordisco.nets.generator import Generator

__all__ = [
    "AnyGenerator",
    "Discriminator",
    "Flat",
    "Generator",
    "NineConv",
    "Size",
    "WideResNet",
    "make_classifier",
    "make_discriminator",
    "make_generator",
    "measure",
]
