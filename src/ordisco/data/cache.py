"""Decoded images kept in one safetensors file, so that the second load takes well under a second."""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ordisco.data.unread import Part, in_place
from ordisco.errors import OrdiscoError, OrdiscoWarning
from ordisco.files import written_aside

VERSION = 1  # raise it when decoding changes
PARTS = ("train", "test")
STRETCH = 4 << 20  # bytes of a file that are read at once


@dataclass(frozen=True)
class Decoded:
    """What a reader makes of the files; `notes` are warnings to repeat at every load."""

    classes: tuple[str, ...]
    train: Part
    test: Part
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class InFile:
    """Images of a safetensors file, read a little at a time.

    The file is opened anew each time: what is mapped of it counts as memory of the process until it is closed.
    """

    path: Path
    name: str
    shape: tuple[int, ...]

    @staticmethod
    def of(path: Path, name: str, file: Any) -> InFile:
        """Those of an open file; a `ValueError` if they are no images."""
        part = file.get_slice(name)
        if part.get_dtype() != "U8" or len(part.get_shape()) != 4:
            raise ValueError(f"{name} are no images")
        return InFile(path, name, tuple(part.get_shape()))

    def take(self, rows: Tensor) -> Tensor:
        """The images of these rows; quick where they ascend."""
        images = torch.empty((len(rows), *self.shape[1:]), dtype=torch.uint8)
        if len(rows):
            for start, stop in self._stretches(int(rows.min()), int(rows.max()) + 1):
                inside = (rows >= start) & (rows < stop)
                if bool(inside.any()):
                    images[inside] = self._read(start, stop)[rows[inside] - start]
        return images

    def crc(self) -> int:
        """The checksum of all images."""
        crc = 0
        for start, stop in self._stretches(0, self.shape[0]):
            crc = _crc(self._read(start, stop), crc)
        return crc

    def _stretches(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        step = max(1, STRETCH // max(1, math.prod(self.shape[1:])))
        for start in range(first, end, step):
            yield start, min(start + step, end)

    def _read(self, start: int, stop: int) -> Tensor:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="np") as file:
                return torch.from_numpy(file.get_slice(self.name)[start:stop])
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise OrdiscoError(f"cannot read the decoded images at {self.path} ({reason}); start again") from error


def key_of(files: Sequence[Path], *options: object) -> str:
    """A name for the decoded form of these files: it changes with their size, their time and the options."""
    states = [(str(path), *_state(path)) for path in files]
    return hashlib.sha256(json.dumps([VERSION, states, *map(repr, options)]).encode()).hexdigest()[:16]


def cached(path: Path, decode: Callable[[], Decoded], fresh: bool = False) -> Decoded:
    """The content of the cache file, or what `decode` gives, which is then kept there.

    `fresh` leaves the cache alone: nothing is read from it or written to it.
    """
    decoded = None if fresh else _read(path)
    if decoded is None:
        decoded = decode()
        if not fresh:
            _write(path, decoded)
    for note in decoded.notes:
        warnings.warn(note, OrdiscoWarning, stacklevel=3)
    return decoded


def _state(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1  # a missing image of one's own is told by the reader
    return status.st_size, status.st_mtime_ns


def _read(path: Path) -> Decoded | None:
    """The cached form, its images still in the file, or None if there is none or it is damaged."""
    from safetensors import SafetensorError, safe_open

    if not os.path.isfile(path):
        return None
    try:
        with safe_open(path, framework="np") as file:
            about = json.loads(file.metadata()["ordisco"])
            images = {part: InFile.of(path, f"{part}_images", file) for part in PARTS}
            labels = {part: torch.from_numpy(file.get_tensor(f"{part}_labels")) for part in PARTS}
        found = {f"{part}_labels": _crc(labels[part]) for part in PARTS}
        found |= {f"{part}_images": images[part].crc() for part in PARTS}
        if found != about["crc"]:
            return None
        train, test = (in_place(images[part], labels[part]) for part in PARTS)
        return Decoded(tuple(about["classes"]), train, test, tuple(about["notes"]))
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(path: Path, decoded: Decoded) -> None:
    """Keep the decoded form, or say that it cannot be kept: nothing half-written stays."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    splits = dict(zip(PARTS, (decoded.train.read(), decoded.test.read()), strict=True))
    parts = {f"{part}_images": split.images for part, split in splits.items()}
    parts |= {f"{part}_labels": split.labels for part, split in splits.items()}
    crc = {name: _crc(part) for name, part in parts.items()}
    about = json.dumps({"classes": decoded.classes, "notes": decoded.notes, "crc": crc})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as partial:
            save_file(parts, partial, metadata={"ordisco": about})
    except (OSError, SafetensorError) as error:  # a full disk is told by either of them
        reason = getattr(error, "strerror", None) or error
        text = f"cannot keep the decoded images at {path} ({reason}); decoded each time"
        warnings.warn(text, OrdiscoWarning, stacklevel=4)


def _crc(part: Tensor, before: int = 0) -> int:
    part = part.contiguous()
    return zlib.crc32(part.numpy().data.cast("B"), before) if part.numel() else before
