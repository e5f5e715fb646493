"""Where the published files come from, where they lie here, and how they are fetched and checked."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from ordisco.data.catalogue import Source, entry_of
from ordisco.data.download import Refused, received
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line


def data_directory(given: Path | None = None) -> Path:
    """The folder of data files: the one given, else `ORDISCO_DATA`, else the platform's cache folder."""
    if given is not None:
        return Path(os.path.expanduser(given))
    if os.environ.get("ORDISCO_DATA"):
        return Path(os.path.expanduser(os.environ["ORDISCO_DATA"]))
    import pooch

    return Path(pooch.os_cache("ordisco"))


def obtain(name: str, root: Path, *, download: bool = True) -> list[Path]:
    """The files of a data set, downloaded if they are missing and that is wanted."""
    paths = []
    for source in entry_of(name).sources:
        path = root / source.filename
        if not os.path.isfile(path):
            if os.path.lexists(path):
                raise OrdiscoError(f"{path} is there but is no file; remove it")
            if not download:
                raise OrdiscoError(f"{name} is not there: put {source.url} at {path} or run: ordisco data fetch {name}")
            fetch(source, root)
        paths.append(path)
    return paths


def fetch(source: Source, root: Path) -> Path:
    """Download one file and check it; on any failure nothing is left behind."""
    import pooch
    import requests
    import urllib3

    target = root / source.filename
    elsewhere = f"get it elsewhere and put it at {target}"
    pooch.get_logger().setLevel("WARNING")
    print(f"downloading {source.url} to {target}", file=sys.stderr)

    def download(url: str, file: str, _: object) -> None:
        with open(file, "wb") as output:
            for chunk in received(source):
                output.write(chunk)
        if source.sha256 not in (None, digest_of(Path(file), "sha256")):
            raise ValueError("SHA-256")

    try:
        # pooch writes to a temporary file beside the target and renames it only if the checksum matches
        pooch.retrieve(source.url, f"md5:{source.md5}", source.filename, root, downloader=download)
        target.chmod(0o644)
    except Refused as error:
        raise OrdiscoError(f"cannot download {source.url}: {error}; {elsewhere}") from error
    except ValueError as error:
        raise OrdiscoError(
            f"{source.url}: the download does not match its checksum and was removed; try again, or put the "
            f"file with MD5 {source.md5} at {target}"
        ) from error
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise OrdiscoError(f"cannot download {source.url} ({_reason(error)}): {elsewhere}") from error
    except OSError as error:
        raise OrdiscoError(f"cannot write {target}: {error.strerror or error}") from error
    return target


def digest_of(path: Path, algorithm: str = "md5") -> str:
    """The checksum of a file, as the publishers give it."""
    with told_in_one_line("read", path), path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def is_publishers(path: Path, source: Source) -> bool:
    """Whether the file is the publisher's, by every checksum that is known."""
    return digest_of(path) == source.md5 and source.sha256 in (None, digest_of(path, "sha256"))


def differences(name: str, root: Path) -> tuple[str, ...]:
    """A line that names the files of a data set that are not the publisher's, if there are any."""
    others = [source.filename for source in entry_of(name).sources if not is_publishers(root / source.filename, source)]
    if not others:
        return ()
    return (f"{root}: not the publisher's file by its checksum, used as it is: {', '.join(others)}",)


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    return f"HTTP {response.status_code}" if response is not None else type(error).__name__
