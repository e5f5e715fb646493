"""metrics.jsonl: a line of JSON for what a run records, added in place.

Its length and checksum are part of a checkpoint, so that resuming cuts off what was recorded after it and tells what
was damaged before.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ordisco import files
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line


class Metrics:
    """The records of one run; `check` is called before anything is added."""

    def __init__(self, file: Path, check: Callable[[], None]) -> None:
        self.file, self._check = file, check
        self._size, self._hash = 0, hashlib.sha256()  # of what this run has written

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one JSON line; NaN and infinities, which JSON lacks, become null."""
        line = files.json_bytes(finite_or_none(record))
        self._check()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        with told_in_one_line("write", self.file), files.opened(self.file, flags) as descriptor:
            size = os.fstat(descriptor).st_size
            try:
                files.write_all(descriptor, line)
            except OSError:
                os.ftruncate(descriptor, size)
                raise
        self._size += len(line)
        self._hash.update(line)

    def mark(self) -> dict[str, Any]:
        """The length and checksum of the file, for a checkpoint: so many bytes are on the disk to stay."""
        size = 0
        with (
            told_in_one_line("write", self.file),
            contextlib.suppress(FileNotFoundError),
            files.opened(self.file, os.O_RDWR) as descriptor,
        ):
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        if size != self._size:
            raise OrdiscoError(f"{self.file} was changed during the run: it has {size} bytes, not {self._size}")
        return {"metrics_size": size, "metrics_sha256": self._hash.hexdigest()}

    def truncate(self, count: int, sha256: str | None = None) -> None:
        """Cut the file back to the length that a checkpoint remembers, if it is what was written till then."""
        with told_in_one_line("write", self.file), files.opened(self.file, os.O_RDWR | os.O_CREAT) as descriptor:
            size = os.fstat(descriptor).st_size
            kept = files.read_exactly(descriptor, count) if count <= size else b""
            digest = hashlib.sha256(kept)
            if count > size or (count > 0 and kept[-1:] != b"\n"):
                raise OrdiscoError(
                    f"{self.file} was changed: the checkpoint remembers {count} bytes up to a line's end, it has "
                    f"{size}; put the file back as the run wrote it"
                )
            self._parsed(kept)
            if sha256 is not None and sha256 != digest.hexdigest():
                raise OrdiscoError(
                    f"{self.file} was changed: the checksum of its first {count} bytes is not that of the checkpoint; "
                    "put the file back as the run wrote it"
                )
            os.ftruncate(descriptor, count)
            os.fsync(descriptor)
        self._size, self._hash = count, digest

    def read(self) -> list[dict[str, Any]]:
        """All records; a last line cut short by a crash is left out."""
        with told_in_one_line("read", self.file):
            try:
                data = files.read_plain(self.file)
            except FileNotFoundError:
                return []
        return self._parsed(data)

    def _parsed(self, data: bytes) -> list[dict[str, Any]]:
        records = []
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            try:
                record = files.json_of(line)
            except ValueError as error:
                raise OrdiscoError(f"{self.file}, line {number} is not JSON: {error}") from error
            if not isinstance(record, dict):
                raise OrdiscoError(f"{self.file}, line {number} is not a record")
            records.append(record)
        return records


def finite_or_none(value: Any) -> Any:
    """A copy of a nested record with None for every NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
