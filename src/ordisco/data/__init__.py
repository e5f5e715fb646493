"""Data sets: loading them by name or path, and turning pixels into network inputs and back."""

from __future__ import annotations

import os
import re
from pathlib import Path

import torch
from torch import Tensor

from ordisco.data import cifar10, digits, own, pixels, svhn, tiny_imagenet
from ordisco.data.cache import Decoded, cached, key_of
from ordisco.data.dataset import Dataset, Split, choose_classes, select_classes
from ordisco.data.sources import SOURCES, data_directory, differences, obtain
from ordisco.errors import UsageError

__all__ = ["Dataset", "Split", "denormalize", "load", "normalize"]

# does a mirrored image keep its label, and by how many pixels may a 32×32 image (digits: 8×8) be shifted
AUGMENTATION = {"digits": (False, 1), "svhn": (False, 2), "cifar10": (True, 4), "tiny-imagenet": (True, 4)}
OWN_AUGMENTATION = (False, 4)
LARGEST_SIZE = 512


def load(
    name: str,
    data_dir: Path | None = None,
    *,
    size: int | None = None,
    num_classes: int | None = None,
    classes: tuple[str, ...] | None = None,
    seed: int = 0,
    strict: bool = False,
    download: bool = True,
    fresh: bool = False,
) -> Dataset:
    """A data set by name: digits, svhn, cifar10, tiny-imagenet, or the path of a folder or CSV file.

    `size`: resize to size×size. `classes` names a choice of classes; `num_classes` has `seed` draw it.
    `seed` also draws the test images of one's own data that has none. `strict`: an own image that cannot be
    decoded is an error. `download`: fetch missing files from the publisher. `fresh`: decode the
    files without reading or writing the decoded form that is kept.
    """
    if size is not None and not 4 <= size <= LARGEST_SIZE:
        raise UsageError(f"size = {size} is not allowed: from 4 to {LARGEST_SIZE}")
    root = data_directory(data_dir)
    if name == "tiny-imagenet":
        return _tiny_imagenet(root, size or tiny_imagenet.NATIVE_SIZE, num_classes, classes, seed, download, fresh)
    decoded = _decoded(name, root, size, seed, strict, download, fresh)
    flip, translate = AUGMENTATION.get(name, OWN_AUGMENTATION)
    if name != "digits":
        translate = _shift(translate, decoded.train.images.shape[-1])
    short_name = name if name in SOURCES else Path(name).resolve().stem
    dataset = Dataset(short_name, decoded.classes, decoded.train, decoded.test, flip, translate)
    return select_classes(dataset, choose_classes(dataset.classes, num_classes, classes, seed, short_name))


def normalize(images: Tensor) -> Tensor:
    """uint8 pixels as floats in [−1, 1], on the images' device."""
    return images.to(torch.get_default_dtype(), copy=True).div_(127.5).sub_(1)


def denormalize(images: Tensor) -> Tensor:
    """Floats in [−1, 1] as uint8 pixels, rounded and clamped."""
    return images.detach().float().add(1).mul_(127.5).round_().clamp_(0, 255).to(torch.uint8)


def _decoded(name: str, root: Path, size: int | None, seed: int, strict: bool, download: bool, fresh: bool) -> Decoded:
    if name == "digits":
        return _sized(Decoded(digits.CLASSES, *digits.read()), size)
    if name in SOURCES:
        files = obtain(name, root, download=download)
        cache = root / "cache" / f"{name}-{key_of(files, size)}.safetensors"
        return cached(cache, lambda: _sized(_published(name, files, root), size), fresh)
    source = Path(os.path.expanduser(name))
    if not (os.path.isdir(source) or (os.path.isfile(source) and source.suffix.lower() == ".csv")):
        raise UsageError(
            f"data set {name!r} is not allowed: one of {', '.join(SOURCES)}, or an existing folder or .csv"
        )
    images = own.list_images(source)
    listing = [(image.label, image.test) for image in images]
    key = key_of([image.path for image in images], listing, size, seed, strict)
    plain = re.sub(r"[^\w.-]", "_", source.resolve().stem, flags=re.ASCII)[:40]
    cache = root / "cache" / f"own-{plain}-{key}.safetensors"
    return cached(cache, lambda: own.read(source, images, size or own.DEFAULT_SIZE, seed, strict), fresh)


def _published(name: str, files: list[Path], root: Path) -> Decoded:
    notes = differences(name, root)
    if name == "svhn":
        return Decoded(svhn.CLASSES, *svhn.read(*files), notes)
    return Decoded(cifar10.CLASSES, *cifar10.read(*files), notes)


def _tiny_imagenet(
    root: Path,
    size: int,
    num_classes: int | None,
    classes: tuple[str, ...] | None,
    seed: int,
    download: bool,
    fresh: bool,
) -> Dataset:
    """Only the chosen classes are decoded, named by WordNet id or by English name."""
    [archive] = obtain("tiny-imagenet", root, download=download)
    names = tiny_imagenet.class_names(archive)
    wnids = list(names)
    if classes is not None:
        classes = tuple(names.get(name, name) for name in classes)
    chosen = choose_classes(list(names.values()), num_classes, classes, seed, "tiny-imagenet")
    wnids = [wnids[index] for index in chosen]
    cache = root / "cache" / f"tiny-imagenet-{key_of([archive], wnids, size)}.safetensors"

    def decode() -> Decoded:
        notes = differences("tiny-imagenet", root)
        return Decoded(tuple(names[wnid] for wnid in wnids), *tiny_imagenet.read(archive, wnids, size), notes)

    decoded = cached(cache, decode, fresh)
    flip, translate = AUGMENTATION["tiny-imagenet"]
    return Dataset("tiny-imagenet", decoded.classes, decoded.train, decoded.test, flip, _shift(translate, size))


def _sized(decoded: Decoded, size: int | None) -> Decoded:
    if size is None:
        return decoded
    train, test = (Split(pixels.resize(split.images, size), split.labels) for split in (decoded.train, decoded.test))
    return Decoded(decoded.classes, train, test, decoded.notes)


def _shift(translate: int, size: int) -> int:
    """A shift meant for 32 pixels, for images of another size: in proportion, but never larger."""
    return max(1, min(translate, translate * size // 32))
