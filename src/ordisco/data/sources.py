"""Where the published files come from, where they lie here, and how they are fetched and checked."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ordisco.errors import OrdiscoError, UsageError


@dataclass(frozen=True)
class Source:
    """A file as its publisher offers it."""

    filename: str
    url: str
    md5: str


SOURCES: dict[str, tuple[Source, ...]] = {
    "digits": (),
    "svhn": (
        Source(
            "train_32x32.mat",
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "e26dedcc434d2e4c54c9b2d4a06d8373",
        ),
        Source(
            "test_32x32.mat",
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "eb5a983be6a315427106f1b164d9cef3",
        ),
    ),
    "cifar10": (
        Source(
            "cifar-10-binary.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
    "tiny-imagenet": (
        Source(
            "tiny-imagenet-200.zip",
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "90528d7ca1a48142e341f4ef8d21d0de",
        ),
    ),
}


def data_directory(given: Path | None = None) -> Path:
    """The folder of data files: the one given, else `ORDISCO_DATA`, else the platform's cache folder."""
    if given is not None:
        return Path(given).expanduser()
    if os.environ.get("ORDISCO_DATA"):
        return Path(os.environ["ORDISCO_DATA"]).expanduser()
    import pooch

    return Path(pooch.os_cache("ordisco"))


def sources_of(name: str) -> tuple[Source, ...]:
    """The files of a data set that has a name."""
    if name not in SOURCES:
        raise UsageError(f"data set {name!r} is not allowed: one of {', '.join(SOURCES)}")
    return SOURCES[name]


def obtain(name: str, root: Path, *, download: bool = True) -> list[Path]:
    """The files of a data set, downloaded if they are missing and that is wanted."""
    paths = []
    for source in sources_of(name):
        path = root / source.filename
        if not path.is_file():
            if not download:
                raise OrdiscoError(f"{name} is not there: put {source.url} at {path} or run: ordisco data fetch {name}")
            fetch(source, root)
        paths.append(path)
    return paths


def fetch(source: Source, root: Path) -> Path:
    """Download one file and check it; on any failure nothing is left behind."""
    import pooch
    import requests

    target = root / source.filename
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=1 << 18)
    print(f"downloading {source.url} to {target}", file=sys.stderr)
    try:
        # pooch writes to a temporary file beside the target and renames it only if the checksum matches
        pooch.retrieve(source.url, f"md5:{source.md5}", source.filename, root, downloader=downloader)
        target.chmod(0o644)
    except ValueError as error:
        raise OrdiscoError(
            f"{source.url}: the download does not match its checksum and was removed; try again, or put the "
            f"file with MD5 {source.md5} at {target}"
        ) from error
    except requests.exceptions.RequestException as error:
        raise OrdiscoError(
            f"cannot download {source.url} ({_reason(error)}): get it elsewhere and put it at {target}"
        ) from error
    except OSError as error:
        raise OrdiscoError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def md5_of(path: Path) -> str:
    """The MD5 of a file, as the publishers' checksums are given."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    except OSError as error:
        raise OrdiscoError(f"cannot read {path}: {error.strerror or error}") from error


def differences(name: str, root: Path) -> tuple[str, ...]:
    """A line that names the files of a data set that are not the publisher's, if there are any."""
    others = [source.filename for source in sources_of(name) if md5_of(root / source.filename) != source.md5]
    if not others:
        return ()
    return (f"{root}: not the publisher's file by its MD5, used as it is: {', '.join(others)}",)


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    return f"HTTP {response.status_code}" if response is not None else type(error).__name__
