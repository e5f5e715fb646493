"""CIFAR-10 from the publisher's binary archive (the other archive is a pickle)."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ordisco.data.archive import Bounded, check_member
from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
RECORD = 1 + 3 * 32 * 32  # one byte of label, then the planes red, green, blue
LARGEST_MEMBER = 10_000 * RECORD
LARGEST_ARCHIVE = 6 * LARGEST_MEMBER + (1 << 20)  # unpacked, with the small texts and the headers


def classes(files: Sequence[Path]) -> dict[str, str]:
    """The publisher's ten classes."""
    return {name: name for name in CLASSES}


def read(files: Sequence[Path], keys: Sequence[str], size: int | None) -> tuple[Split, Split]:
    """Train and test images, the archive's members being read one after the other."""
    [archive] = files
    parts: dict[str, np.ndarray] = {}
    try:
        with gzip.open(archive) as unpacked:
            stream = Bounded(archive, unpacked, LARGEST_ARCHIVE)
            with tarfile.open(fileobj=stream, mode="r|", bufsize=1 << 18) as tar:  # type: ignore[call-overload]
                for member in tar:
                    _check(archive, member)
                    name = member.name.rpartition("/")[2]
                    if name in parts:
                        raise OrdiscoError(f"{archive}: {name} is in it twice; delete it and fetch it again")
                    if name in (*TRAIN, TEST) and (content := tar.extractfile(member)) is not None:
                        parts[name] = _records(archive, name, content.read())
    except (OrdiscoError, MemoryError):
        raise
    except Exception as error:  # tarfile, gzip and zlib raise many kinds for a broken file
        raise OrdiscoError(f"{archive}: damaged archive ({error}); delete it and fetch it again") from error
    if missing := [name for name in (*TRAIN, TEST) if name not in parts]:
        raise OrdiscoError(f"{archive}: {', '.join(missing)} missing; delete it and fetch the binary archive again")
    test = _split([parts.pop(TEST)])
    return _split([parts.pop(name) for name in TRAIN]), test


def _check(archive: Path, member: tarfile.TarInfo) -> None:
    """The publisher's archive has a folder and plain files of a known size, nothing else."""
    check_member(archive, member.name)
    if not (member.isdir() or (member.isreg() and not member.issparse())):
        raise OrdiscoError(f"{archive}: the member {member.name!r} is a link or a device; do not trust this file")
    if not 0 <= member.size <= LARGEST_MEMBER:
        raise OrdiscoError(
            f"{archive}: the member {member.name!r} claims {member.size:,} bytes, more than {LARGEST_MEMBER:,}; "
            "do not trust this file"
        )


def _records(archive: Path, name: str, content: bytes) -> np.ndarray:
    if not content or len(content) % RECORD:
        raise OrdiscoError(f"{archive}: {name} has {len(content)} bytes, not a multiple of {RECORD}; fetch it again")
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, RECORD)
    if records[:, 0].max() >= len(CLASSES):
        raise OrdiscoError(f"{archive}: {name} has label {records[:, 0].max()}, not from 0 to {len(CLASSES) - 1}")
    return records


def _split(parts: list[np.ndarray]) -> Split:
    count = sum(len(part) for part in parts)
    images = np.empty((count, 3, 32, 32), dtype=np.uint8)
    labels = np.empty(count, dtype=np.int64)
    start = 0
    for part in parts:
        end = start + len(part)
        images[start:end] = part[:, 1:].reshape(-1, 3, 32, 32)
        labels[start:end] = part[:, 0]
        start = end
    return Split(torch.from_numpy(images), torch.from_numpy(labels))
