"""The directory of a run: settings, stream manifest, metrics, checkpoints, samples, figures, summary.

Files are written by `ordisco.files`, whole or not at all; only `metrics.jsonl` grows in place (`metrics.py`).
"""

from __future__ import annotations

import contextlib
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
from ordisco.runs.metrics import Metrics
from ordisco.words import file_name

LOCK = ".lock"
BUSY = "another run is writing into"  # how the error begins where another process holds the lock
FOLDERS = ("checkpoints", "samples", "figures", "tensorboard")
MOST_SETTINGS = 1 << 20  # bytes
CHECKSUM = re.compile(r"# sha256 ([0-9a-f]{64})\b")


def default_path(stream: str, method: str, seed: int, root: Path = Path("runs")) -> Path:
    """`runs/<stream>-<method>-seed<seed>`, with -2, -3, … where that is taken."""
    name = file_name(f"{stream}-{method}-seed{seed}").strip("-.")
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
        self.metrics = Metrics(path / "metrics.jsonl", self.check_still_there)
        self.summary_json = path / "summary.json"
        self.summary_markdown = path / "summary.md"
        self.checkpoints = path / "checkpoints"
        self._lock = filelock.FileLock(path / LOCK, timeout=0)
        self._held: int | None = None  # a descriptor of the directory, while it is locked

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
        """Give up the lock; when the process ends, even by a crash, the system does so too."""
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
        own = (self.settings_file, self.stream_file, self.metrics.file, self.summary_json, self.summary_markdown)
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

    def write_text(self, name: str, text: str) -> Path:
        """Write a UTF-8 text file of the run atomically."""
        path = self.place(name)
        files.write_atomically(path, files.text_bytes(text))
        return path


def without_none(value: Any) -> Any:
    """A copy of nested settings without the keys whose value is None, which TOML lacks."""
    if isinstance(value, Mapping):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return value
