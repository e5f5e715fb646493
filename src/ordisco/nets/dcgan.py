"""G and D without residual connections, in the manner of DCGAN, for a budget of a few hundred steps.

G knows the class from its first layer on; D ends in one score for each class on the flat last map.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.generator import ConditionalBatchNorm
from ordisco.nets.grow import grow_rows
from ordisco.nets.layout import channels_last, first_map, pixels_first
from ordisco.nets.resample import DoublingConv2d
from ordisco.nets.spectral import SpectralConv2d, SpectralLinear, SpectralModule

SMALLEST = 4  # the side of G's first map and D's last one


def widths(side: int, width: int) -> list[int]:
    """Channels of the maps from full size down to 4×4: doubled whenever the side is halved."""
    return [width << i for i in range(int(math.log2(side // SMALLEST)) + 1)]


class PlainGenerator(nn.Module):
    """Noise z and class y → an image in [−1, 1]; `width` is the number of channels at full size."""

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, width: int, z_dim: int) -> None:
        super().__init__()
        channels, side, _ = image_shape
        up = widths(side, width)[::-1]
        self.z_dim, self.first = z_dim, up[0]
        self.project = nn.Linear(z_dim, up[0] * SMALLEST**2)
        self.classes = nn.Parameter(self._class_rows(num_classes))
        self.norms = nn.ModuleList(ConditionalBatchNorm(c, num_classes) for c in up)
        self.convs = nn.ModuleList(_begun(DoublingConv2d(a, b, 3, padding=1)) for a, b in pairwise(up))
        self.out = _begun(nn.Conv2d(up[-1], channels, 3, padding=1))

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Images of classes y."""
        x = first_map(self.project(z) + self.classes[y], self.first, SMALLEST)
        x = F.relu(self.norms[0](channels_last(x), y))
        for conv, norm in zip(self.convs, list(self.norms)[1:], strict=True):
            x = F.relu(norm(conv(x), y))
        return torch.tanh(self.out(x))

    def grow(self, num_classes: int) -> None:
        """Make room for more classes; the old ones' images do not change."""
        self.classes = grow_rows(self.classes, self._class_rows(num_classes))
        for norm in self.norms:
            norm.grow(num_classes)  # type: ignore[operator]

    def _class_rows(self, num_classes: int) -> Tensor:
        features = self.project.out_features
        bound = 1 / math.sqrt(self.z_dim)  # as `project` begins, so that a class weighs as much as an entry of z
        return torch.empty(num_classes, features).uniform_(-bound, bound)


class PlainDiscriminator(SpectralModule):
    """D(x, y) for every class y at once, on the flat 4×4 map; `width` is the number of channels at full size."""

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, width: int) -> None:
        super().__init__()
        channels, side, _ = image_shape
        down = widths(side, width)
        layers: list[nn.Module] = [SpectralConv2d(channels, down[0], 3, math.sqrt(2))]
        layers += [SpectralConv2d(a, b, 4, math.sqrt(2), stride=2) for a, b in pairwise(down)]
        self.convs = nn.ModuleList(layers)
        features = down[-1] * SMALLEST**2
        self.realness = SpectralLinear(features, 1)
        self.classes = SpectralLinear(features, num_classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes): row i holds D(x_i, y) for every y."""
        h = channels_last(x)
        for conv in self.convs:
            h = F.leaky_relu(conv(h), 0.1)
        return self.judged(pixels_first(h).flatten(1))

    def grow(self, num_classes: int) -> None:
        """Make room for more classes."""
        self.classes.grow(num_classes)


def _begun(layer: nn.Conv2d) -> nn.Conv2d:
    nn.init.orthogonal_(layer.weight)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer
