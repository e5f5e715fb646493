"""Images that lie in a file and are read as they are drawn, however many there are."""

from __future__ import annotations

import contextlib
import math
import mmap
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ordisco import files


class MappedImages:
    """A file of uint8 images as a tensor, without its being read into memory."""

    def __init__(self, path: Path, shape: tuple[int, int, int, int]) -> None:
        self.path, self._map = path, None
        size = math.prod(shape)
        with files.opened(path) as descriptor:
            length = Path(path).stat().st_size
            if length != size:
                raise ValueError(f"{path.name} has {length:,} bytes, not {size:,}")
            if size:
                self._map = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
        array = np.frombuffer(self._map, np.uint8) if self._map is not None else np.empty(0, np.uint8)
        self.tensor: Tensor = torch.from_numpy(array.reshape(shape))

    def rest(self) -> None:
        """Give back the memory of the pages read so far; they are read again when they are needed."""
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            with contextlib.suppress(OSError, ValueError):
                self._map.madvise(mmap.MADV_DONTNEED)
