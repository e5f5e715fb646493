"""uint8 pixels to network inputs and back, and to another size."""

from __future__ import annotations

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ordisco.data.picture import to_square


def normalize(images: Tensor) -> Tensor:
    """uint8 pixels as floats in [−1, 1], on the images' device."""
    return images.to(torch.get_default_dtype(), copy=True).div_(127.5).sub_(1)


def denormalize(images: Tensor) -> Tensor:
    """Floats in [−1, 1] as uint8 pixels, rounded and clamped."""
    return images.detach().float().add(1).mul_(127.5).round_().clamp_(0, 255).to(torch.uint8)


def resize(images: Tensor, size: int) -> Tensor:
    """All images of a uint8 tensor resized as in `picture.decode`: in integers, the same on every machine."""
    n, channels = images.shape[:2]
    side = images.shape[2]
    if images.shape[2:] == (size, size):
        return images
    if images.shape[2] == images.shape[3] and side % size == 0:
        return _box_average(images, side // size)
    result = torch.empty((n, channels, size, size), dtype=torch.uint8)
    for index in range(n):
        pixels = images[index, 0] if channels == 1 else images[index].permute(1, 2, 0)
        array = np.array(to_square(Image.fromarray(pixels.contiguous().numpy()), size))
        result[index] = torch.from_numpy(array if channels == 1 else array.transpose(2, 0, 1))
    return result


def _box_average(images: Tensor, factor: int, chunk: int = 4096) -> Tensor:
    """Means of factor×factor pixels, rounded half up in integers, as Pillow's `reduce` does."""
    n, channels, side, _ = images.shape
    size = side // factor
    result = torch.empty((n, channels, size, size), dtype=torch.uint8)
    for start in range(0, n, chunk):
        blocks = images[start : start + chunk].reshape(-1, channels, size, factor, size, factor)
        total = blocks.sum(dim=(3, 5), dtype=torch.int32)
        result[start : start + chunk] = (total + factor * factor // 2) // (factor * factor)
    return result
