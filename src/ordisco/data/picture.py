"""An image file to a uint8 array of 3 channels of size×size. Needs no torch, so that a process for it starts soon."""

from __future__ import annotations

import functools
import io
import stat
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

# What photographs and scans come in. Pillow knows more, some of which it hands to other programs: EPS to Ghostscript.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "DIB", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF", "ICO", "TGA")
GREY_MODES = ("1", "L", "LA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N")


class Undecodable(Exception):
    """The file is no image that can be decoded; the message says why."""


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
        return np.ascontiguousarray(np.asarray(to_square(rgb, size)).transpose(2, 0, 1)), grey
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


def to_square(image: Image.Image, size: int) -> Image.Image:
    """The middle square, shrunk by box averaging or enlarged bilinearly."""
    if image.size == (size, size):
        return image
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = (left, top, left + side, top + side)
    if side % size == 0:
        return image.reduce(side // size, square)
    shrink = Image.Resampling.BOX if side > size else Image.Resampling.BILINEAR
    return image.resize((size, size), shrink, square)
