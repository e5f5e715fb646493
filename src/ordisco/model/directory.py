"""The directory of a model: model.toml, history.jsonl, versions/, work/.

A version is whole or absent, and holds all that there is to know, its line of the history and its copy of model.toml
included. Both files follow the newest whole version, so that a crash between two writes is mended by the next command.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import filelock
from torch import Tensor

from ordisco import files
from ordisco.errors import OrdiscoError, OrdiscoWarning
from ordisco.files import told_in_one_line
from ordisco.model.about import About
from ordisco.runs import checkpoint
from ordisco.runs.checkpoint import Damaged

LOCK, ABOUT, HISTORY, VERSIONS, WORK = ".lock", "model.toml", "history.jsonl", "versions", "work"
KEPT = 3  # versions
MOST_ABOUT = 1 << 24  # bytes of model.toml
NAME = re.compile(r"\d{4,}")
T = TypeVar("T")


@dataclass(frozen=True)
class Version:
    """The learner after a delivery, what the model is since then, and the history up to it."""

    number: int
    about: About
    tensors: dict[str, Tensor]
    learner: dict[str, Any]
    history: list[dict[str, Any]]


class ModelDirectory:
    """The files of one model by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about_file, self.history_file = path / ABOUT, path / HISTORY
        self.versions, self.work = path / VERSIONS, path / WORK
        self._lock = filelock.FileLock(path / LOCK, timeout=0)

    @staticmethod
    def is_model(path: Path) -> bool:
        """Is there a model?"""
        return files.kind_of(path / ABOUT) is not None

    @classmethod
    def create(cls, path: Path, about: About) -> ModelDirectory:
        """A new model that has learned nothing; what is in the way is refused."""
        directory = cls(path)
        with told_in_one_line("create", path):
            if cls.is_model(path):
                raise OrdiscoError(f"{path} is a model already: choose another name")
            if path.exists() and (names := sorted(set(os.listdir(path)) - {LOCK})):
                raise OrdiscoError(f"{path} is not empty (it has {names[0]}): choose another name for the model")
            path.mkdir(parents=True, exist_ok=True)
        with directory.locked():
            files.write_atomically(directory.about_file, about.to_toml())
        return directory

    @classmethod
    def open(cls, path: Path) -> ModelDirectory:
        """The directory of a model that is there."""
        if not path.is_dir():
            raise OrdiscoError(f"no model at {path}: make one with `ordisco learn {path} DELIVERY`")
        if not cls.is_model(path):
            raise OrdiscoError(f"{path} is not a model: it has no {ABOUT}")
        files.refuse_foreign(path, LOCK, ABOUT, HISTORY, VERSIONS, WORK)
        return cls(path)

    def discard_empty(self) -> None:
        """Take a new model away that has learned nothing, and has nothing under way."""
        if not self.numbers() and files.kind_of(self.work) is None:
            for file in (self.about_file, self.path / LOCK):
                files.remove(file)
            with contextlib.suppress(OSError):
                self.path.rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes meanwhile; when the process ends, even by a crash, the system gives up the lock."""
        try:
            self._lock.acquire()
        except filelock.Timeout:
            raise OrdiscoError(f"another process is writing into {self.path}: wait until it ends") from None
        except (OSError, NotImplementedError) as error:
            raise OrdiscoError(f"cannot lock {self.path}: {error}") from error
        try:
            for folder in (self.path, self.versions, self.work):
                files.remove_leftovers(folder)
            yield
        finally:
            with contextlib.suppress(OSError):  # the directory may be gone
                self._lock.release()

    # ------------------------------------------------------------------ versions

    def numbers(self) -> list[int]:
        """The versions that are there, newest first."""
        with told_in_one_line("read", self.versions):
            if files.kind_of(self.versions) is None:
                return []
            files.check_directory(self.versions)
            return sorted((int(name) for name in os.listdir(self.versions) if NAME.fullmatch(name)), reverse=True)

    def version_path(self, number: int) -> Path:
        """Where a version lies."""
        return self.versions / f"{number:04d}"

    def about(self) -> About:
        """What model.toml says."""
        with told_in_one_line("read", self.about_file):
            data = files.read_plain(self.about_file, MOST_ABOUT)
        try:
            return About.from_toml(data)
        except OrdiscoError as error:
            raise OrdiscoError(f"{self.about_file}: {error}") from error

    def read(self, use: Callable[[Version], T]) -> T | None:
        """What `use` makes of the newest whole version; None where nothing was learned yet.

        A version that is damaged, or that `use` calls `Damaged`, is passed over with a warning.
        """
        self.about()  # a newer format is told before anything else
        damaged = []
        for number in self.numbers():
            try:
                found = use(self._version(number))
            except (Damaged, OrdiscoError) as reason:
                damaged.append(f"version {number} of {self.path} is damaged ({reason})")
                continue
            for line in damaged:
                text = f"{line}; version {number} is used, so learn what was delivered after it once more"
                warnings.warn(text, OrdiscoWarning, stacklevel=2)
            return found
        if damaged:
            raise OrdiscoError("; ".join(damaged) + "; no whole version is left")
        return None

    def _version(self, number: int) -> Version:
        tensors, state = checkpoint.read(self.version_path(number))
        learner, history = state.get("learner"), state.get("history")
        if not isinstance(learner, dict) or not isinstance(history, list) or len(history) != number:
            raise Damaged("its state is not that of a model")
        return Version(number, About.from_dict(state.get("about")), tensors, learner, history)

    def write(self, version: Version) -> None:
        """Keep a new version and the two before it; those that were passed over as damaged go."""
        state = {"about": version.about.to_dict(), "learner": version.learner, "history": version.history}
        with told_in_one_line("write", self.version_path(version.number)):
            files.make_directory(self.versions)
            self.forget_after(version.number - 1)
            checkpoint.write(self.version_path(version.number), version.number, version.tensors, state)
        self.follow(version.about, version.history)
        for number in self.numbers()[KEPT:]:
            self._take_away(number)

    def follow(self, about: About, history: list[dict[str, Any]]) -> None:
        """Have model.toml and history.jsonl say what the version in use says."""
        files.write_atomically(self.history_file, b"".join(files.json_bytes(record) for record in history))
        files.write_atomically(self.about_file, about.to_toml())

    def forget_after(self, last: int) -> None:
        """Take away the versions after one."""
        for number in self.numbers():
            if number > last:
                self._take_away(number)

    def _take_away(self, number: int) -> None:
        path = self.version_path(number)
        with told_in_one_line("remove", path):
            aside = files.aside(path)
            os.rename(path, aside)  # no half-deleted one after a crash
            files.remove(aside)

    def bytes(self) -> dict[str, int]:
        """What each version, and the delivery under way, take on the disk."""
        parts = {f"version {number}": self.version_path(number) for number in self.numbers()}
        return {name: _size(path) for name, path in [*parts.items(), ("work", self.work)] if path.exists()}


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
