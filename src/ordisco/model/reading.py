"""A delivery read from a folder or a CSV file: listed, decoded once into a file, described."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from ordisco.data.decoding import Outcome, decode_into
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line
from ordisco.model.about import About, Labels
from ordisco.model.automatic import side_for
from ordisco.model.delivery import Delivery, arranged, fingerprint, sum_of_hashes
from ordisco.model.listing import Listing, shorter_sides
from ordisco.model.mapped import MappedImages
from ordisco.model.work import Work, refuse_other
from ordisco.report.terminal import Display
from ordisco.runs.signals import Interrupted
from ordisco.words import counted, duration, some_of

NAMES_SHOWN = 5
CHUNK = 4_096  # images in memory at a time
SPEAK_SECONDS = 5.0  # between two lines on the progress of decoding


def read_delivery(listing: Listing, about: About, work: Work, seed: int, display: Display) -> tuple[Delivery, About]:
    """The delivery, from the work folder if it was decoded before; and the kind of images, if it is the first."""
    refuse_other(work, listing.key)
    delivery = work.delivery()
    if delivery is None:
        with work.dropped_if_refused():
            try:
                delivery = decoded(listing, about, work, seed, display)
            except KeyboardInterrupt:
                raise Interrupted("stopped while decoding, nothing is lost; the same command begins again") from None
    _, channels, side, _ = delivery.images.shape
    return delivery, dataclasses.replace(about, channels=channels, side=side)


def decoded(listing: Listing, about: About, work: Work, seed: int, display: Display) -> Delivery:
    """Decode all images into work/, in the order of a delivery, without those that cannot be decoded."""
    order, held = arranged(listing.labels, listing.test, about.holdout, seed)
    paths, labels = [listing.paths[index] for index in order.tolist()], listing.labels[order]
    side = about.side or side_for(shorter_sides(paths))
    file, channels = work.begin(), about.channels or 3
    outcome = decode_into(file, paths, side, channels, speaker(display, len(paths)))
    if about.channels == 1 and outcome.coloured is not None:
        path = paths[outcome.coloured]
        raise OrdiscoError(f"{path} is a colour image, the model takes grey ones: convert it, or make a new model")
    good = torch.ones(len(paths), dtype=torch.bool)
    good[list(outcome.broken)] = False
    notes = notes_on(listing, outcome, paths)
    if not bool(good.any()):
        raise OrdiscoError(f"{listing.source}: none of {len(paths):,} images can be decoded: {'; '.join(notes)}")
    wanted = 1 if about.channels is None and outcome.coloured is None else channels
    shape = rewritten(file, (len(paths), channels, side, side), good, wanted)
    held -= int((~good[len(paths) - held :]).sum()) if held else 0
    labels, names = labels[good], [*listing.names, ""]
    total = hashed(MappedImages(file, shape), [names[label] for label in labels.tolist()])
    kind: Labels | None = "text" if listing.names else None
    empty = torch.empty((len(labels), 0))  # its images are in the file
    delivery = Delivery(str(listing.source), empty, labels, listing.names, fingerprint(total), held, kind, notes)
    return work.describe(delivery, listing.key, shape)


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


def notes_on(listing: Listing, outcome: Outcome, paths: Sequence[str]) -> tuple[str, ...]:
    """A line on images that could not be decoded."""
    if not outcome.broken:
        return ()
    names = [f"{paths[index]} ({why})" for index, why in sorted(outcome.broken.items())]
    return (f"{listing.source}: {counted(len(names), 'unreadable image')} skipped: {some_of(names, NAMES_SHOWN)}",)
