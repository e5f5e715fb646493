"""D: a residual discriminator with spectral norm on every layer and a projection head."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.layout import channels_last, pixels_first
from ordisco.nets.spectral import HalvingSpectralConv2d, SpectralConv2d, SpectralLinear, SpectralModule


class Block(nn.Module):
    """Residual block; `first` takes images (no activation before it), `down` halves the side."""

    def __init__(self, channels_in: int, width: int, first: bool, down: bool) -> None:
        super().__init__()
        self.first, self.down = first, down
        self.conv1 = SpectralConv2d(channels_in, width, 3, math.sqrt(2))
        gain = math.sqrt(2)
        self.conv2 = HalvingSpectralConv2d(width, width, gain) if down else SpectralConv2d(width, width, 3, gain)
        self.shortcut = SpectralConv2d(channels_in, width, 1) if first or down else None

    def forward(self, x: Tensor) -> Tensor:
        """X plus two convolutions of it, averaged over 2×2 pixels where it goes down."""
        out: Tensor = self.conv2(F.relu(self.conv1(x if self.first else F.relu(x))))
        if self.down:  # averaging commutes with the 1×1 convolution; the small map is the cheaper one
            x = F.avg_pool2d(x, 2)
        return out + (x if self.shortcut is None else self.shortcut(x))


class Discriminator(SpectralModule):
    """D(x, y) for every class y at once: ψ(φ(x)) + ⟨e_y, φ(x)⟩; `width` 256 is the paper's reference.

    The projection makes the scores of all classes one matrix product, so a call gives (n, classes);
    `D(x)[i, y]` is D(x_i, y). `head` is `pool` (φ is the sum over the pixels, as in SNGAN) or `flat`
    (φ is the whole last map, which small nets need to tell classes apart).
    """

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        width: int = 256,
        tail: int = 2,
        head: str = "pool",
    ) -> None:
        super().__init__()
        channels, side, _ = image_shape
        downs = {8: 1, 16: 2, 32: 2, 64: 3}[side]
        blocks = [Block(channels if i == 0 else width, width, first=i == 0, down=True) for i in range(downs)]
        blocks += [Block(width, width, first=False, down=False) for _ in range(tail)]
        self.blocks = nn.Sequential(*blocks)
        self.head = head
        features = width * (side >> downs) ** 2 if head == "flat" else width
        self.realness = SpectralLinear(features, 1)
        self.classes = SpectralLinear(features, num_classes, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, classes): row i holds D(x_i, y) for every y."""
        h = F.relu(self.blocks(channels_last(x)))
        phi = pixels_first(h).flatten(1) if self.head == "flat" else pixels_first(h).sum(dim=(1, 2))
        return self.judged(phi)

    def grow(self, num_classes: int) -> None:
        """Make room for more classes."""
        self.classes.grow(num_classes)
