"""A delivery read from a folder or a CSV file: listed, decoded once into a file, described."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from ordisco.data import own
from ordisco.data.dataset import UNLABELED, natural_order
from ordisco.data.decoding import Outcome, decode_into
from ordisco.data.own import Listed
from ordisco.data.picture import known_formats
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line
from ordisco.model.about import About, Labels
from ordisco.model.automatic import LARGEST, side_for
from ordisco.model.delivery import Delivery, arranged, fingerprint, sum_of_hashes
from ordisco.model.mapped import MappedImages
from ordisco.model.work import Work, refuse_other
from ordisco.report.terminal import Display
from ordisco.words import duration, some_of

SAMPLED = 200  # images whose size is looked at before the first delivery
NAMES_SHOWN = 5
CHUNK = 4_096  # images in memory at a time
SPEAK_SECONDS = 5.0  # between two lines on the progress of decoding


@dataclass(frozen=True)
class Listing:
    """The images of a delivery that is to be read."""

    source: Path
    images: Sequence[Listed]
    key: str  # changes with the files' names, sizes, times and labels


def listing_of(source: Path) -> Listing:
    """What a folder or CSV file names."""
    source = Path(os.path.expanduser(source))
    if not (source.is_dir() or (source.is_file() and source.suffix.lower() == ".csv")):
        raise OrdiscoError(f"{source} is no delivery: give a folder or a .csv file of path,label")
    images = own.list_delivery(source)
    digest = hashlib.sha256()
    for image in images:
        try:
            status = image.path.stat()
            state = (status.st_size, status.st_mtime_ns)
        except OSError:
            state = (-1, -1)
        digest.update(json.dumps([str(image.path), *state, image.label, image.test]).encode())
    return Listing(source, images, digest.hexdigest())


def read_delivery(listing: Listing, about: About, work: Work, seed: int, display: Display) -> tuple[Delivery, About]:
    """The delivery, from the work folder if it was decoded before; and the kind of images, if it is the first."""
    refuse_other(work, listing.key)
    delivery = work.delivery()
    if delivery is None:
        with work.dropped_if_refused():
            delivery = decoded(listing, about, work, seed, display)
    _, channels, side, _ = delivery.images.shape
    return delivery, dataclasses.replace(about, channels=channels, side=side)


def decoded(listing: Listing, about: About, work: Work, seed: int, display: Display) -> Delivery:
    """Decode all images into work/, in the order of a delivery, without those that cannot be decoded."""
    names = tuple(natural_order(sorted({image.label for image in listing.images if image.label is not None})))
    position: dict[str | None, int] = {name: index for index, name in enumerate(names)}
    labels = torch.tensor([position.get(image.label, UNLABELED) for image in listing.images])
    test = torch.tensor([image.test for image in listing.images])
    order, held = arranged(labels, test, about.holdout, seed)
    images, labels = [listing.images[index] for index in order.tolist()], labels[order]
    side = about.side or side_for(shorter_sides(images))
    channels = about.channels or 3
    file = work.begin()
    outcome = decode_into(file, [image.path for image in images], side, channels, speaker(display, len(images)))
    if about.channels == 1 and outcome.coloured is not None:
        path = images[outcome.coloured].path
        raise OrdiscoError(f"{path} is a colour image, the model takes grey ones: convert it, or make a new model")
    good = torch.tensor([index not in outcome.broken for index in range(len(images))])
    if about.channels is None and outcome.coloured is None:
        channels = 1
    shape = rewritten(file, (len(images), about.channels or 3, side, side), good, channels)
    held -= int((~good[len(images) - held :]).sum()) if held else 0
    images, labels = [image for image, whole in zip(images, good.tolist(), strict=True) if whole], labels[good]
    notes = notes_on(listing, outcome, [listing.images[index].path for index in order.tolist()])
    if not images:
        raise OrdiscoError(f"{listing.source}: none of {len(good):,} images can be decoded: {'; '.join(notes)}")
    total = hashed(MappedImages(file, shape), [image.label or "" for image in images])
    kind: Labels | None = "text" if names else None
    source = str(listing.source)
    empty = torch.empty((len(images), 0))  # described by its shape below
    return work.describe(
        Delivery(source, empty, labels, names, fingerprint(total), held, kind, notes), listing.key, shape
    )


def shorter_sides(images: Sequence[Listed]) -> list[int]:
    """The shorter side of some of the images, evenly spaced; their headers are read, no more."""
    sides = []
    for image in images[:: max(1, len(images) // SAMPLED)]:
        try:
            with Image.open(image.path, formats=known_formats()) as picture:
                sides.append(min(picture.size))
        except Exception:  # a broken one is told when it is decoded
            continue
    return sides or [LARGEST]


def speaker(display: Display, total: int) -> Callable[[int], None]:
    """Says now and then how far decoding is."""
    started = spoken = time.monotonic()

    def speak(done: int) -> None:
        nonlocal spoken
        now = time.monotonic()
        if now - spoken > SPEAK_SECONDS and done < total:
            spoken, rate = now, done / (now - started)
            left = duration((total - done) / rate)
            display.message(f"decoding  {done:,} of {total:,} images  {rate:,.0f} images/s  {left} left")

    return speak


def rewritten(
    file: Path, shape: tuple[int, int, int, int], good: torch.Tensor, channels: int
) -> tuple[int, int, int, int]:
    """Take images that could not be decoded out of the file, and two of three equal channels; gives its new shape."""
    count, old, side, _ = shape
    if bool(good.all()) and old == channels:
        return shape
    written, size = 0, old * side * side
    with told_in_one_line("write", file), file.open("r+b") as source, file.open("r+b") as target:
        for start in range(0, count, CHUNK):
            part = np.frombuffer(source.read(CHUNK * size), np.uint8).reshape(-1, old, side, side)
            part = np.ascontiguousarray(part[good[start : start + CHUNK].numpy(), :channels])
            target.write(part.data if len(part) else b"")
            written += len(part)
        target.truncate(written * channels * side * side)
    return written, channels, side, side


def hashed(images: MappedImages, names: Sequence[str]) -> int:
    """The sum of the images' hashes, a few in memory at a time."""
    total = 0
    for start in range(0, len(names), CHUNK):
        total += sum_of_hashes(images.tensor[start : start + CHUNK].numpy(), names[start : start + CHUNK])
        images.rest()
    return total % 2**128


def notes_on(listing: Listing, outcome: Outcome, paths: Sequence[Path]) -> tuple[str, ...]:
    """A line on images that could not be decoded."""
    if not outcome.broken:
        return ()
    names = [f"{paths[index]} ({why})" for index, why in sorted(outcome.broken.items())]
    return (f"{listing.source}: {len(names)} unreadable images skipped: {some_of(names, NAMES_SHOWN)}",)
