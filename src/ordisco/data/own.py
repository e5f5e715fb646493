"""A user's own images: a folder with one sub-folder a class, or a CSV of path,label[,split]."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from ordisco.data import pixels
from ordisco.data.cache import Decoded
from ordisco.data.dataset import UNLABELED, Split, hold_out, natural_order
from ordisco.errors import OrdiscoError

DEFAULT_SIZE = 32
TEST_SHARE = 0.2
TEST, UNLABELED_FOLDERS = "test", ("unlabeled", "unlabelled")
NAMES_SHOWN = 5


@dataclass(frozen=True)
class Listed:
    """An image that is to be read: its class (None: unlabelled) and whether it belongs to the test set."""

    path: Path
    label: str | None
    test: bool = False


def list_images(source: Path) -> list[Listed]:
    """What the folder or CSV file names, in a fixed order."""
    try:
        images = _list_folder(source) if source.is_dir() else list(_list_csv(source))
    except OSError as error:
        raise OrdiscoError(f"cannot read {error.filename or source}: {error.strerror or error}") from error
    if not images:
        raise OrdiscoError(f"{source}: no images found; expected one sub-folder a class, or lines of path,label")
    classes = {image.label for image in images if not image.test and image.label is not None}
    if len(classes) < 2:
        raise OrdiscoError(f"{source}: {len(classes)} labelled classes found in the training images, 2 or more needed")
    for image in images:
        if image.test and image.label not in classes:
            raise OrdiscoError(f"{source}: test image {image.path} has the class {image.label!r}, unknown in training")
    return images


def read(source: Path, images: Sequence[Listed], size: int, seed: int, strict: bool) -> Decoded:
    """Decode the listed images; broken ones are skipped and named, or an error if `strict`."""
    array = np.empty((len(images), 1, size, size), dtype=np.uint8)  # grey until a colour image comes
    kept: list[Listed] = []
    skipped: list[str] = []
    for image in images:
        try:
            image_pixels, grey = pixels.decode(image.path, size)
        except pixels.BROKEN as error:
            if strict:
                raise OrdiscoError(
                    f"cannot decode {image.path} ({error}); mend or remove it, or leave out --strict"
                ) from error
            skipped.append(str(image.path))
            continue
        if not grey and array.shape[1] == 1:
            array = np.repeat(array, 3, axis=1)
        array[len(kept)] = image_pixels[: array.shape[1]]
        kept.append(image)
    array = array[: len(kept)]
    classes = natural_order(sorted({image.label for image in images if image.label is not None}))
    label_of = {name: index for index, name in enumerate(classes)}
    labels = np.array([UNLABELED if i.label is None else label_of[i.label] for i in kept], dtype=np.int64)
    test = np.array([image.test for image in kept], dtype=bool)
    _check_counts(source, classes, labels, test, skipped)
    notes = _skipped_note(source, skipped)
    if not test.any():
        test = hold_out(labels, TEST_SHARE, seed)
    return Decoded(tuple(classes), _part(array, labels, ~test), _part(array, labels, test), notes)


def _list_folder(folder: Path) -> list[Listed]:
    images = []
    for child in _folders(folder):
        if child.name == TEST:
            for class_folder in _folders(child):
                images += [Listed(path, class_folder.name, test=True) for path in _files(class_folder)]
        else:
            label = None if child.name in UNLABELED_FOLDERS else child.name
            found = [Listed(path, label) for path in _files(child)]
            if label is not None and not found:
                raise OrdiscoError(f"{child}: no images in this class; add some or remove the folder")
            images += found
    return images


def _folders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    """Files with an image's extension, hidden ones left out."""
    from PIL import Image

    known = Image.registered_extensions()
    return sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in known and not path.name.startswith(".") and path.is_file()
    )


def _list_csv(file: Path) -> Iterator[Listed]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(stream, strict=True)
            if rows.fieldnames is None or not {"path", "label"} <= set(rows.fieldnames):
                raise OrdiscoError(f"{file}: the first line must be path,label or path,label,split")
            for row in rows:
                yield _csv_row(file, rows.line_num, row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise OrdiscoError(f"{file}: cannot be read as CSV in UTF-8 ({error})") from error


def _csv_row(file: Path, line: int, row: dict[str, str | None]) -> Listed:
    path, label, split = ((row.get(column) or "").strip() for column in ("path", "label", "split"))
    if not path:
        raise OrdiscoError(f"{file}, line {line}: no path")
    if split not in ("", "train", "test"):
        raise OrdiscoError(f"{file}, line {line}: split is {split!r}; allowed: train, test or nothing")
    if split == "test" and not label:
        raise OrdiscoError(f"{file}, line {line}: a test image needs a label")
    return Listed(file.parent / path, label or None, test=split == "test")


def _check_counts(
    source: Path, classes: Sequence[str], labels: np.ndarray, test: np.ndarray, skipped: Sequence[str]
) -> None:
    least = 1 if test.any() else 2  # one stays when one is held out
    for label, name in enumerate(classes):
        count = int((labels[~test] == label).sum())
        if count < least:
            why = f" ({len(skipped)} images could not be decoded, e.g. {skipped[0]})" if skipped else ""
            raise OrdiscoError(f"{source}: class {name!r} has {count} readable labelled images, {least} needed{why}")


def _skipped_note(source: Path, skipped: Sequence[str]) -> tuple[str, ...]:
    if not skipped:
        return ()
    more = f" and {len(skipped) - NAMES_SHOWN} more" if len(skipped) > NAMES_SHOWN else ""
    return (f"{source}: {len(skipped)} unreadable images skipped: {', '.join(skipped[:NAMES_SHOWN])}{more}",)


def _part(array: np.ndarray, labels: np.ndarray, mask: np.ndarray) -> Split:
    return Split(torch.from_numpy(array[mask]), torch.from_numpy(labels[mask]))
