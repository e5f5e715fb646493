"""Decoded images kept in one safetensors file, so that the second load takes well under a second."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoWarning
from ordisco.files import written_aside

VERSION = 1  # raise it when decoding changes


@dataclass(frozen=True)
class Decoded:
    """What a reader makes of the files; `notes` are warnings to repeat at every load."""

    classes: tuple[str, ...]
    train: Split
    test: Split
    notes: tuple[str, ...] = ()


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
    """The cached form, or None if there is none or it is damaged."""
    from safetensors import SafetensorError, safe_open

    if not os.path.isfile(path):
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["ordisco"])
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if {name: _crc(part) for name, part in parts.items()} != about["crc"]:
            return None
        train = Split(parts["train_images"], parts["train_labels"])
        test = Split(parts["test_images"], parts["test_labels"])
        return Decoded(tuple(about["classes"]), train, test, tuple(about["notes"]))
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(path: Path, decoded: Decoded) -> None:
    """Keep the decoded form, or say that it cannot be kept: nothing half-written stays."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    parts = {
        "train_images": decoded.train.images,
        "train_labels": decoded.train.labels,
        "test_images": decoded.test.images,
        "test_labels": decoded.test.labels,
    }
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


def _crc(part: Tensor) -> int:
    part = part.contiguous()
    return zlib.crc32(part.numpy().data.cast("B")) if part.numel() else 0
