"""Deliveries of a few 8×8 images as PNG files, and models that learn them in a few steps."""

from pathlib import Path

import numpy as np
from PIL import Image

from conftest import TINY, blobs
from ordisco.model.model import Model
from ordisco.settings.machine import MachineSettings

CPU = MachineSettings(accelerator="cpu")
QUICK = TINY.replace(statistics=2)  # what the others of 32 would add is tested in tests/learner


def write_images(folder: Path, label: int, count: int, seed: int, channels: int = 1) -> None:
    """Images of a class by number."""
    folder.mkdir(parents=True, exist_ok=True)
    for index, image in enumerate(blobs([label] * count, seed, channels)):
        pixels = image.permute(1, 2, 0).numpy()
        Image.fromarray(pixels[..., 0] if channels == 1 else pixels).save(folder / f"{seed}-{label}-{index}.png")


def write_delivery(
    folder: Path, classes: str, seed: int, labeled: int = 3, unlabeled: int = 4, channels: int = 1
) -> Path:
    """A folder a class, `abc` are three, and unlabeled/."""
    for name in classes:
        write_images(folder / name, "abcdefghij".index(name), labeled, seed, channels) if labeled else None
        if unlabeled:
            write_images(folder / "unlabeled", "abcdefghij".index(name), unlabeled, seed + 1_000, channels)
    return folder


def new_model(path: Path | None, **options: object) -> Model:
    """A model of networks of four channels; three steps a delivery, unless said otherwise."""
    return Model.create(path, side=8, settings=QUICK, machine=CPU, **options)


def arrays(labels: list[int], seed: int = 0) -> np.ndarray:
    """The same images in memory, (n, 8, 8)."""
    return blobs(labels, seed)[:, 0].numpy()
