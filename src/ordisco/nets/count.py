"""Parameters, multiply–adds and memory of networks, counted by running them on one image that has no memory.

Torch's device `meta` knows shapes only, so that networks of any size can be counted before one is built.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from ordisco.nets.classifier import make_classifier
from ordisco.nets.gan import make_discriminator, make_generator
from ordisco.settings.learner import LearnerSettings

WEIGHT = 4  # bytes


@dataclass(frozen=True)
class Size:
    """How large a network is; `activations` are the numbers that its layers give for one image."""

    parameters: int
    multiply_adds: int
    activations: int = field(default=0, compare=False)


@torch.no_grad()
def measure(module: nn.Module, *inputs: Tensor) -> Size:
    """Parameters, and multiply–adds of the convolutions and matrix products for the given image.

    They are what a second image adds: what is done once a call, such as spreading a kernel, does not count.
    """
    outputs: list[int] = []
    layers = [part for part in module.modules() if next(part.parameters(recurse=False), None) is not None]
    hooks = [layer.register_forward_hook(lambda _, __, out: outputs.append(out.numel())) for layer in layers]
    training = module.training
    flops = []
    for times in (1, 2):
        outputs.clear()
        counter = FlopCounterMode(display=False)
        with counter:
            module.eval()(*(torch.cat([x] * times) for x in inputs))
        flops.append(counter.get_total_flops())
    module.train(training)
    for hook in hooks:
        hook.remove()
    parameters = sum(p.numel() for p in module.parameters())
    return Size(parameters, (flops[1] - flops[0]) // 2, sum(outputs) // 2)


@functools.lru_cache(maxsize=256)
def preset_sizes(settings: LearnerSettings, image_shape: tuple[int, int, int], num_classes: int) -> dict[str, Size]:
    """The sizes of C, G and D for one image."""
    c, g = settings.classifier, settings.gan
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        x, y = torch.zeros(1, *image_shape), torch.zeros(1, dtype=torch.int64)
        return {
            "C": measure(make_classifier(c.c_net, image_shape, num_classes, c.width, c.dropped, "linear"), x),
            "G": measure(make_generator(g, image_shape, num_classes), torch.zeros(1, g.z_dim), y),
            "D": measure(make_discriminator(g, image_shape, num_classes), x),
        }


def memory_of_a_step(
    settings: LearnerSettings, image_shape: tuple[int, int, int], num_classes: int, gan: bool, activation: int
) -> int:
    """Bytes that a training step takes, with activations of so many bytes; buffers and copies are left out.

    Weights, gradients and Adam's two moments, the teacher, and what the layers give for the larger of the two
    mini-batches that are never in memory together: that of C, and that of G and D.
    """
    sizes, step = preset_sizes(settings, image_shape, num_classes), settings.step
    unlabeled = 0 if settings.unlabeled.unlabeled_loss == "none" else step.batch_unlabeled
    weights = 6 * sizes["C"].parameters
    images = (step.batch_labeled + unlabeled) * sizes["C"].activations
    if gan:
        weights += 4 * (sizes["G"].parameters + sizes["D"].parameters)
        pairs = (step.batch_labeled + step.batch_generated) * sizes["D"].activations
        images = max(images, pairs + step.batch_generated * sizes["G"].activations)
    return WEIGHT * weights + activation * images
