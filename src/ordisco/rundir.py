"""The directory of a run: settings, stream manifest, metrics, checkpoints, samples, figures, summary.

A file appears whole or not at all: it is written aside, fsynced and renamed. Only `metrics.jsonl` grows in
place; its length is part of a checkpoint, so that resuming cuts off what was recorded after it.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
import tomli_w

from ordisco.errors import OrdiscoError

LOCK, PARTIAL = ".lock", ".partial"


@contextlib.contextmanager
def told_in_one_line(action: str, path: Path) -> Iterator[None]:
    """Turn the system's complaint about a file into one line: what could not be done, where and why."""
    try:
        yield
    except OSError as error:
        raise OrdiscoError(f"cannot {action} {path}: {error.strerror or error}") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes; `os.write` alone may stop short when the disk fills up."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and wait until the disk has it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Wait until the disk has what was written to a file."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file aside, fsync and rename: a reader sees the old file or the new one, never a half."""
    aside = path.with_name(f".{path.name}{PARTIAL}")
    with told_in_one_line("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_durably(aside, data)
            os.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


def default_path(stream: str, method: str, seed: int, root: Path = Path("runs")) -> Path:
    """`runs/<stream>-<method>-seed<seed>`, with -2, -3, … where that is taken."""
    name = re.sub(r"[^\w.+-]+", "-", f"{stream}-{method}-seed{seed}", flags=re.ASCII).strip("-.")
    path, copy = root / name, 1
    while path.exists():
        copy += 1
        path = root / f"{name}-{copy}"
    return path


def resume_command(path: Path) -> str:
    """`ordisco resume PATH`, as a shell wants it."""
    return f"ordisco resume {shlex.quote(str(path))}"


class RunDirectory:
    """The files of one run by name. `create` and `resume` hold its lock until `close`; `open` only reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings_file = path / "settings.toml"
        self.stream_file = path / "stream.json"
        self.metrics_file = path / "metrics.jsonl"
        self.summary_json = path / "summary.json"
        self.summary_markdown = path / "summary.md"
        self.checkpoints = path / "checkpoints"
        self.samples = path / "samples"
        self.figures = path / "figures"
        self._lock = filelock.FileLock(path / LOCK, timeout=0)

    @classmethod
    def create(cls, path: Path, settings: Mapping[str, Any], manifest_writer: Callable[[Path], object]) -> RunDirectory:
        """A new run, locked; `manifest_writer` is given the path of stream.json, settings.toml comes last."""
        run = cls(path)
        run._refuse_if_taken()
        with told_in_one_line("create", path):
            path.mkdir(parents=True, exist_ok=True)
        run._acquire()
        try:
            run._refuse_if_taken()  # another process may have made it a run before the lock was ours
            manifest_writer(run.stream_file)
            with told_in_one_line("write", run.stream_file):
                sync_file(run.stream_file)
            run.write_text("settings.toml", tomli_w.dumps(without_none(settings)))
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run, to read: not locked, so also while another process writes."""
        run = cls(path)
        if not path.is_dir():
            raise OrdiscoError(f"no run directory at {path}")
        if not run.settings_file.is_file():
            raise OrdiscoError(f"{path} is not a run directory: it has no {run.settings_file.name}")
        return run

    @classmethod
    def resume(cls, path: Path) -> RunDirectory:
        """An existing run, locked, freed of what a crash left half-written."""
        run = cls.open(path)
        run._acquire()
        for leftover in path.rglob(f".*{PARTIAL}"):
            if leftover.is_file():
                leftover.unlink(missing_ok=True)
        return run

    def close(self) -> None:
        """Give up the lock; the system does so too when the process ends, however it ends."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _acquire(self) -> None:
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise OrdiscoError(
                f"another run is writing into {self.path}: wait until it ends, or choose another --out"
            ) from None
        except (OSError, NotImplementedError) as error:
            raise OrdiscoError(f"cannot lock {self.path}: {error}; choose another --out") from error

    def _refuse_if_taken(self) -> None:
        with told_in_one_line("use", self.path):
            names = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if self.settings_file.name in names:
            raise OrdiscoError(
                f"{self.path} already holds a run: continue it with `{resume_command(self.path)}`, "
                "or choose another --out"
            )
        ours = {LOCK, self.stream_file.name}  # what a crash inside `create` leaves
        if foreign := sorted(name for name in names - ours if not name.endswith(PARTIAL)):
            raise OrdiscoError(f"{self.path} is not empty (it has {foreign[0]}): choose another --out for the new run")

    def read_settings(self) -> dict[str, Any]:
        """The settings as a nested dict; values that were None are absent."""
        try:
            with told_in_one_line("read", self.settings_file):
                return tomllib.loads(self.settings_file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise OrdiscoError(f"{self.settings_file} is not valid TOML: {error}") from error

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write a file of the run atomically, e.g. `samples/increment-01.png`."""
        write_atomically(self.path / name, data)
        return self.path / name

    def write_text(self, name: str, text: str) -> Path:
        """Write a UTF-8 text file of the run atomically."""
        return self.write_bytes(name, text.encode())

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one JSON line; NaN and infinities, which JSON lacks, become null."""
        line = json.dumps(finite_or_none(record), ensure_ascii=False, allow_nan=False) + "\n"
        with told_in_one_line("write", self.metrics_file):
            descriptor = os.open(self.metrics_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                size = os.fstat(descriptor).st_size
                try:
                    write_all(descriptor, line.encode())
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)

    def metrics_size(self) -> int:
        """The length of metrics.jsonl in bytes, for a checkpoint: so many bytes are on the disk to stay."""
        if not self.metrics_file.exists():
            return 0
        with told_in_one_line("write", self.metrics_file):
            sync_file(self.metrics_file)
            return self.metrics_file.stat().st_size

    def truncate_metrics(self, count: int) -> None:
        """Cut metrics.jsonl back to the length that a checkpoint remembers."""
        with told_in_one_line("write", self.metrics_file), self.metrics_file.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, min(count, size) - 1))
            if count > size or (count > 0 and file.read(1) != b"\n"):
                raise OrdiscoError(
                    f"{self.metrics_file} was changed: the checkpoint remembers {count} bytes up to a line's "
                    f"end, it has {size}; put the file back as the run wrote it"
                )
            file.truncate(count)
            os.fsync(file.fileno())

    def read_metrics(self) -> list[dict[str, Any]]:
        """All records; a last line cut short by a crash is left out."""
        if not self.metrics_file.exists():
            return []
        with told_in_one_line("read", self.metrics_file):
            *lines, _unfinished = self.metrics_file.read_bytes().split(b"\n")
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                records.append(json.loads(line))
            except ValueError as error:
                raise OrdiscoError(f"{self.metrics_file}, line {number} is not JSON: {error}") from error
        return records


def without_none(value: Any) -> Any:
    """A copy of nested settings without the keys whose value is None, which TOML lacks."""
    if isinstance(value, Mapping):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value


def finite_or_none(value: Any) -> Any:
    """A copy of a nested record with None for every NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
