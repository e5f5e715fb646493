"""Run directories: one that was interrupted, with a file or two damaged, then resumed."""

import atexit
import functools
import hashlib
import json
import os
import random
import re
import shutil
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from safetensors import SafetensorError
from safetensors import torch as safetensors

from fuzzing.oracle import Answer, Failure, ask
from ordisco.runs.unchanged import defaults, fixed_fields
from tiny import arguments, outcome

STEPS, STOP = 2, 3  # an increment; the run is interrupted in the second of two
OTHERS: tuple[Any, ...] = (None, True, "x", "", [], {}, -1, 10**7, 2**63, 1e300, 0.5, [1, 2], "9" * 400)
CONTENTS = (b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"state": {}}', b"\xff\xfe", b"0" * 5_000, b"\n\n")
TOML = ("-1", '"x"', "[]", "1e300", "nan", "true", "{}", "99999999999999999999", "2026-01-01", '"\\u0000"')


@functools.cache
def prepared() -> tuple[Path, Path]:
    """A run that was interrupted, and the same run without an interruption; made once a process."""
    root = Path(tempfile.mkdtemp(prefix="fuzz-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    with without_figures():
        for name, more in (("interrupted", ("--max-steps", str(STOP))), ("whole", ())):
            options = ("--precision", "32-true", "--checkpoint-seconds", "0", "--g-ema", "0.9", *more)
            answer = ask(arguments(root / name, *options, steps=STEPS))
            assert answer.code == 0, answer.err
    return root / "interrupted", root / "whole"


def without_figures() -> mock._patch:
    """Leave out the figures, half of the time that a tiny run takes."""
    nothing = {"accuracy_curves": lambda *args: None, "confusion_matrix": lambda *args: None}
    return mock.patch.multiple("ordisco.runs.summary", **nothing)


# ---------------------------------------------------------------------- damage to any file


def cut(path: Path, rng: random.Random) -> None:
    """A part of the file."""
    data = path.read_bytes()
    path.write_bytes(data[: rng.randrange(len(data))] if data else b"")


def flip(path: Path, rng: random.Random) -> None:
    """A few other bytes."""
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(rng.choice((1, 1, 2, 8))):
        where = rng.randrange(len(data))
        data[where] = (data[where] + rng.randrange(1, 256)) % 256
    path.write_bytes(bytes(data))


def grow(path: Path, rng: random.Random) -> None:
    """More bytes, or a file of many gigabytes that takes no room."""
    with path.open("ab") as file:
        file.write(rng.choice((b"\0", b"\n", b"{}\n", b"\xff" * 100)))
        if rng.random() < 0.3:
            file.truncate(2**36)


def replace(path: Path, rng: random.Random) -> None:
    """Other contents altogether."""
    path.write_bytes(rng.choice(CONTENTS))


def remove(path: Path, rng: random.Random) -> None:
    """No file."""
    path.unlink()


def to_folder(path: Path, rng: random.Random) -> None:
    """A folder in its place."""
    path.unlink()
    path.mkdir()


def to_pipe(path: Path, rng: random.Random) -> None:
    """A pipe in its place, at which a reader would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path, rng: random.Random) -> None:
    """A link in its place: to itself, to nowhere, to a device, or to something that must not be touched."""
    outside = path.parents[2] if path.parents[1].name == "checkpoints" else path.parent
    outside = outside.parent / "outside"
    path.unlink()
    path.symlink_to(
        rng.choice((path.name, "nowhere", "/dev/zero", "/dev/full", str(outside / "kept.txt"), str(outside / "new")))
    )


# ---------------------------------------------------------------------- damage with the right checksums


def edit_state(path: Path, rng: random.Random) -> None:
    """A number of state.json that cannot be, with the checksum put right."""
    content = json.loads(path.read_bytes())
    place = rng.choice((content["state"], content["state"]["learner"]))
    key = rng.choice(sorted(place))
    if rng.random() < 0.2:
        del place[key]
    elif isinstance(place[key], list) and place[key] and rng.random() < 0.5:
        place[key][rng.randrange(len(place[key]))] = rng.choice(OTHERS)
    else:
        place[key] = rng.choice([other for other in OTHERS if other != place[key]])
    write_state(path, content)


def write_state(path: Path, content: dict[str, Any], tensors: bytes | None = None) -> None:
    """State.json with its checksum, and with that of new tensors; values that were forged with both are not noticed."""
    if tensors is not None:
        content["tensors_sha256"] = hashlib.sha256(tensors).hexdigest()
    content["state_sha256"] = hashlib.sha256(json.dumps(content["state"], sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(content))


def edit_tensors(path: Path, rng: random.Random) -> None:
    """A tensor that is missing, too many, of another shape or of another type, with the checksum put right."""
    tensors = {name: tensor.clone() for name, tensor in safetensors.load(path.read_bytes()).items()}
    name = rng.choice(sorted(tensors))
    tensor = tensors[name]
    others: tuple[Callable[[], torch.Tensor], ...] = (
        lambda: tensor.reshape(-1)[: tensor.numel() // 2].clone(),
        lambda: torch.zeros(0),
        lambda: torch.cat([tensor.reshape(-1)] * 2),
        lambda: tensor.reshape(1, *tensor.shape).clone(),
        lambda: tensor.double() if tensor.is_floating_point() else tensor.float(),
        lambda: tensor.to(torch.uint8) if tensor.dtype != torch.uint8 else tensor.to(torch.int64),
        lambda: torch.full_like(tensor, float("nan")) if tensor.is_floating_point() else tensor[:0].clone(),
    )
    kind = rng.random()
    if kind < 0.2:
        del tensors[name]
    elif kind < 0.3:
        tensors[name + rng.choice((".x", " ", "2"))] = tensors.pop(name)
    else:
        tensors[name] = rng.choice(others)() if tensor.dim() else torch.zeros(3, dtype=tensor.dtype)
    data = safetensors.save(tensors)
    path.write_bytes(data)
    write_state(path.parent / "state.json", json.loads((path.parent / "state.json").read_bytes()), data)


def edit_settings(path: Path, rng: random.Random) -> None:
    """Another value of one setting, or one setting less."""
    lines = path.read_text().splitlines()
    where = rng.choice([index for index, line in enumerate(lines) if "=" in line and "checkpoint_seconds" not in line])
    name = lines[where].partition("=")[0]
    lines[where] = rng.choice(
        ("", f"{name}= {rng.choice(TOML)}", f"{lines[where]}\n{lines[where]}", f"x{lines[where]}")
    )
    path.write_text("\n".join(lines))


def edit_manifest(path: Path, rng: random.Random) -> None:
    """Another type in stream.json."""
    content = json.loads(path.read_bytes())
    names = sorted(content.keys() - {"name", "dataset"})  # those are only shown to people
    content[rng.choice(names)] = rng.choice(OTHERS)
    path.write_text(json.dumps(content))


ANY = (cut, flip, grow, replace, remove, to_folder, to_pipe, to_link)
EDITS = {
    "state.json": edit_state,
    "tensors.safetensors": edit_tensors,
    "settings.toml": edit_settings,
    "stream.json": edit_manifest,
}


# ---------------------------------------------------------------------- a case


def damage(run: Path, rng: random.Random) -> str:
    """Damage one file of a run, or make one of its folders a link; says what was done."""
    folder = run / rng.choice(("checkpoints", "samples"))
    if rng.random() < 0.08 and not folder.is_symlink():
        target = run.parent / "outside" / folder.name
        shutil.move(folder, target)
        folder.symlink_to(target)
        return f"{folder.name} is a link"
    files = [
        path for path in run.rglob("*") if path.is_file() and not path.is_symlink() and path.parent.name != "samples"
    ]
    path = rng.choice(sorted(files))
    edit = EDITS.get(path.name)
    how = edit if edit is not None and rng.random() < 0.5 else rng.choice(ANY)
    try:
        how(path, rng)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, SafetensorError):
        how = cut  # an edit of what was damaged before
        how(path, rng)
    return f"{how.__name__} {path.relative_to(run)}"


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Names and contents below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def differences(run: Path, reference: Path) -> list[str]:
    """What two finished runs do not share, by name."""
    try:
        mine, its = outcome(run), outcome(reference)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"[:500]]
    for content in (mine, its):
        content["stream.json"] = json.loads(content["stream.json"])  # spaces at its end decide nothing
        # a setting that is absent has its default
        content["settings"] = defaults() | fixed_fields(tomllib.loads(content["settings"]))
    return sorted(key for key in mine.keys() | its.keys() if key not in mine or key not in its or mine[key] != its[key])


def one_case(rng: random.Random, folder: Path) -> Answer:
    """Damage a copy and resume it: refused, or the very outcome of the run that was not damaged."""
    interrupted, whole = prepared()
    run, outside = folder / "run", folder / "outside"
    shutil.copytree(interrupted, run)
    outside.mkdir()
    (outside / "kept.txt").write_text("kept\n")
    done = [damage(run, rng) for _ in range(rng.choice((1, 1, 1, 2)))]
    (folder / "case.txt").write_text(repr(done))
    before = fingerprint(outside)
    with without_figures():
        answer = ask(["resume", str(run)])
    if fingerprint(outside) != before:
        raise Failure(f"something outside of the run was changed: code {answer.code}, {answer.out}{answer.err}")
    if answer.code == 0:
        finished = re.search(r"is finished|everything is in", answer.out)
        if not finished:
            raise Failure(f"exit code 0 without an end: {answer.out!r}")
        different = differences(run, whole)
        if different:
            raise Failure(f"accepted with another outcome: {different}")
    return answer
