"""scikit-learn's handwritten digits: 1,797 real 8×8 grey images that come with the package."""

from __future__ import annotations

import numpy as np
import torch

from ordisco.data.dataset import Split, hold_out

CLASSES = tuple("0123456789")
TEST_SHARE = 0.2
SPLIT_SEED = 0  # fixed, so that the test set is the same whatever the stream's seed


def read() -> tuple[Split, Split]:
    """Train and test: a fifth of each class is held out, always the same images."""
    from sklearn.datasets import load_digits

    pixels, target = load_digits(return_X_y=True)
    images = np.rint(pixels.reshape(-1, 1, 8, 8) * (255 / 16)).astype(np.uint8)
    labels = target.astype(np.int64)
    test = hold_out(labels, TEST_SHARE, SPLIT_SEED)

    def part(mask: np.ndarray) -> Split:
        return Split(torch.from_numpy(images[mask]), torch.from_numpy(labels[mask]))

    return part(~test), part(test)
