"""C: the 9-convolution classifier of the paper's reference (Laine & Aila; Triple-GAN) and WRN-28-2.

Both are `features` (images → a vector) followed by `head` (a vector → class scores); `head` is linear,
or cosine for the Unified Classifier, whose features end without an activation.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.cosine import CosineHead
from ordisco.nets.dropout import Dropout
from ordisco.nets.grow import grow_linear
from ordisco.nets.layout import channels_last, pixels_first
from ordisco.nets.norm import BatchNorm2d


def make_head(kind: str, features: int, num_classes: int) -> nn.Module:
    """`linear` (the paper) or `cosine` (Unified Classifier)."""
    return CosineHead(features, num_classes) if kind == "cosine" else nn.Linear(features, num_classes)


class Classifier(nn.Module):
    """Features, then a head that can grow."""

    features: nn.Module
    head: nn.Module

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (logits) of images in [−1, 1]."""
        out: Tensor = self.head(self.features(x))
        return out

    def grow(self, num_classes: int) -> None:
        """Make room for more classes; old scores do not change."""
        if isinstance(self.head, CosineHead):
            self.head.grow(num_classes)
        elif isinstance(self.head, nn.Linear):
            grow_linear(self.head, num_classes)


def conv_block(channels_in: int, channels_out: int, kernel: int, pool: bool = False) -> list[nn.Module]:
    """Convolution, batch norm, leaky ReLU 0.1; batch norm makes a bias useless.

    `pool` halves the side by the largest of 2×2 values. That commutes with a rising function, so that the activation
    comes after it, on the smaller map.
    """
    return [
        nn.Conv2d(channels_in, channels_out, kernel, padding=kernel // 2, bias=False),
        BatchNorm2d(channels_out),
        *([nn.MaxPool2d(2)] if pool else []),
        nn.LeakyReLU(0.1, inplace=True),
    ]


class ChannelsLast(nn.Module):
    """The layout in which convolutions run fastest."""

    def forward(self, x: Tensor) -> Tensor:
        """The same images."""
        return channels_last(x)


class GlobalAverage(nn.Module):
    """Mean over the pixels of each channel."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) → (n, c); over the pixels as they lie, so that the gradient comes back channels-last too."""
        return pixels_first(x).flatten(1, 2).mean(1)


class NineConv(Classifier):
    """Nine convolutions without residual connections; `width` 128 is the paper's size."""

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        width: int = 128,
        dropout: float = 0.5,
        head: str = "linear",
    ) -> None:
        super().__init__()
        w = width
        self.features = nn.Sequential(
            ChannelsLast(),
            *conv_block(image_shape[0], w, 3),
            *conv_block(w, w, 3),
            *conv_block(w, w, 3, pool=True),
            Dropout(dropout),
            *conv_block(w, 2 * w, 3),
            *conv_block(2 * w, 2 * w, 3),
            *conv_block(2 * w, 2 * w, 3, pool=True),
            Dropout(dropout),
            *conv_block(2 * w, 4 * w, 3),
            *conv_block(4 * w, 2 * w, 1),
            *conv_block(2 * w, w, 1)[: -1 if head == "cosine" else None],  # a direction needs its signs
            GlobalAverage(),
        )
        self.head = make_head(head, w, num_classes)


class WideBlock(nn.Module):
    """Pre-activation residual block of a wide ResNet."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm2 = BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.dropout = Dropout(dropout)
        self.stride, self.shortcut = stride, None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """X plus two convolutions of it."""
        active = F.leaky_relu(self.norm1(x), 0.1)
        out: Tensor = self.conv2(self.dropout(F.leaky_relu(self.norm2(self.conv1(active)), 0.1)))
        if self.shortcut is None:
            return out + x
        # Every other pixel, then 1×1: a strided 1×1 convolution of few channels in channels-last layout
        # writes past its memory in oneDNN (seen with torch 2.13).
        past: Tensor = self.shortcut(active[:, :, :: self.stride, :: self.stride])
        return out + past


class WideResNet(Classifier):
    """WRN-28-k: three groups of four blocks; `width` 32 is the paper's WRN-28-2."""

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        width: int = 32,
        dropout: float = 0.0,
        head: str = "linear",
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [ChannelsLast(), nn.Conv2d(image_shape[0], 16, 3, padding=1, bias=False)]
        channels = 16
        for group, out in enumerate((width, 2 * width, 4 * width)):
            for block in range(4):
                stride = 2 if group > 0 and block == 0 else 1
                layers.append(WideBlock(channels, out, stride, dropout))
                channels = out
        last = [] if head == "cosine" else [nn.LeakyReLU(0.1, inplace=True)]
        layers += [BatchNorm2d(channels), *last, GlobalAverage()]
        self.features = nn.Sequential(*layers)
        self.head = make_head(head, channels, num_classes)


def make_classifier(
    net: str, image_shape: tuple[int, int, int], num_classes: int, width: int, dropout: float, head: str
) -> Classifier:
    """The classifier that the settings name."""
    cls = WideResNet if net == "wrn-28" else NineConv
    return cls(image_shape, num_classes, width, dropout, head)
