"""Tiny-ImageNet straight from the publisher's zip; the validation images are the test set."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from ordisco.data import picture
from ordisco.data.archive import check_member
from ordisco.data.dataset import Split, folded
from ordisco.errors import OrdiscoError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "tiny-imagenet-200/"
NATIVE_SIZE = 64
LARGEST_TEXT, LARGEST_IMAGE = 1 << 26, 1 << 20  # bytes; the largest real text has 2.6 MB, an image a few kB
ENCRYPTED = 1  # the flag of a zip's member


def read(files: Sequence[Path], keys: Sequence[str], size: int | None) -> tuple[Split, Split]:
    """Train and test images of the classes with these WordNet ids, labelled by their position."""
    [archive], wnids, size = files, keys, size or NATIVE_SIZE
    label = {wnid: index for index, wnid in enumerate(wnids)}
    with _opened(archive) as zipped:
        train = []
        for name in sorted(zipped.namelist()):
            parts = name.removeprefix(ROOT).split("/")
            if parts[0] == "train" and len(parts) == 4 and parts[2] == "images" and parts[1] in label and parts[3]:
                train.append((name, label[parts[1]]))
        test = []
        for line in _text(archive, zipped, "val/val_annotations.txt"):
            fields = line.split("\t")
            if len(fields) < 2:
                raise OrdiscoError(f"{archive}: {ROOT}val/val_annotations.txt has a line without a class: {line!r}")
            if fields[1] in label:
                test.append((f"{ROOT}val/images/{fields[0]}", label[fields[1]]))
        if len(dict(test)) < len(test):
            raise OrdiscoError(f"{archive}: {ROOT}val/val_annotations.txt names an image twice; fetch it again")
        for part, members in (("training", train), ("validation", test)):
            if absent := set(range(len(wnids))) - {index for _, index in members}:
                raise OrdiscoError(f"{archive}: class {wnids[min(absent)]} has no {part} images; fetch it again")
        return _decode(archive, zipped, train, size), _decode(archive, zipped, test, size)


def classes(files: Sequence[Path]) -> dict[str, str]:
    """The archive's classes: WordNet id → first English name, in the order of the ids."""
    [archive] = files
    with _opened(archive) as zipped:
        wnids = sorted({line.strip() for line in _text(archive, zipped, "wnids.txt")})
        words = dict(line.split("\t", 1) for line in _text(archive, zipped, "words.txt") if "\t" in line)
    if not wnids:
        raise OrdiscoError(f"{archive}: {ROOT}wnids.txt names no class; fetch it again")
    names = {wnid: words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids}
    count = Counter(folded(name) for name in names.values())
    return {wnid: f"{name} ({wnid})" if count[folded(name)] > 1 else name for wnid, name in names.items()}


@contextmanager
def _opened(archive: Path) -> Iterator[zipfile.ZipFile]:
    with _told(archive), zipfile.ZipFile(archive) as zipped:
        names = zipped.namelist()
        for name in names:
            check_member(archive, name)
        if len(set(names)) < len(names):
            raise OrdiscoError(f"{archive}: a member is in it twice; delete it and fetch it again")
        yield zipped


@contextmanager
def _told(archive: Path) -> Iterator[None]:
    """What zipfile and zlib raise for a broken file, as one line."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError, struct.error) as error:
        raise OrdiscoError(f"{archive}: damaged archive ({error}); delete it and fetch it again") from error


def _member(archive: Path, zipped: zipfile.ZipFile, name: str, largest: int = LARGEST_TEXT) -> bytes:
    """A member's bytes: never more than it claims, and not if that is more than `largest`."""
    try:
        info = zipped.getinfo(name)
    except KeyError as error:
        raise OrdiscoError(f"{archive}: {name} missing; delete it and fetch it again") from error
    if info.flag_bits & ENCRYPTED:
        raise OrdiscoError(f"{archive}: the member {name} is encrypted, the publisher's is not; fetch it again")
    if info.file_size > largest:
        raise OrdiscoError(
            f"{archive}: the member {name} claims {info.file_size:,} bytes, more than {largest:,}; "
            "do not trust this file"
        )
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise OrdiscoError(
            f"{archive}: the member {name} is packed in another way than the publisher's; fetch it again"
        )
    with zipped.open(info) as content:
        return content.read(info.file_size + 1)  # with a number, zipfile does not inflate more than that


def _text(archive: Path, zipped: zipfile.ZipFile, name: str) -> list[str]:
    text = _member(archive, zipped, ROOT + name).decode("utf-8", errors="replace")
    return [line for line in text.splitlines() if line.strip()]


def _decode(archive: Path, zipped: zipfile.ZipFile, members: list[tuple[str, int]], size: int) -> Split:
    images = np.empty((len(members), 3, size, size), dtype=np.uint8)
    for index, (name, _) in enumerate(members):
        content = _member(archive, zipped, name, LARGEST_IMAGE)
        try:
            images[index], _ = picture.decode(content, size)
        except picture.Undecodable as error:
            raise OrdiscoError(f"{archive}: cannot decode {name} ({error}); delete it and fetch it again") from error
    labels = torch.tensor([label for _, label in members], dtype=torch.int64)
    return Split(torch.from_numpy(images), labels)
