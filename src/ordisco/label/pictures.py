"""Image files as the page shows them: decoded here, so that the browser gets nothing but fresh PNG."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

from PIL import Image, ImageOps

from ordisco.data.picture import known_formats

LARGEST = 1024  # pixels of a side that are sent
UNREADABLE = b""


def picture(path: Path) -> bytes:
    """The image as PNG without any note that the file carries; nothing where it cannot be read."""
    if not path.is_file():  # a pipe would block
        return UNREADABLE
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with path.open("rb") as file, Image.open(file, formats=known_formats()) as image:
                upright = ImageOps.exif_transpose(image)
                shown = upright if upright.mode in ("L", "RGB", "RGBA", "1", "P", "LA") else upright.convert("RGB")
                shown.thumbnail((LARGEST, LARGEST))
                out = io.BytesIO()
                shown.info = {name: shown.info[name] for name in ("transparency",) if name in shown.info}
                shown.save(out, format="PNG", compress_level=1)
                return out.getvalue()
    except MemoryError:
        raise
    except Exception:  # Pillow raises many kinds for a broken file
        return UNREADABLE
