"""A user's own images: a folder with one sub-folder a class, or a CSV of path,label[,split]."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import torch

from ordisco.data import picture
from ordisco.data.cache import Decoded
from ordisco.data.dataset import UNLABELED, Split, folded, hold_out, natural_order
from ordisco.data.unread import Part, whole
from ordisco.errors import OrdiscoError
from ordisco.words import some_of

DEFAULT_SIZE = 32
TEST_SHARE = 0.2
TEST, UNLABELED_FOLDERS = "test", ("unlabeled", "unlabelled")
NAMES_SHOWN = 5
COLUMNS, BEYOND = ("path", "label", "split"), "…"
LONGEST_LINE = 1 << 20


@dataclass(frozen=True)
class Listed:
    """An image that is to be read: its class (None: unlabelled) and whether it belongs to the test set."""

    path: Path
    label: str | None
    test: bool = False


def list_images(source: Path) -> list[Listed]:
    """What the folder or CSV file names, in a fixed order; two classes at least."""
    with _told(source):
        images = list(_list_folder(source) if source.is_dir() else _list_csv(source))
    if not images:
        raise nothing_in(source)
    _check_twice(source, images)
    classes = {image.label for image in images if not image.test and image.label is not None}
    check_names(source, classes)
    if len(classes) < 2:
        raise OrdiscoError(f"{source}: {len(classes)} labelled classes found in the training images, 2 or more needed")
    for image in images:
        if image.test and image.label not in classes:
            raise OrdiscoError(f"{source}: test image {image.path} has the class {image.label!r}, unknown in training")
    return images


def stream_images(source: Path) -> Iterator[Listed]:
    """The same one by one, of any number of classes, unchecked; where a folder has no sub-folders, its own images."""
    with _told(source):
        if not source.is_dir():
            yield from _list_csv(source)
            return
        found = False
        for image in _list_folder(source):
            found = True
            yield image
        if not found:
            yield from (Listed(path, None) for path in _walk_files(source))


def nothing_in(source: Path) -> OrdiscoError:
    """The error for a folder or file without images."""
    return OrdiscoError(f"{source}: no images found; expected one sub-folder a class, or lines of path,label")


def walk(source: Path) -> Iterator[Listed]:
    """All images of a folder, at any depth, or of a CSV file, one by one; those of a sub-folder have its name."""
    with _told(source):
        if not source.is_dir():
            yield from _list_csv(source, needed=("path",))
            return
        for child in sorted(source.iterdir()):
            if child.name.startswith("."):
                continue
            if not child.is_dir():
                if _is_image(child.name):
                    yield Listed(child, None)
            elif child.name == TEST:
                yield from (Listed(image.path, image.label, test=True) for image in walk(child))
            else:
                label = None if child.name in UNLABELED_FOLDERS else _label(child)
                yield from (Listed(path, label) for path in _walk_files(child))


@contextlib.contextmanager
def _told(source: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OrdiscoError(f"cannot read {error.filename or source}: {error.strerror or error}") from error


def read(source: Path, images: Sequence[Listed], size: int, seed: int, strict: bool) -> Decoded:
    """Decode the listed images; broken ones are skipped and named, or an error if `strict`."""
    array = np.empty((len(images), 1, size, size), dtype=np.uint8)  # grey until a colour image comes
    kept: list[Listed] = []
    skipped: list[str] = []
    for image in images:
        try:
            image_pixels, grey = picture.decode(image.path, size)
        except picture.Undecodable as error:
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


def _list_folder(folder: Path) -> Iterator[Listed]:
    for child in _folders(folder):
        if child.name == TEST:
            for class_folder in _folders(child):
                yield from (Listed(path, _label(class_folder), test=True) for path in _walk_files(class_folder))
        else:
            label = None if child.name in UNLABELED_FOLDERS else _label(child)
            found = False
            for path in _walk_files(child):
                found = True
                yield Listed(path, label)
            if label is not None and not found:
                raise OrdiscoError(f"{child}: no images in this class; add some or remove the folder")


def _label(folder: Path) -> str:
    """The folder's name as text that can be written anywhere; bytes that are no UTF-8 are escaped."""
    return os.fsencode(folder.name).decode("utf-8", "backslashreplace")


def _folders(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def _walk_files(folder: Path) -> Iterator[Path]:
    """Everything with an image's extension that is no folder, in all sub-folders; hidden files are left out."""

    def refuse(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=refuse):
        folders.sort()
        yield from (Path(where, name) for name in sorted(names) if _is_image(name))


def _is_image(name: str) -> bool:
    from PIL import Image

    return os.path.splitext(name)[1].lower() in Image.registered_extensions() and not name.startswith(".")


def _list_csv(file: Path, needed: Collection[str] = ("path", "label")) -> Iterator[Listed]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(_lines(file, stream), restkey=BEYOND, strict=True)
            columns = [column for column in rows.fieldnames or () if column in COLUMNS]
            if not set(needed) <= set(columns) or len(set(columns)) < len(columns):
                raise OrdiscoError(f"{file}: the first line must be path,label or path,label,split")
            for row in rows:
                if BEYOND in row:
                    raise OrdiscoError(f"{file}, line {rows.line_num}: more fields than the first line; quote commas")
                yield _csv_row(file, rows.line_num, row)
    except (UnicodeDecodeError, csv.Error) as error:
        raise OrdiscoError(f"{file}: cannot be read as CSV in UTF-8 ({error})") from error


def _lines(file: Path, stream: TextIO) -> Iterator[str]:
    """The lines of a text file; what no text has is refused."""
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), ""), start=1):
        if "\0" in line:
            raise OrdiscoError(f"{file}, line {number}: a NUL byte; save it as plain text in UTF-8")
        if len(line) > LONGEST_LINE:
            raise OrdiscoError(f"{file}, line {number}: longer than {LONGEST_LINE:,} characters; is it a CSV file?")
        yield line


def _csv_row(file: Path, line: int, row: dict[str, str | None]) -> Listed:
    path, label, split = ((row.get(column) or "").strip() for column in ("path", "label", "split"))
    if not path:
        raise OrdiscoError(f"{file}, line {line}: no path")
    if split not in ("", "train", "test"):
        raise OrdiscoError(f"{file}, line {line}: split is {split!r}; allowed: train, test or nothing")
    if split == "test" and not label:
        raise OrdiscoError(f"{file}, line {line}: a test image needs a label")
    return Listed(file.parent / path, label or None, test=split == "test")


def _check_twice(source: Path, images: Sequence[Listed]) -> None:
    """Refuse a file that is listed twice, be it by another path: with two labels, or in training and test."""
    folders: dict[Path, str] = {}
    seen: dict[str, Listed] = {}
    for image in images:
        if image.path.parent not in folders:
            folders[image.path.parent] = os.path.realpath(image.path.parent)
        place = os.path.join(folders[image.path.parent], image.path.name)
        other = seen.setdefault(os.path.realpath(place) if os.path.islink(place) else place, image)
        if other is not image:
            kinds = " and ".join(dict.fromkeys(_kind(one) for one in (other, image)))
            path = image.path if other.path == image.path else f"{image.path} (also {other.path})"
            raise OrdiscoError(f"{source}: {path} is listed twice, as {kinds}; list it once")


def _kind(image: Listed) -> str:
    label = "unlabelled" if image.label is None else repr(image.label)
    return f"{label} in test" if image.test else label


def check_names(source: Path, classes: Collection[str | None]) -> None:
    """Refuse names of classes that a reader would take for the same, or that cannot be seen."""
    seen: dict[str, str] = {}
    for name in sorted(name for name in classes if name is not None):
        if not folded(name):
            raise OrdiscoError(f"{source}: a class has the blank name {name!r}; give it a name")
        if (other := seen.setdefault(folded(name), name)) != name:
            raise OrdiscoError(
                f"{source}: the classes {other!a} and {name!a} differ only in case, spaces or Unicode form; "
                "give them one name"
            )


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
    return (f"{source}: {len(skipped)} unreadable images skipped: {some_of(skipped, NAMES_SHOWN)}",)


def _part(array: np.ndarray, labels: np.ndarray, mask: np.ndarray) -> Part:
    return whole(Split(torch.from_numpy(array[mask]), torch.from_numpy(labels[mask])))
