"""The directory of a run: settings, stream manifest, metrics, checkpoints, samples, figures, summary.

Files are written by `ordisco.files`, whole or not at all. Only `metrics.jsonl` grows in place; its length and checksum
are part of a checkpoint, so that resuming cuts off what was recorded after it and tells what was damaged before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import filelock
import tomli_w

from ordisco import files
from ordisco.errors import OrdiscoError
from ordisco.files import PARTIAL, told_in_one_line
from ordisco.runs import unchanged

LOCK = ".lock"
BUSY = "another run is writing into"  # how the error begins where another process holds the lock
FOLDERS = ("checkpoints", "samples", "figures", "tensorboard")
MOST_SETTINGS = 1 << 20  # bytes
CHECKSUM = re.compile(r"# sha256 ([0-9a-f]{64})\b")


def default_path(stream: str, method: str, seed: int, root: Path = Path("runs")) -> Path:
    """`runs/<stream>-<method>-seed<seed>`, with -2, -3, … where that is taken."""
    name = re.sub(r"[^\w.+-]+", "-", f"{stream}-{method}-seed{seed}", flags=re.ASCII).strip("-.")
    path, copy = root / name, 1
    while path.exists():
        copy += 1
        path = root / f"{name}-{copy}"
    return path


def resume_command(path: Path) -> str:
    """`ordisco resume PATH`, as a shell wants it; a path that is not UTF-8 with escapes, as bash takes them."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return f"ordisco resume ${str(os.fsencode(path))[1:]}"
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
        self._held: int | None = None  # a descriptor of the directory, while it is locked
        self._metrics_size, self._metrics_hash = 0, hashlib.sha256()  # of what this run has written

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
            files.remove_leftovers(path)
            manifest_writer(run.stream_file)
            plain = without_none(settings)
            head = f"# sha256 {unchanged.checksum(plain)} of the settings, but for {', '.join(unchanged.FREE)}\n"
            run.write_text("settings.toml", head + tomli_w.dumps(plain))
            run._hold()
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
        run._refuse_foreign()
        if not run.settings_file.is_file():
            raise OrdiscoError(f"{path} is not a run directory: it has no {run.settings_file.name}")
        return run

    @classmethod
    def resume(cls, path: Path) -> RunDirectory:
        """An existing run, locked, freed of what a crash left half-written."""
        run = cls.open(path)
        run._acquire()
        try:
            for folder in (path, *(path / name for name in FOLDERS)):
                if folder == path or files.kind_of(folder) == "directory":
                    files.remove_leftovers(folder)
            run._hold()
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Give up the lock; the system does so too when the process ends, however it ends."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        with contextlib.suppress(OSError):  # the directory may be gone
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
            raise OrdiscoError(f"{BUSY} {self.path}: wait until it ends, or choose another --out") from None
        except (OSError, NotImplementedError) as error:
            raise OrdiscoError(f"cannot lock {self.path}: {error}; choose another --out") from error

    def _hold(self) -> None:
        if os.name != "nt":  # which cannot open a directory, and lets nobody remove one that is in use
            with told_in_one_line("use", self.path):
                self._held = os.open(self.path, os.O_RDONLY)

    def check_still_there(self) -> None:
        """Stop if the directory that was locked has been deleted, emptied or replaced since."""
        if self._held is None:
            return
        try:
            same = os.path.samestat(os.stat(self.path), os.fstat(self._held))
            if same and files.kind_of(self.settings_file) == "file":
                return
        except OSError:
            pass
        raise OrdiscoError(
            f"{self.path} was deleted or replaced while the run was writing into it, so nothing more can be kept: "
            "start the run again"
        )

    def place(self, name: str) -> Path:
        """The path of a file that is about to be written, e.g. `samples/increment-01.png`."""
        self.check_still_there()
        path = self.path / name
        if path.parent != self.path:
            files.check_directory(path.parent)
        return path

    def _refuse_foreign(self) -> None:
        """No link, device or pipe where the run reads or writes; the directory itself may be given by a link."""
        own = (self.settings_file, self.stream_file, self.metrics_file, self.summary_json, self.summary_markdown)
        files.refuse_foreign(self.path, LOCK, *(file.name for file in own), *FOLDERS)

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
        self._refuse_foreign()

    def read_settings(self, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The settings as a nested dict; values that were None are absent.

        They must be what the run was started with: `before`, as a checkpoint has them, else by the checksum in the
        first line. What may change is in `ordisco.runs.unchanged`.
        """
        try:
            with told_in_one_line("read", self.settings_file):
                text = files.text_of(files.read_plain(self.settings_file, MOST_SETTINGS))
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise OrdiscoError(f"{self.settings_file} is not valid TOML: {error}") from error
        told = CHECKSUM.match(text)
        change = None
        if before is not None:
            change = unchanged.difference(values, before)
        elif told and told[1] != unchanged.checksum(values):
            change = "its checksum is another"
        if change:
            raise OrdiscoError(
                f"{self.settings_file} was changed: {change}; put it back as the run wrote it, or start a new run"
            )
        return values

    def write_bytes(self, name: str, data: bytes) -> Path:
        """Write a file of the run atomically, e.g. `samples/increment-01.png`."""
        path = self.place(name)
        files.write_atomically(path, data)
        return path

    def write_text(self, name: str, text: str) -> Path:
        """Write a UTF-8 text file of the run atomically."""
        return self.write_bytes(name, files.text_bytes(text))

    # ------------------------------------------------------------------ metrics.jsonl

    def append_metrics(self, record: Mapping[str, Any]) -> None:
        """Add one JSON line; NaN and infinities, which JSON lacks, become null."""
        line = files.json_bytes(finite_or_none(record))
        self.check_still_there()
        with told_in_one_line("write", self.metrics_file):
            descriptor = files.open_plain(self.metrics_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                size = os.fstat(descriptor).st_size
                try:
                    files.write_all(descriptor, line)
                except OSError:
                    os.ftruncate(descriptor, size)
                    raise
            finally:
                os.close(descriptor)
        self._metrics_size += len(line)
        self._metrics_hash.update(line)

    def metrics_mark(self) -> dict[str, Any]:
        """The length and checksum of metrics.jsonl, for a checkpoint: so many bytes are on the disk to stay."""
        size = 0
        with told_in_one_line("write", self.metrics_file), contextlib.suppress(FileNotFoundError):
            descriptor = files.open_plain(self.metrics_file, os.O_RDWR)
            try:
                os.fsync(descriptor)
                size = os.fstat(descriptor).st_size
            finally:
                os.close(descriptor)
        if size != self._metrics_size:
            raise OrdiscoError(
                f"{self.metrics_file} was changed during the run: it has {size} bytes, not {self._metrics_size}"
            )
        return {"metrics_size": size, "metrics_sha256": self._metrics_hash.hexdigest()}

    def truncate_metrics(self, count: int, sha256: str | None = None) -> None:
        """Cut metrics.jsonl back to the length that a checkpoint remembers, if it is what was written till then."""
        with told_in_one_line("write", self.metrics_file):
            descriptor = files.open_plain(self.metrics_file, os.O_RDWR | os.O_CREAT)
            try:
                size = os.fstat(descriptor).st_size
                kept = files.read_exactly(descriptor, count) if count <= size else b""
                digest = hashlib.sha256(kept)
                if count > size or (count > 0 and kept[-1:] != b"\n"):
                    raise OrdiscoError(
                        f"{self.metrics_file} was changed: the checkpoint remembers {count} bytes up to a line's "
                        f"end, it has {size}; put the file back as the run wrote it"
                    )
                self._parsed(kept)
                if sha256 is not None and sha256 != digest.hexdigest():
                    raise OrdiscoError(
                        f"{self.metrics_file} was changed: the checksum of its first {count} bytes is not that of "
                        "the checkpoint; put the file back as the run wrote it"
                    )
                os.ftruncate(descriptor, count)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        self._metrics_size, self._metrics_hash = count, digest

    def read_metrics(self) -> list[dict[str, Any]]:
        """All records; a last line cut short by a crash is left out."""
        with told_in_one_line("read", self.metrics_file):
            try:
                data = files.read_plain(self.metrics_file)
            except FileNotFoundError:
                return []
        return self._parsed(data)

    def _parsed(self, data: bytes) -> list[dict[str, Any]]:
        records = []
        for number, line in enumerate(data.split(b"\n")[:-1], start=1):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise OrdiscoError(f"{self.metrics_file}, line {number} is not JSON: {error}") from error
            if not isinstance(record, dict):
                raise OrdiscoError(f"{self.metrics_file}, line {number} is not a record")
            records.append(record)
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
