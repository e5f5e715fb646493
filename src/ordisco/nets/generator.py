"""G: a residual generator with class-conditional batch norm, in the manner of SNGAN (Miyato & Koyama 2018)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.grow import grow_rows
from ordisco.nets.layout import channels_last, first_map
from ordisco.nets.norm import BatchNorm2d
from ordisco.nets.resample import DoublingConv2d


class ConditionalBatchNorm(nn.Module):
    """Batch norm whose scale and shift belong to the class."""

    def __init__(self, channels: int, num_classes: int) -> None:
        super().__init__()
        self.norm = BatchNorm2d(channels, affine=False)
        self.scale = nn.Parameter(torch.ones(num_classes, channels))
        self.shift = nn.Parameter(torch.zeros(num_classes, channels))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Normalise x, then scale and shift by class y."""
        scale, shift = self.scale[y][:, :, None, None], self.shift[y][:, :, None, None]
        return torch.addcmul(shift, self.norm(x), scale)

    def grow(self, num_classes: int) -> None:
        """Add rows for new classes."""
        channels = self.scale.shape[1]
        self.scale = grow_rows(self.scale, torch.ones(num_classes, channels))
        self.shift = grow_rows(self.shift, torch.zeros(num_classes, channels))


def conv(channels_in: int, channels_out: int, kernel: int, gain: float = 1.0, doubling: bool = False) -> nn.Conv2d:
    """A convolution that keeps the size, or doubles it before, with Glorot's initial weights."""
    cls = DoublingConv2d if doubling else nn.Conv2d
    layer = cls(channels_in, channels_out, kernel, padding=kernel // 2)
    nn.init.xavier_uniform_(layer.weight, gain)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


class UpBlock(nn.Module):
    """Residual block that doubles the side."""

    def __init__(self, width: int, num_classes: int) -> None:
        super().__init__()
        self.norm1 = ConditionalBatchNorm(width, num_classes)
        self.conv1 = conv(width, width, 3, math.sqrt(2), doubling=True)
        self.norm2 = ConditionalBatchNorm(width, num_classes)
        self.conv2 = conv(width, width, 3, math.sqrt(2))
        self.shortcut = conv(width, width, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """(n, c, s, s) → (n, c, 2s, 2s)."""
        out: Tensor = self.conv2(F.relu(self.norm2(self.conv1(F.relu(self.norm1(x, y))), y)))
        # A 1×1 convolution and nearest upsampling commute; the small map is the cheaper one.
        return out + F.interpolate(self.shortcut(x), scale_factor=2.0)


class Generator(nn.Module):
    """Noise z and class y → an image in [−1, 1]; `width` 256 and `z_dim` 256 are the paper's reference."""

    def __init__(self, image_shape: tuple[int, int, int], num_classes: int, width: int = 256, z_dim: int = 256) -> None:
        super().__init__()
        channels, side, _ = image_shape
        self.z_dim, self.width = z_dim, width
        self.project = nn.Linear(z_dim, width * 16)
        nn.init.xavier_uniform_(self.project.weight)
        ups = int(math.log2(side // 4))
        self.blocks = nn.ModuleList(UpBlock(width, num_classes) for _ in range(ups))
        self.norm = BatchNorm2d(width)
        self.out = conv(width, channels, 3)

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Images of classes y."""
        x = channels_last(first_map(self.project(z), self.width, 4))
        for block in self.blocks:
            x = block(x, y)
        return torch.tanh(self.out(F.relu(self.norm(x))))

    def grow(self, num_classes: int) -> None:
        """Make room for more classes; the old ones' images do not change."""
        for module in self.modules():
            if isinstance(module, ConditionalBatchNorm):
                module.grow(num_classes)
