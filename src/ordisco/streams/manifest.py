"""A stream's manifest: a small JSON file that says which image arrives when and which labels are shown."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ordisco.errors import OrdiscoError
from ordisco.files import json_of, told_in_one_line, write_atomically
from ordisco.streams.settings import Scenario

FORMAT, VERSION = "ordisco-stream", 2
OF_ALL = 1  # the version whose checksum was over all images available, used or not
MAX_IMAGES = 100_000_000  # refuses a header that would ask for absurd memory


@dataclass(frozen=True)
class Manifest:
    """The increment of every training image (−1: not used) and whether its label is shown.

    The checksum is over the training images used and the test images.
    """

    name: str
    scenario: str
    seed: int
    dataset: str
    checksum: str
    assignment: np.ndarray
    shown: np.ndarray
    version: int = VERSION

    @property
    def checkable(self) -> bool:
        """Is its checksum over the images that a stream holds?"""
        return self.version != OF_ALL or bool((self.assignment >= 0).all())

    def fingerprint(self) -> str:
        """SHA-256 of what decides the stream: the same on two machines if and only if the stream is."""
        content = [self.scenario, self.seed, self.checksum]
        digest = hashlib.sha256(json.dumps(content).encode())
        digest.update(self.assignment.astype("<i2").tobytes())
        digest.update(self.shown.astype("u1").tobytes())
        return digest.hexdigest()


def write(path: Path | str, manifest: Manifest) -> None:
    """Write the file aside, then rename it into place."""
    path = Path(path)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": manifest.name,
        "scenario": manifest.scenario,
        "seed": manifest.seed,
        "dataset": manifest.dataset,
        "data_sha256": manifest.checksum,
        "training_images": len(manifest.assignment),
        "increment_of_image": _pack(manifest.assignment.astype("<i2").tobytes()),
        "label_shown": _pack(np.packbits(manifest.shown).tobytes()),
        "fingerprint": manifest.fingerprint(),
    }
    write_atomically(path, json.dumps(content, indent=1).encode())


def read(path: Path | str) -> Manifest:
    """Read a manifest and check that it is whole."""
    path = Path(path)
    with told_in_one_line("read the manifest", path):
        data = path.read_bytes()
    try:
        content: dict[str, Any] = json_of(data)
        if content["format"] != FORMAT or content["version"] not in (OF_ALL, VERSION):
            raise OrdiscoError(f"{path}: not a stream manifest of version {OF_ALL} or {VERSION}")
        count = int(content["training_images"])
        if not 0 < count <= MAX_IMAGES or content["scenario"] not in get_args(Scenario):
            raise ValueError("training_images or scenario")
        assignment = np.frombuffer(_unpack(content["increment_of_image"], 2 * count), dtype="<i2").astype(np.int64)
        bits = np.frombuffer(_unpack(content["label_shown"], (count + 7) // 8), dtype=np.uint8)
        shown = np.unpackbits(bits, count=count).astype(bool)
        manifest = Manifest(
            name=str(content["name"]),
            scenario=content["scenario"],
            seed=int(content["seed"]),
            dataset=str(content["dataset"]),
            checksum=str(content["data_sha256"]),
            assignment=assignment,
            shown=shown,
            version=int(content["version"]),
        )
        if content["fingerprint"] != manifest.fingerprint():
            raise ValueError("fingerprint")
    except (ValueError, KeyError, TypeError, AttributeError, zlib.error, binascii.Error) as error:
        raise OrdiscoError(f"{path}: damaged or not a stream manifest ({type(error).__name__}: {error})") from error
    used = np.unique(assignment[assignment >= 0])
    if assignment.min() < -1 or not np.array_equal(used, np.arange(len(used))) or (shown & (assignment < 0)).any():
        raise OrdiscoError(f"{path}: damaged, its increments are not numbered from 0 or a label belongs to none")
    return manifest


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode("ascii")


def _unpack(text: str, length: int) -> bytes:
    """Exactly `length` bytes; never more memory than that, whatever the text holds."""
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(base64.b64decode(text, validate=True), length + 1)
    if len(data) != length:
        raise ValueError(f"{len(data)} bytes instead of {length}")
    return data
