"""The images of one step, in [−1, 1], and the random views of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from ordisco.data import augment


class Pairs(NamedTuple):
    """Images in [−1, 1] and their class slots."""

    x: Tensor
    y: Tensor

    def detach(self) -> Pairs:
        """The same without a gradient."""
        return Pairs(self.x.detach(), self.y)


class Unlabeled(NamedTuple):
    """Images in [−1, 1], and the row of `Pools.expected` that belongs to the increment of each."""

    x: Tensor
    increments: Tensor


class Pseudo(NamedTuple):
    """Unlabelled images in [−1, 1] and the class probabilities that C′ gives them."""

    x: Tensor
    p: Tensor


class Judged(NamedTuple):
    """The pairs (image, class) that D sees in one step."""

    real: Pairs
    pseudo: Pseudo | None  # None where an increment has no unlabelled images
    generated: Pairs


@dataclass(frozen=True)
class Batch:
    """The real images of one step."""

    labeled: Pairs  # from b_l ∪ SMB
    unlabeled: Unlabeled | None  # from b_ul (∪ UMB); None where an increment has no such images

    @property
    def num_unlabeled(self) -> int:
        """How many unlabelled images there are."""
        return 0 if self.unlabeled is None else len(self.unlabeled.x)


@dataclass(frozen=True)
class Augmentation:
    """The random views of C's images: shifted by `translate` pixels, mirrored where `flip` keeps the meaning.

    `any_colours`: strong views of any hue and polarity.
    """

    translate: int = 1
    flip: bool = False
    any_colours: bool = False

    def weak(self, x: Tensor) -> Tensor:
        """Shift and flip."""
        return augment.weak(x, self.translate, self.flip)

    def strong(self, x: Tensor) -> Tensor:
        """Shift, flip, affine, colour and cutout."""
        return augment.strong(x, self.translate, self.flip, any_colours=self.any_colours)
