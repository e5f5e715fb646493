"""Checkpoints that survive a crash: `step-0000000123/` with tensors.safetensors and state.json.

A checkpoint is written aside, fsynced and renamed, so that it is whole or absent; the two newest are kept.
Checksums show later damage, and loading falls back to the checkpoint before. Nothing is unpickled, no link is
followed, and tensors are read only after the file's header has shown that they are what is expected.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from ordisco import files
from ordisco.errors import OrdiscoError
from ordisco.tensorfile import Form, TensorFile

FORMAT = 3  # 1 was that of ordisco 0.1.0; with 2, D and G had the values of a map in another order
MOST_STATE = 1 << 26  # bytes of state.json
Fits = Callable[[dict[str, Any], dict[str, Form]], None]  # raises OrdiscoError where state or tensors are not expected
TENSORS, STATE = "tensors.safetensors", "state.json"
NAME = re.compile(r"step-(\d{10,})(?:\.(\d+))?")


@dataclass(frozen=True)
class Loaded:
    """What a checkpoint holds, and a line for each newer one that was damaged and skipped."""

    tensors: dict[str, Tensor]
    state: dict[str, Any]
    path: Path
    skipped: list[str]


class OtherVersion(OrdiscoError):
    """The checkpoint of a version whose runs cannot go on here."""


class Damaged(Exception):
    """Why a checkpoint cannot be used."""


def save(directory: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> Path:
    """Write the checkpoint of `step`, keep it and the newest earlier one, and return its path.

    The state may hold dicts with string keys, lists, strings, finite numbers, bools and None, and comes back
    equal. Tensors come back bit for bit, contiguous, on the CPU.
    """
    try:
        files.make_directory(directory)
        files.remove_leftovers(directory)
        path = _free_path(directory, step)
        write(path, step, tensors, state)
        _remove_outdated(directory, path, step)
    except OSError as error:
        raise OrdiscoError(
            f"cannot write a checkpoint into {directory}: {error.strerror or error}; {_what_is_kept(directory)}"
        ) from error
    return path


def write(path: Path, step: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write one checkpoint as the folder `path`, whole or not at all; what the system refuses is an `OSError`."""
    check_state(state)
    weights = safetensors.save({name: _own_copy(tensor) for name, tensor in tensors.items()})
    text = json.dumps(
        {
            "format": FORMAT,
            "step": step,
            "tensors_sha256": hashlib.sha256(weights).hexdigest(),
            "state_sha256": _state_sha256(state),
            "state": state,
        },
        indent=1,
        allow_nan=False,
    )
    with files.written_aside(path) as partial:
        partial.mkdir()
        files.write_durably(partial / TENSORS, weights)
        files.write_durably(partial / STATE, text.encode())
        files.sync_directory(partial)
    files.sync_directory(path.parent)


def load_latest(directory: Path, fits: Fits | None = None) -> Loaded:
    """The newest whole checkpoint that `fits`; others are passed over with a line in `skipped`.

    `fits` is shown the state and the forms of the tensors before these are read.
    """
    skipped: list[str] = []
    for path in _checkpoints(directory):
        try:
            tensors, state = read(path, fits)
        except Damaged as reason:
            skipped.append(f"checkpoint {path} is damaged and was skipped: {reason}")
        except OtherVersion:
            raise
        except OrdiscoError as reason:
            skipped.append(f"checkpoint {path} does not fit and was skipped: {reason}")
        else:
            return Loaded(tensors, state, path, skipped)
    if skipped:
        raise OrdiscoError(f"no whole checkpoint in {directory}: " + "; ".join(skipped))
    raise OrdiscoError(f"no checkpoint in {directory}: start the run again")


def newest_state(directory: Path) -> dict[str, Any] | None:
    """The plain state of the newest checkpoint whose state is whole; its tensors are not looked at."""
    for path in _checkpoints(directory):
        with contextlib.suppress(Damaged):
            return state_of(path)
    return None


def state_of(path: Path) -> dict[str, Any]:
    """The plain state of one checkpoint, its tensors not looked at; raises `Damaged`."""
    state: dict[str, Any] = _read_state(path)["state"]
    return state


def newest(directory: Path) -> Path | None:
    """The newest checkpoint, whole or not."""
    return next(iter(_checkpoints(directory)), None)


def check_state(value: Any, where: str = "state") -> None:
    """Raise where a state would not come back equal from JSON: a tuple, an integer key, a NaN, …"""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}: keys of a checkpoint's state are strings")
            check_state(item, f"{where}[{key!r}]")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_state(item, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}: numbers in a checkpoint's state are finite")
    elif not (value is None or isinstance(value, str | int | float)):
        raise TypeError(f"{where} is a {type(value).__name__}, which JSON cannot give back")


def read(path: Path, fits: Fits | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the state of one checkpoint; raises `Damaged`, or what `fits` raises."""
    content = _read_state(path)
    try:
        with TensorFile(path / TENSORS) as file:
            if fits is not None:
                fits(content["state"], file.forms)
            weights = file.read()
        if content.get("tensors_sha256") != hashlib.sha256(weights).hexdigest():
            raise Damaged(f"the checksum of {TENSORS} is wrong")
        views = safetensors.load(weights)
    except OSError as error:
        raise Damaged(f"{TENSORS}: {error.strerror or error}") from error
    except (SafetensorError, KeyError, ValueError) as error:
        raise Damaged(f"{TENSORS} cannot be read ({error})") from error
    # torch's own memory is aligned, that of the views is not; kernels may round differently on either
    return {name: view.clone() for name, view in views.items()}, content["state"]


def _read_state(path: Path) -> dict[str, Any]:
    if files.kind_of(path) != "directory":
        raise Damaged(f"it is a {files.kind_of(path)}, not a directory")
    try:
        content = files.json_of(files.read_plain(path / STATE, MOST_STATE))
    except OSError as error:
        raise Damaged(f"{STATE}: {error.strerror or error}") from error
    except ValueError as error:
        raise Damaged(f"{STATE} is not JSON ({error})") from error
    if not isinstance(content, dict) or not isinstance(content.get("state"), dict):
        raise Damaged(f"{STATE} has no state")
    if content.get("format") != FORMAT:
        if content.get("format") == 1:
            raise OtherVersion(
                f"{path} was written by ordisco 0.1.0, whose runs this version cannot go on with: use that version, or "
                "start the run again with another --out"
            )
        raise Damaged(f"its format is {content.get('format')}, this version reads {FORMAT}")
    if content.get("state_sha256") != _state_sha256(content["state"]):
        raise Damaged(f"the checksum of {STATE} is wrong")
    return content


def _state_sha256(state: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _own_copy(tensor: Tensor) -> Tensor:
    """A contiguous copy: safetensors refuses views that share their storage."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _what_is_kept(directory: Path) -> str:
    with contextlib.suppress(OSError):
        if _newest_first(directory):
            return "the last good checkpoint is kept"
    return "there is no checkpoint yet"


def _order(path: Path) -> tuple[int, int]:
    match = NAME.fullmatch(path.name)
    assert match
    return int(match[1]), int(match[2] or 0)


def _newest_first(directory: Path) -> list[Path]:
    if files.kind_of(directory) != "directory":
        return []
    checkpoints = (path for path in directory.iterdir() if NAME.fullmatch(path.name))
    return sorted(checkpoints, key=_order, reverse=True)


def _checkpoints(directory: Path) -> list[Path]:
    with files.told_in_one_line("read", directory):
        files.check_directory(directory)
        return _newest_first(directory)


def _free_path(directory: Path, step: int) -> Path:
    """`step-…`, or `step-….2` beside an existing one: it must not be gone before the new one is there."""
    name, copy = f"step-{step:010d}", 1
    path = directory / name
    while os.path.lexists(path):
        copy += 1
        path = directory / f"{name}.{copy}"
    return path


def _remove_outdated(directory: Path, newest: Path, step: int) -> None:
    """Keep `newest` and the one before; later steps are those that were damaged when the run resumed."""
    others = [path for path in _newest_first(directory) if path != newest]
    before = next((path for path in others if _order(path)[0] < step), None)
    for path in others:
        if path != before:
            with contextlib.suppress(OSError):  # it stays, the new one is safe
                os.rename(path, files.aside(path))  # no half-deleted one after a crash
    files.remove_leftovers(directory)
