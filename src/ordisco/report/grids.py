"""A grid of images, a row a class, its name at the left; and the images of such a grid."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ordisco.files import write_atomically
from ordisco.report.figure import INK
from ordisco.words import shortened


def sample_grid(path: Path, images: ArrayLike, rows: int, class_names: Sequence[str], scale: int | None = None) -> None:
    """Write `rows` rows of uint8 images (rows·columns, 1 or 3, h, w), each pixel a square of `scale` pixels.

    Without a scale, images come to about 64 pixels.
    """
    import matplotlib
    from PIL import Image, ImageDraw, ImageFont

    pixels = np.asarray(images)
    count, channels, height, width = pixels.shape
    if pixels.dtype != np.uint8 or channels not in (1, 3) or count % rows or len(class_names) != rows:
        raise ValueError(
            f"a grid of {rows} rows needs uint8 images (rows·columns, 1 or 3, h, w) and {rows} class names, "
            f"not {pixels.dtype} {pixels.shape} and {len(class_names)}"
        )
    scale = scale or max(1, round(64 / max(height, width)))
    gap = max(2, scale // 2)
    down, across = height * scale + gap, width * scale + gap
    font_file = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    font = ImageFont.truetype(str(font_file), size=min(18, max(9, round(0.34 * down))))
    names = [shortened(name, 18) for name in class_names]
    left = round(max(font.getlength(name) for name in names)) + 18
    columns = count // rows
    sheet = Image.new("RGB", (left + columns * across, gap + rows * down), "white")
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(names):
        top = gap + row * down
        draw.text((left - 9, top + height * scale / 2), name, fill=INK, font=font, anchor="rm")
        for column in range(columns):
            image = pixels[row * columns + column].transpose(1, 2, 0)
            colour = np.ascontiguousarray(np.broadcast_to(image, (height, width, 3)))
            large = Image.fromarray(colour).resize((width * scale, height * scale), Image.Resampling.NEAREST)
            sheet.paste(large, (left + column * across, top))
    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG", optimize=True)
    write_atomically(path, buffer.getvalue())


def grid_images(path: Path, rows: int, columns: int, side: tuple[int, int]) -> NDArray[np.uint8]:
    """The images of a grid that `sample_grid` has written without a scale: (rows, columns, h, w, 3).

    Each is read from one pixel of its squares, so nothing is lost.
    """
    from PIL import Image

    height, width = side
    scale = max(1, round(64 / max(side)))
    gap = max(2, scale // 2)
    down, across = height * scale + gap, width * scale + gap
    with Image.open(path) as sheet:
        pixels = np.asarray(sheet.convert("RGB"))
    left = pixels.shape[1] - columns * across
    if left < 0 or pixels.shape[0] != gap + rows * down:
        raise ValueError(f"{path} is no grid of {rows}×{columns} images of {height}×{width}")
    images = np.empty((rows, columns, height, width, 3), np.uint8)
    for row in range(rows):
        for column in range(columns):
            top, start = gap + row * down, left + column * across
            images[row, column] = pixels[top : top + height * scale : scale, start : start + width * scale : scale]
    return images
