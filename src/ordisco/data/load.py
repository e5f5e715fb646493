"""Loading a data set by its name or path."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from ordisco.data import own, pixels
from ordisco.data.cache import Decoded, cached, key_of
from ordisco.data.catalogue import CATALOGUE, OWN, Entry, not_a_dataset
from ordisco.data.dataset import Dataset, Split, choose_classes
from ordisco.data.sources import data_directory, differences, obtain
from ordisco.data.unread import Unread, select_classes, whole
from ordisco.errors import UsageError

LARGEST_SIZE = 512


class Reader(Protocol):
    """The module that reads the files of a data set."""

    def classes(self, files: Sequence[Path]) -> dict[str, str]:
        """The names of the classes by the keys that the files use, in order."""

    def read(self, files: Sequence[Path], keys: Sequence[str], size: int | None) -> tuple[Split, Split]:
        """The train and test images of these classes, labelled by their position; `size` may be left to the caller."""


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
    """A data set by its name in the catalogue, or the path of a folder or CSV file, in memory.

    `size`: resize to size×size. `classes` names a choice of classes; `num_classes` has `seed` draw it.
    `seed` also draws the test images of one's own data that has none. `strict`: an own image that cannot be
    decoded is an error. `download`: fetch missing files from the publisher. `fresh`: decode the
    files without reading or writing the decoded form that is kept.

    >>> digits = load("digits", classes=("3", "8"))
    >>> digits.classes, digits.image_shape
    (('3', '8'), (1, 8, 8))
    """
    return find(
        name,
        data_dir,
        size=size,
        num_classes=num_classes,
        classes=classes,
        seed=seed,
        strict=strict,
        download=download,
        fresh=fresh,
    ).read()


def find(
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
) -> Unread:
    """The same with its images not read yet, where their decoded form is kept in a file."""
    if size is not None and not 4 <= size <= LARGEST_SIZE:
        raise UsageError(f"size = {size} is not allowed: from 4 to {LARGEST_SIZE}")
    root = data_directory(data_dir)
    if name not in CATALOGUE:
        decoded = read_own(name, root, size, seed, strict, fresh)
        short, entry = Path(name).resolve().stem, OWN
        chosen = choose_classes(decoded.classes, num_classes, classes, seed, short)
    else:
        short, entry = name, CATALOGUE[name]
        files = obtain(name, root, download=download)
        names = reader_of(entry).classes(files)
        if classes is not None:
            classes = tuple(names.get(wanted, wanted) for wanted in classes)
        chosen = choose_classes(list(names.values()), num_classes, classes, seed, name)
        keys = [list(names)[index] for index in chosen] if entry.by_class else list(names)
        decoded = read_published(entry, root, files, keys, names, size, fresh)
    translate = entry.shift(decoded.train.source.shape[-1])
    dataset = Unread(short, decoded.classes, decoded.train, decoded.test, entry.flip, translate)
    return dataset if entry.by_class else select_classes(dataset, chosen)


def reader_of(entry: Entry) -> Reader:
    """The module that reads a data set."""
    return cast(Reader, importlib.import_module(f"ordisco.data.{entry.reader}"))


def read_published(
    entry: Entry,
    root: Path,
    files: list[Path],
    keys: Sequence[str],
    names: dict[str, str],
    size: int | None,
    fresh: bool,
) -> Decoded:
    """The images of these classes, from the cache if they are there; embedded ones need none."""

    def decode() -> Decoded:
        notes = differences(entry.name, root)
        train, test = (whole(sized(split, size)) for split in reader_of(entry).read(files, keys, size))
        return Decoded(tuple(names[key] for key in keys), train, test, notes)

    if not files:
        return decode()
    options = [keys, size] if entry.by_class else [size]
    return cached(root / "cache" / f"{entry.name}-{key_of(files, *options)}.safetensors", decode, fresh)


def read_own(name: str, root: Path, size: int | None, seed: int, strict: bool, fresh: bool) -> Decoded:
    """A user's own images, from the cache if nothing about them has changed."""
    source = Path(os.path.expanduser(name))
    if not (os.path.isdir(source) or (os.path.isfile(source) and source.suffix.lower() == ".csv")):
        raise not_a_dataset(name)
    images = own.list_images(source)
    listing = [(image.label, image.test) for image in images]
    key = key_of([image.path for image in images], listing, size, seed, strict)
    plain = re.sub(r"[^\w.-]", "_", source.resolve().stem, flags=re.ASCII)[:40]
    cache = root / "cache" / f"own-{plain}-{key}.safetensors"
    return cached(cache, lambda: own.read(source, images, size or own.DEFAULT_SIZE, seed, strict), fresh)


def sized(split: Split, size: int | None) -> Split:
    """The images at that size."""
    return split if size is None else Split(pixels.resize(split.images, size), split.labels)
