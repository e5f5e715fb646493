"""SVHN, cropped digits: the publisher's two .mat files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError

CLASSES = tuple("0123456789")


def read(train: Path, test: Path) -> tuple[Split, Split]:
    """Train and test images; the publisher's label 10 is the digit 0."""
    return _read(train), _read(test)


def _read(path: Path) -> Split:
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=("X", "y"))
        pixels, labels = content["X"], content["y"].reshape(-1)
    except MemoryError:
        raise
    except Exception as error:  # scipy raises many kinds for a broken file
        raise OrdiscoError(
            f"{path}: damaged or not SVHN's .mat file ({error}); delete it and fetch it again"
        ) from error
    if (
        pixels.dtype != np.uint8
        or pixels.shape[:3] != (32, 32, 3)
        or pixels.shape[3:] != labels.shape
        or not labels.size
    ):
        raise OrdiscoError(f"{path}: expected X of 32×32×3×n bytes and n labels, found {pixels.shape}, {labels.shape}")
    if labels.min() < 1 or labels.max() > 10:
        raise OrdiscoError(f"{path}: label {labels.max() if labels.max() > 10 else labels.min()} is not from 1 to 10")
    # (h, w, c, n) in Fortran order is (n, c, w, h) in C order: one copy swaps the last two
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    return Split(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64) % 10))
