"""CIFAR-10 from the publisher's binary archive (the other archive is a pickle)."""

from __future__ import annotations

import tarfile
import zlib
from pathlib import Path

import numpy as np
import torch

from ordisco.data.archive import check_member
from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
TRAIN = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
RECORD = 1 + 3 * 32 * 32  # one byte of label, then the planes red, green, blue


def read(archive: Path) -> tuple[Split, Split]:
    """Train and test images, the archive's members being read one after the other."""
    parts: dict[str, np.ndarray] = {}
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                check_member(archive, member.name)
                name = member.name.rpartition("/")[2]
                if name in (*TRAIN, TEST) and (content := tar.extractfile(member)) is not None:
                    parts[name] = _records(archive, name, content.read())
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise OrdiscoError(f"{archive}: damaged archive ({error}); delete it and fetch it again") from error
    if missing := [name for name in (*TRAIN, TEST) if name not in parts]:
        raise OrdiscoError(f"{archive}: {', '.join(missing)} missing; delete it and fetch the binary archive again")
    test = _split([parts.pop(TEST)])
    return _split([parts.pop(name) for name in TRAIN]), test


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
