"""Augmentation as batched tensor code: every image has its own draw, on the images' device.

Images are float tensors (n, c, h, w) in [−1, 1]. Draws come from `generator`, wherever it lives.
"""

from __future__ import annotations

import functools
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.errors import UsageError

GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue look


def weak(images: Tensor, translate: int, flip: bool, generator: torch.Generator | None = None) -> Tensor:
    """Translation by up to `translate` pixels with reflection, and a mirror image half of the time if `flip`.

    The reflected source pixel of every target pixel is computed once and read by one gather.
    """
    n, c, h, w = images.shape
    _check_translation(translate, h, w)
    shift = torch.randint(-translate, translate + 1, (2, n, 1), generator=generator, device=_at(images, generator))
    shift = shift.squeeze(2).to(images.device) + translate
    rows, columns = _sources(h, w, translate, images.device)
    mirror = (_uniform(images, (n, 1), generator) < 0.5).squeeze(1).long() if flip else 0
    pixels = (rows[shift[0]][:, :, None] + columns[mirror, shift[1]][:, None, :]).view(n, h * w)
    if images.is_contiguous():
        flat = images.view(n, c, h * w)
        return flat.gather(2, pixels[:, None, :].expand(n, c, h * w)).view(n, c, h, w)
    pixels = pixels + torch.arange(n, device=images.device)[:, None] * (h * w)
    flat = images.permute(0, 2, 3, 1).reshape(n * h * w, c)
    return flat.index_select(0, pixels.view(-1)).view(n, h, w, c).permute(0, 3, 1, 2)


@functools.lru_cache(maxsize=16)
def _sources(h: int, w: int, translate: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where each row begins, (shifts, h), and each column, (as it is or mirrored, shifts, w), comes from."""
    shift = torch.arange(-translate, translate + 1, device=device)[:, None]
    columns = torch.arange(w, device=device)
    rows = _reflect(torch.arange(h, device=device) + shift, h) * w
    return rows, torch.stack([_reflect(columns + shift, w), _reflect(w - 1 - columns + shift, w)])


def strong(
    images: Tensor, translate: int, flip: bool, generator: torch.Generator | None = None, *, any_colours: bool = False
) -> Tensor:
    """The strong form: affine (with the weak form's shift and flip), colour, then cutout."""
    moved = affine(images, translate, flip, generator)
    return cutout(colour(moved, generator, any_colours=any_colours), generator)


def affine(
    images: Tensor,
    translate: int,
    flip: bool,
    generator: torch.Generator | None = None,
    *,
    degrees: float = 15.0,
    scale: float = 0.15,
    shear: float = 0.15,
) -> Tensor:
    """Rotation, scale, shear, translation and flip in one bilinear sampling with reflection."""
    n, _, h, w = images.shape
    _check_translation(translate, h, w)
    draw = 2 * _uniform(images, (6, n), generator) - 1
    angle, zoom = draw[0] * math.radians(degrees), 1 + draw[1] * scale
    mirror = draw[5].sign() if flip else torch.ones_like(angle)
    cos, sin = torch.cos(angle) / zoom, torch.sin(angle) / zoom
    x = ((2 * torch.arange(w, device=images.device) + 1) / w - 1).expand(1, 1, w)  # centres of pixels in [−1, 1]
    y = ((2 * torch.arange(h, device=images.device) + 1) / h - 1).view(1, h, 1)

    def coordinate(of_x: Tensor, of_y: Tensor, shift: Tensor) -> Tensor:
        return of_x.view(n, 1, 1) * x + (of_y.view(n, 1, 1) * y + shift.view(n, 1, 1))

    from_x = coordinate(mirror * cos, draw[2] * shear * cos - sin, draw[3] * (2 * translate / w))
    from_y = coordinate(mirror * sin, draw[2] * shear * sin + cos, draw[4] * (2 * translate / h))
    grid = torch.stack([from_x, from_y], dim=3).to(images.dtype)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=False)


def colour(
    images: Tensor, generator: torch.Generator | None = None, *, strength: float = 0.4, any_colours: bool = False
) -> Tensor:
    """Brightness, contrast and, for three channels, saturation, each changed by up to `strength`.

    Together they are one small matrix and one offset an image: p ↦ contrast·S·p + offset, S the saturation. With
    `any_colours` the hue is turned by any angle, and every other image is its negative, where colour and polarity tell
    nothing of the class: p ↦ ±(contrast·R·S·p + offset), R a rotation about the axis of greys.
    """
    n, c, h, w = images.shape
    draw = ((2 * _uniform(images, (3, n, 1, 1), generator) - 1) * strength).to(images.dtype)
    brightness, contrast, saturation = draw[0], 1 + draw[1], 1 + draw[2]
    matrix = torch.eye(c, dtype=images.dtype, device=images.device).expand(n, c, c)
    if c == 3:
        grey = images.new_tensor(GREY).expand(n, 3, 3)
        matrix = torch.lerp(grey, matrix, saturation)
        if any_colours:
            matrix = hue(math.pi * (2 * _uniform(images, (n,), generator) - 1)).to(images.dtype) @ matrix
    mean = (matrix @ images.mean(dim=(2, 3)).view(n, c, 1)).mean(dim=1, keepdim=True)
    offset = (1 - contrast) * mean + brightness
    if any_colours:
        sign = torch.where(_uniform(images, (n, 1, 1), generator) < 0.5, -1.0, 1.0).to(images.dtype)
        offset, contrast = sign * offset, sign * contrast
    changed = torch.baddbmm(offset, contrast * matrix, images.reshape(n, c, h * w))
    return changed.view(n, c, h, w).clamp_(-1, 1)


def hue(angles: Tensor) -> Tensor:
    """(n, 3, 3): rotations of red, green and blue about the axis of greys, which stay as they are (Rodrigues)."""
    cos, sin = torch.cos(angles).view(-1, 1, 1), torch.sin(angles).view(-1, 1, 1)
    along = torch.full((3, 3), 1 / 3, device=angles.device)
    across = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], device=angles.device) / math.sqrt(3)
    return cos * torch.eye(3, device=angles.device) + (1 - cos) * along + sin * across


def tint(images: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """DiffAugment's colour (Zhao et al. 2020), for D: brightness, saturation, then contrast; gradients go through it.

    With u uniform in [−s, s], s the strength: x + u/2, then saturation ×(1 + u) about the mean of the channels, then
    contrast ×(1 + u/2) about the image's mean. Nothing is clipped. Grey images have no saturation.
    """
    n, c = images.shape[:2]
    draw = ((2 * _uniform(images, (3, n, 1, 1, 1), generator) - 1) * strength).to(images.dtype)
    x = images + draw[0] / 2
    if c > 1:
        grey = x.mean(1, keepdim=True)
        x = grey + (1 + draw[1]) * (x - grey)
    mean = x.mean((1, 2, 3), keepdim=True)
    return mean + (1 + draw[2] / 2) * (x - mean)


def cutout(images: Tensor, generator: torch.Generator | None = None, *, share: float = 0.5) -> Tensor:
    """A square of up to `share` of the side, around a random centre, set to 0 (middle grey)."""
    n, _, h, w = images.shape
    draw = _uniform(images, (3, n, 1), generator)
    half = draw[2] * (share * min(h, w) / 2)
    rows = (torch.arange(h, device=images.device) + 0.5 - draw[0] * h).abs() < half
    columns = (torch.arange(w, device=images.device) + 0.5 - draw[1] * w).abs() < half
    kept = ~(rows[:, :, None] & columns[:, None, :])
    return images * kept[:, None]


def _reflect(index: Tensor, size: int) -> Tensor:
    """Indices mirrored at the first and at the last pixel, neither of which is repeated."""
    return (size - 1) - ((size - 1) - index.abs()).abs()


def _check_translation(translate: int, height: int, width: int) -> None:
    if not 0 <= translate < min(height, width):
        raise UsageError(f"translate = {translate} is not allowed: from 0 to {min(height, width) - 1}")


def _at(images: Tensor, generator: torch.Generator | None) -> torch.device:
    return images.device if generator is None else generator.device


def _uniform(images: Tensor, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
    return torch.rand(shape, generator=generator, device=_at(images, generator)).to(images.device)
