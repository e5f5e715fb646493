"""Parameters and multiply–adds of a network, counted by running it on one image."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ordisco.nets.classifier import make_classifier
from ordisco.nets.gan import make_discriminator, make_generator
from ordisco.settings import LearnerSettings


@dataclass(frozen=True)
class Size:
    """How large a network is."""

    parameters: int
    multiply_adds: int


@torch.no_grad()
def measure(module: nn.Module, *inputs: Tensor) -> Size:
    """Parameters, and multiply–adds of the convolutions and matrix products for the given inputs."""
    training = module.training
    counter = FlopCounterMode(display=False)
    with counter:
        module.eval()(*inputs)
    module.train(training)
    return Size(sum(p.numel() for p in module.parameters()), counter.get_total_flops() // 2)


def preset_sizes(settings: LearnerSettings, image_shape: tuple[int, int, int], num_classes: int) -> dict[str, Size]:
    """The sizes of C, G and D for one image."""
    c, g = settings.classifier, settings.gan
    x, y = torch.zeros(1, *image_shape), torch.zeros(1, dtype=torch.int64)
    return {
        "C": measure(make_classifier(c.c_net, image_shape, num_classes, c.c_width, c.dropout, "linear"), x),
        "G": measure(make_generator(g, image_shape, num_classes), torch.zeros(1, g.z_dim), y),
        "D": measure(make_discriminator(g, image_shape, num_classes), x),
    }
