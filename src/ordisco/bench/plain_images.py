"""Images drawn and changed one by one, on the same random numbers: the oracle of `Pools.draw` and `data/augment.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.data.augment import GREY
from ordisco.data.pixels import normalize


def draw(images: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Images as in `Pools.draw`, one by one, and their indices."""
    index = torch.randint(len(images), (count,), device=images.device)
    return torch.stack([normalize(images[i]) for i in index]), index


def weak(images: Tensor, translate: int, flip: bool) -> Tensor:
    """`augment.weak`, image by image."""
    n = len(images)
    if n == 0:
        return images
    shift = torch.randint(-translate, translate + 1, (2, n, 1))
    mirror = torch.rand(n, 1) < 0.5 if flip else torch.zeros(n, 1, dtype=torch.bool)
    return torch.stack([shifted(images[i], translate, shift[:, i, 0], bool(mirror[i])) for i in range(n)])


def shown(parts: Sequence[Tensor], pixels: int, colour: float) -> tuple[Tensor, ...]:
    """Images of several kinds as D sees them, each changed in colour and shifted by up to so many pixels."""
    x = torch.cat(list(parts))
    if colour:
        change = colour * (2 * torch.rand(3, len(x), 1, 1, 1) - 1)
        x = torch.stack([tinted(image, change[:, i, 0, 0, 0]) for i, image in enumerate(x)])
    moved = weak(x, pixels, flip=False) if pixels else x
    return tuple(moved.split([len(part) for part in parts]))


def tinted(image: Tensor, change: Tensor) -> Tensor:
    """One image with another brightness, saturation and contrast (`augment.tint`)."""
    image = image + change[0] / 2
    grey = image.mean(0)  # of a grey image, the image itself
    image = grey + (1 + change[1]) * (image - grey)
    return image.mean() + (1 + change[2] / 2) * (image - image.mean())


def shifted(image: Tensor, translate: int, shift: Tensor, mirror: bool) -> Tensor:
    """One image moved by (down, right) pixels with reflection at its border, then mirrored."""
    _, h, w = image.shape
    down, right = (translate + int(pixels) for pixels in shift)
    padded = F.pad(image[None], (translate,) * 4, mode="reflect")[0]
    view = padded[:, down : down + h, right : right + w]
    return view.flip(2) if mirror else view


def strong(images: Tensor, translate: int, flip: bool, any_colours: bool = False) -> Tensor:
    """`augment.strong`, image by image."""
    n, channels = images.shape[:2]
    draws = torch.rand(6, n), torch.rand(3, n, 1, 1)
    angles = math.pi * (2 * torch.rand(n) - 1) if any_colours and channels == 3 else torch.zeros(n)
    negative = torch.rand(n, 1, 1) < 0.5 if any_colours else torch.zeros(n, 1, 1, dtype=torch.bool)
    squares = torch.rand(3, n, 1)
    views = []
    for i, image in enumerate(images):
        moved = warped(image, 2 * draws[0][:, i] - 1, translate, flip)
        coloured = recoloured(moved, 0.4 * (2 * draws[1][:, i, 0, 0] - 1), float(angles[i]))
        views.append(cut(-coloured if negative[i] else coloured, squares[:, i, 0]))
    return torch.stack(views)


def warped(image: Tensor, draw: Tensor, translate: int, flip: bool) -> Tensor:
    """One image rotated by up to 15°, scaled and sheared by up to 0.15, moved and mirrored."""
    _, h, w = image.shape
    angle, zoom, shear = math.radians(15) * draw[0], 1 + 0.15 * draw[1], 0.15 * draw[2]
    mirror = draw[5].sign() if flip else 1.0
    cos, sin = torch.cos(angle) / zoom, torch.sin(angle) / zoom
    matrix = torch.zeros(1, 2, 3)
    matrix[0, 0] = torch.stack([mirror * cos, shear * cos - sin, draw[3] * 2 * translate / w])
    matrix[0, 1] = torch.stack([mirror * sin, shear * sin + cos, draw[4] * 2 * translate / h])
    grid = F.affine_grid(matrix, [1, *image.shape], align_corners=False)
    return F.grid_sample(image[None], grid, padding_mode="reflection", align_corners=False)[0]


def recoloured(image: Tensor, change: Tensor, angle: float) -> Tensor:
    """One image with another saturation, hue, contrast and brightness."""
    if len(image) == 3:
        grey = sum(weight * channel for weight, channel in zip(GREY, image, strict=True))
        image = turned(grey + (1 + change[2]) * (image - grey), angle)
    mean = image.mean()
    return (mean + (1 + change[1]) * (image - mean) + change[0]).clamp(-1, 1)


def turned(image: Tensor, angle: float) -> Tensor:
    """One image in three colours, each pixel turned about the axis of greys."""
    grey = image.mean(0, keepdim=True)
    across = image - grey
    beside = (across.roll(-2, 0) - across.roll(-1, 0)) / math.sqrt(3)  # the axis of length one × the part across it
    return grey + math.cos(angle) * across + math.sin(angle) * beside


def cut(image: Tensor, draw: Tensor) -> Tensor:
    """One image with a square of up to half the side made grey."""
    _, h, w = image.shape
    half = draw[2] * min(h, w) / 4
    rows = (torch.arange(h) + 0.5 - draw[0] * h).abs() < half
    columns = (torch.arange(w) + 0.5 - draw[1] * w).abs() < half
    image = image.clone()
    image[:, rows[:, None] & columns] = 0
    return image
