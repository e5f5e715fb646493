"""Files that are whole or absent, and never reached through a link.

A file or a folder is written aside under a random name, fsynced and renamed. What is read or added to is a plain file
of its own: a symbolic link, a device or a pipe in its place is refused, neither followed nor waited for.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError

PARTIAL = ".partial"  # how the name of a half-written file or directory ends
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # not all on Windows


@contextlib.contextmanager
def told_in_one_line(action: str, path: Path) -> Iterator[None]:
    """Turn the system's complaint about a file into one line: what could not be done, where and why."""
    try:
        yield
    except OSError as error:
        raise OrdiscoError(f"cannot {action} {path}: {error.strerror or error}") from error


# ---------------------------------------------------------------------- what is there


def kind_of(path: Path) -> str | None:
    """`file`, `directory`, or in words what else is there (a link is not followed); None for nothing."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    kinds = {stat.S_IFLNK: "symbolic link", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket"}
    return kinds.get(stat.S_IFMT(mode), "device")


def refuse_foreign(root: Path, *names: str) -> None:
    """Refuse a link, device or pipe under one of these names in a directory, or anywhere below them."""
    with told_in_one_line("read", root):
        for name in names:
            path = root / name
            kind = kind_of(path)
            if kind == "directory":
                refuse_foreign(path, *sorted(os.listdir(path)))
            elif kind not in ("file", None):
                raise OrdiscoError(
                    f"{path} is a {kind}, and what a run writes lies in its own directory: put a plain file or folder "
                    "in its place, or take it away"
                )


# ---------------------------------------------------------------------- reading and writing


def open_plain(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a plain file; whatever else is there, a link included, is an `OSError`."""
    try:
        descriptor = os.open(path, flags | PLAIN, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):  # a link; a pipe or socket without a reader
            raise OSError(error.errno, f"it is a {kind_of(path)}, not a plain file", str(path)) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(code, f"it is a {kind_of(path)}, not a plain file", str(path))
    return descriptor


@contextlib.contextmanager
def opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """The descriptor of `open_plain`, closed at the end."""
    descriptor = open_plain(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_exactly(descriptor: int, count: int) -> bytes:
    """So many bytes, or fewer where the file ends before."""
    parts = []
    while count > 0 and (part := os.read(descriptor, min(count, 1 << 24))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_plain(path: Path, most: int | None = None) -> bytes:
    """The bytes of a plain file; one of more than `most` bytes is an `OSError` before it is read."""
    with opened(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"it has {size:,} bytes, more than {most:,}", str(path))
        return read_exactly(descriptor, size)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes; `os.write` alone may stop short when the disk fills up."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_durably(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it; where there is something already, an `OSError`."""
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        write_all(descriptor, data)
        os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Make renames inside a directory durable."""
    if os.name == "nt":  # Windows cannot open a directory
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def aside(path: Path) -> Path:
    """A name beside `path` that nobody can guess, for what is to be renamed to it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL}")


@contextlib.contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path to write a file or a folder to, renamed to `path` at the end; after a failure nothing of it stays."""
    partial = aside(path)
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:  # also when it is interrupted
        remove(partial)
        raise


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file aside, fsync and rename: a reader sees the old file or the new one, never a half."""
    with told_in_one_line("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as partial:
            write_durably(partial, data)
        sync_directory(path.parent)


def make_directory(path: Path) -> None:
    """Make a directory, unless it is there; anything else there, a link included, is an `OSError`."""
    with contextlib.suppress(FileExistsError):
        path.mkdir(parents=True)
    kind = kind_of(path)
    if kind != "directory":
        raise OSError(errno.ENOTDIR, f"it is a {kind}, not a directory", str(path))


def check_directory(path: Path) -> None:
    """Refuse anything but a directory, if there is anything; a link to one is refused too."""
    if (kind := kind_of(path)) not in ("directory", None):
        raise OrdiscoError(f"{path} is a {kind}, not a directory of its own: take it away")


def remove_leftovers(directory: Path, start: str = "") -> None:
    """Remove what a crash left half-written in a directory, links themselves and not what they point to."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(directory):
            if name.startswith(f".{start}") and name.endswith(PARTIAL):
                remove(directory / name)


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it, as far as the system allows."""
    with contextlib.suppress(OSError):
        if kind_of(path) == "directory":
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------- text and JSON


def text_bytes(text: str) -> bytes:
    """UTF-8; the odd bytes of a file's name that is not UTF-8 stay as they are."""
    return text.encode("utf-8", "surrogateescape")


def text_of(data: bytes) -> str:
    """What `text_bytes` wrote."""
    return data.decode("utf-8", "surrogateescape")


def json_bytes(value: Any, indent: int | None = None) -> bytes:
    """JSON with a line's end: readable in any script, escaped where a name is not valid Unicode."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=indent, allow_nan=False) + "\n").encode()


def json_of(data: bytes) -> Any:
    """What JSON says; whatever is not JSON, or nested too deeply to be read, is a `ValueError`."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
