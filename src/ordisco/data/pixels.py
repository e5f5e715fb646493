"""Image files to uint8 arrays of 3 channels of size×size, and uint8 pixels to network inputs and back."""

from __future__ import annotations

import functools
import io
import stat
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

# What photographs and scans come in. Pillow knows more, some of which it hands to other programs: EPS to Ghostscript.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF", "ICO", "TGA")
GREY_MODES = ("1", "L", "LA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")


class Undecodable(Exception):
    """The file is no image that can be decoded; the message says why."""


def normalize(images: Tensor) -> Tensor:
    """uint8 pixels as floats in [−1, 1], on the images' device."""
    return images.to(torch.get_default_dtype(), copy=True).div_(127.5).sub_(1)


def denormalize(images: Tensor) -> Tensor:
    """Floats in [−1, 1] as uint8 pixels, rounded and clamped."""
    return images.detach().float().add(1).mul_(127.5).round_().clamp_(0, 255).to(torch.uint8)


def decode(source: Path | bytes, size: int) -> tuple[np.ndarray, bool]:
    """One image as uint8 (3, size, size), and whether it is grey. Raises `Undecodable`.

    The middle square is shrunk by box averaging or enlarged bilinearly; transparent parts become white.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with (
                io.BytesIO(source) if isinstance(source, bytes) else _opened(source) as file,
                Image.open(file, formats=known_formats()) as image,
            ):
                grey = image.mode in GREY_MODES
                rgb = _to_rgb(ImageOps.exif_transpose(image))
        return np.ascontiguousarray(np.asarray(_to_square(rgb, size)).transpose(2, 0, 1)), grey
    except MemoryError:
        raise
    except UnidentifiedImageError as error:
        raise Undecodable("not an image, or of an unknown kind") from error
    except Exception as error:  # Pillow raises many kinds for a broken file
        raise Undecodable(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error


@functools.cache
def known_formats() -> tuple[str, ...]:
    """Those of `FORMATS` that the installed Pillow knows: AVIF is new."""
    Image.init()
    return tuple(name for name in FORMATS if name in Image.OPEN)


def _opened(path: Path) -> BinaryIO:
    """A regular file; a pipe or a device is refused before it could block."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("not a regular file")
    return path.open("rb")


def resize(images: Tensor, size: int) -> Tensor:
    """All images of a uint8 tensor resized as in `decode`: in integers, the same on every machine."""
    n, channels = images.shape[:2]
    side = images.shape[2]
    if images.shape[2:] == (size, size):
        return images
    if images.shape[2] == images.shape[3] and side % size == 0:
        return _box_average(images, side // size)
    result = torch.empty((n, channels, size, size), dtype=torch.uint8)
    for index in range(n):
        pixels = images[index, 0] if channels == 1 else images[index].permute(1, 2, 0)
        array = np.array(_to_square(Image.fromarray(pixels.contiguous().numpy()), size))
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


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        values = np.asarray(image, dtype=np.float64)
        if image.mode != "F" or values.max(initial=0) > 1:
            values = values / (65535 if values.max(initial=0) > 255 else 255)
        image = Image.fromarray((np.nan_to_num(values).clip(0, 1) * 255).round().astype(np.uint8))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _to_square(image: Image.Image, size: int) -> Image.Image:
    if image.size == (size, size):
        return image
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = (left, top, left + side, top + side)
    if side % size == 0:
        return image.reduce(side // size, square)
    shrink = Image.Resampling.BOX if side > size else Image.Resampling.BILINEAR
    return image.resize((size, size), shrink, square)
