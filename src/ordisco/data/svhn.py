"""SVHN, cropped digits: the publisher's two .mat files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError

CLASSES = tuple("0123456789")
MOST_IMAGES = 1_000_000  # the publisher's largest part has 531,131
NUMBERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "single", "double")


def classes(files: Sequence[Path]) -> dict[str, str]:
    """The ten digits."""
    return {name: name for name in CLASSES}


def read(files: Sequence[Path], keys: Sequence[str], size: int | None) -> tuple[Split, Split]:
    """Train and test images; the publisher's label 10 is the digit 0."""
    train, test = files
    return _read(train), _read(test)


def _read(path: Path) -> Split:
    from scipy.io import loadmat, whosmat

    try:
        _check_header(path, whosmat(path))
        content = loadmat(path, variable_names=("X", "y"))
        pixels, labels = content["X"], content["y"].reshape(-1)
    except (OrdiscoError, MemoryError):
        raise
    except NotImplementedError as error:
        raise OrdiscoError(
            f"{path}: saved as MATLAB 7.3 (HDF5), the publisher's file is not; fetch it again"
        ) from error
    except Exception as error:  # scipy raises many kinds for a broken file
        raise OrdiscoError(
            f"{path}: damaged or not SVHN's .mat file ({error}); delete it and fetch it again"
        ) from error
    if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, labels.size):
        raise OrdiscoError(f"{path}: expected X of 32×32×3×n bytes and n labels, found {pixels.shape}, {labels.shape}")
    if len(wrong := labels[~np.isin(labels, np.arange(1, 11))]):  # also fractions, NaN, complex numbers
        raise OrdiscoError(f"{path}: label {wrong[0]} is not from 1 to 10")
    # (h, w, c, n) in Fortran order is (n, c, w, h) in C order: one copy swaps the last two
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    return Split(torch.from_numpy(images), torch.from_numpy(labels.real.astype(np.int64) % 10))


def _check_header(path: Path, variables: list[tuple[str, tuple[int, ...], str]]) -> None:
    """Names, shapes and kinds as the file declares them, before anything is read: X is n images, y their labels."""
    declared = [(shape, kind) for wanted in ("X", "y") for name, shape, kind in variables if name == wanted]
    if len(declared) != 2:
        raise ValueError(f"one X and one y expected, found {', '.join(name for name, _, _ in variables) or 'nothing'}")
    (images, image_kind), (labels, label_kind) = declared
    count = math.prod(labels)
    if image_kind != "uint8" or images != (32, 32, 3, count) or not 0 < count <= MOST_IMAGES:
        raise OrdiscoError(
            f"{path}: expected X of 32×32×3×n bytes and n labels, found X of {_words(images, image_kind)} "
            f"and y of {_words(labels, label_kind)}"
        )
    if label_kind not in NUMBERS:
        raise OrdiscoError(f"{path}: the labels y must be numbers, found {_words(labels, label_kind)}")


def _words(shape: tuple[int, ...], kind: str) -> str:
    return f"{'×'.join(str(side) for side in shape)} {kind}"
