"""What the mini-batches of an increment are drawn from: b_l ∪ SMB and b_ul ∪ UMB, on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.data import augment, normalize


@dataclass(frozen=True)
class Pool:
    """Images (uint8) to draw from uniformly, with replacement, and their class slots (none if unlabelled)."""

    images: Tensor
    slots: Tensor | None = None

    def __len__(self) -> int:
        return len(self.images)

    def draw(self, count: int) -> tuple[Tensor, Tensor | None]:
        """`count` images in [−1, 1] with their slots; the indices are drawn on the device."""
        index = torch.randint(len(self.images), (count,), device=self.images.device)
        return normalize(self.images[index]), None if self.slots is None else self.slots[index]


@dataclass(frozen=True)
class Augmentation:
    """The random views of C's images: shifted by `translate` pixels, mirrored where `flip` keeps the meaning."""

    translate: int = 1
    flip: bool = False

    def weak(self, x: Tensor) -> Tensor:
        """Shift and flip."""
        return augment.weak(x, self.translate, self.flip)

    def strong(self, x: Tensor) -> Tensor:
        """Shift, flip, affine, colour and cutout."""
        return augment.strong(x, self.translate, self.flip)
