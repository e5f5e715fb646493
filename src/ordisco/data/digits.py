"""scikit-learn's handwritten digits: 1,797 real 8×8 grey images that come with the package."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from ordisco.data.dataset import Split, hold_out

CLASSES = tuple("0123456789")
TEST_SHARE = 0.2
SPLIT_SEED = 0  # fixed, so that the test set is the same whatever the stream's seed


def classes(files: Sequence[Path]) -> dict[str, str]:
    """The ten digits."""
    return {name: name for name in CLASSES}


def read(files: Sequence[Path], keys: Sequence[str], size: int | None) -> tuple[Split, Split]:
    """Train and test: a fifth of each class is held out, always the same images."""
    pixels, labels = _table()
    images = np.rint(pixels.reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    test = hold_out(labels, TEST_SHARE, SPLIT_SEED)

    def part(mask: np.ndarray) -> Split:
        return Split(torch.from_numpy(images[mask]), torch.from_numpy(labels[mask]))

    return part(~test), part(test)


def _table() -> tuple[np.ndarray, np.ndarray]:
    """Pixels from 0 to 16 and labels, from the file in the package: to import scikit-learn takes seconds."""
    package = find_spec("sklearn")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz" if package and package.origin else None
    if file is None or not file.is_file():
        from sklearn.datasets import load_digits

        pixels, target = load_digits(return_X_y=True)
        return pixels, target.astype(np.int64)
    with gzip.open(file) as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.int64)
    return table[:, :-1], table[:, -1]
