"""Own data: folders and CSV files with nasty names, labels and contents."""

import io
import json
import os
import random
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from fuzzing.oracle import Answer, Failure, ask

NAMES = ("a", "b", "c", "unlabeled", "unlabelled", "test", "Ünï", "٣", "a b", "a,b", "x" * 200, "-1", "--json", "0")
NAMES += ("[/y]", "[red]x", "%s", "{}", '"', "'", "$(x)", ".hidden", "NaN", "None")
NAMES += ("new\nline", "tab\t", "esc\x1b[2J", "\udcff\udcfe", "\u202e")
ENDS = (".png", ".png", ".png", ".jpg", ".PNG", ".gif", ".bmp", ".tif", ".webp", ".txt", "", ".pdf", ".eps", ".npy")
PATHS = ("/dev/zero", "..", "", "x" * 300, "a\0b", "~", "/proc/self/mem", "\udcff")
LABELS = (*NAMES, "", " ", "\0", "x" * 5_000, "1.5", "1e400")


def image_bytes(rng: random.Random, form: str = "PNG", side: int = 8) -> bytes:
    """A small picture."""
    pixels = np.frombuffer(rng.randbytes(side * side * 3), np.uint8).reshape(side, side, 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form)
    return file.getvalue()


def huge_header() -> bytes:
    """A PNG that says it has 60,000 × 60,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


def content(rng: random.Random) -> bytes:
    """The bytes of a file: mostly a picture, else something like one."""
    good = image_bytes(rng, rng.choice(("PNG", "PNG", "JPEG", "GIF", "BMP")))
    kind = rng.choice(("good",) * 8 + ("cut", "flip", "empty", "text", "zeros", "huge", "noise"))
    if kind == "cut":
        return good[: rng.randrange(len(good))]
    if kind == "flip":
        damaged = bytearray(good)
        for _ in range(rng.randrange(1, 9)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        return bytes(damaged)
    others = {
        "empty": b"",
        "text": b"%!PS not an image",
        "zeros": b"\0" * 100,
        "huge": huge_header(),
        "noise": rng.randbytes(200),
    }
    return others.get(kind, good)


def put(path: Path, rng: random.Random) -> None:
    """A file, or now and then a link, a folder or a pipe in its place."""
    kind = rng.choice(("file",) * 12 + ("link", "broken", "loop", "folder", "pipe", "secret"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(Path(__file__))
    elif kind == "broken":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(content(rng))
        if kind == "secret":
            path.chmod(0)


def class_names(rng: random.Random) -> list[str]:
    """Two plain classes and some more."""
    return ["a", "b", *rng.sample(NAMES, rng.choice((0, 0, 1, 1, 2, 3)))]


def make_folder(root: Path, rng: random.Random) -> Path:
    """A folder of classes: good pictures, and a few files that are none."""
    for name in dict.fromkeys(class_names(rng)):
        below = root / name / "a" if name == "test" else root / name
        below.mkdir(parents=True, exist_ok=True)
        for index in range(rng.choice((0, 1, 4, 4, 4))):
            (below / f"{index}.png").write_bytes(image_bytes(rng))
        for _ in range(rng.choice((0, 0, 1, 2))):
            path = below / (rng.choice(NAMES)[:100] + rng.choice(ENDS))
            if not path.is_symlink() and not path.exists():
                put(path, rng)
    return root


def make_csv(root: Path, rng: random.Random) -> Path:
    """A CSV file and its pictures: wrong lines, labels and bytes."""
    root.mkdir(parents=True, exist_ok=True)
    lines = [rng.choice(("path,label", *("path,label,split",) * 4, "label,path", "path;label", "", "path,label,path"))]
    for index in range(12):
        (root / f"{index}.png").write_bytes(image_bytes(rng))
        lines.append(f"{index}.png,{'ab'[index % 2]},")
    for _ in range(rng.choice((0, 1, 1, 2))):
        path = rng.choice((f"{rng.randrange(14)}.png", *PATHS))
        lines.append(f"{path},{rng.choice(LABELS)},{rng.choice(('', 'train', 'test', 'x'))}")
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    if rng.random() < 0.2:
        data = data[: rng.randrange(len(data) + 1)] + rng.choice((b"\0", b"\xff\xfe", b'"', b"\r", b"," * 200_000))
    file = root / rng.choice(("list.csv", "list.csv", "list.CSV", "li\nst.csv", "[/y].csv"))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return file


def one_case(rng: random.Random, folder: Path) -> Answer:
    """Make data, check them, and make a stream of them."""
    root = folder / rng.choice(("data", "data", "[/y]", "da ta", "é", "x" * 150))
    path = make_csv(root, rng) if rng.random() < 0.5 else make_folder(root, rng)
    common = ["--data-dir", str(folder / "cache")]
    checked = ask(["data", "check", str(path), "--json", *common, *rng.choice(([], ["--strict"]))])
    if checked.out:
        rows = json.loads(checked.out)
        if (checked.code == 0) != ("train" in rows[0]):
            raise Failure(f"exit code {checked.code} with {checked.out!r}")
    if rng.random() < 0.3:
        ask(["data", "check", str(path), *common])
    arrive = ["--increments", "1", "--size", "8", *rng.choice(([], ["--json"], ["--scenario", "new-class"]))]
    stream = ask(["stream", str(path), *arrive, *common])
    if checked.code == 2 and stream.code == 0:
        raise Failure("data check refuses what stream takes")
    return stream
