"""Figures of generated images: a row a class at one increment, or one class over the increments; of the first seed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line
from ordisco.paper.items import Entry, Item, Panel
from ordisco.paper.place import Found
from ordisco.report.grids import grid_images, sample_grid
from ordisco.runs.launch import stream_of
from ordisco.runs.summary import SAMPLES_PER_CLASS
from ordisco.streams.stream import Stream
from ordisco.words import file_name

MOST_ROWS = 10  # increments of one class that are drawn


def samples(item: Item, found: Found) -> list[dict[str, Any]]:
    """The panels of a figure of images, whose files lie in one directory; `frames` are the increments one by one."""
    panels = []
    for panel in item.panels:
        line = panel.entries[0].lines[0]
        stream = stream_of(found.plan.config(line, found.plan.seeds[0]))
        grids = []
        if item.at:
            at = found.plan.increment(panel.stream, item.at[0])
            real = f"{item.name}-{file_name(panel.name)}-real.png"
            draw_real(found.place.pictures / real, stream)
            grids.append({"name": "real images", "file": real})
            grids += [frames(entry, item, panel, found, at) for entry in panel.entries]
        else:
            grids += [one_class(entry, item, panel, found, stream) for entry in panel.entries]
        panels.append({"name": panel.name, "ours": found.stream_of(line), "grids": grids})
    return panels


def draw_real(path: Path, stream: Stream) -> None:
    """Training images, a row a class."""
    labels, rows = stream.dataset.train.labels, []
    for label in range(len(stream.dataset.classes)):
        rows.append(stream.dataset.train.images[labels == label][:SAMPLES_PER_CLASS].numpy())
    columns = min(len(row) for row in rows)
    sample_grid(path, np.concatenate([row[:columns] for row in rows]), len(rows), stream.dataset.classes)


def drawn(entry: Entry, found: Found) -> list[Path]:
    """The grids that the first seed's run has left, an increment each."""
    run = found.runs(entry.lines[0])[found.plan.seeds[0]]
    grids = sorted((run / "samples").glob("increment-*.png"))
    if not grids:
        raise OrdiscoError(f"{run} has no pictures: its samples were removed, delete the run to have it made again")
    return grids


def frames(entry: Entry, item: Item, panel: Panel, found: Found, at: int) -> dict[str, Any]:
    """Copies of the grids of all increments, with the one that the paper shows marked."""
    files = []
    for number, grid in enumerate(drawn(entry, found), start=1):
        name = f"{item.name}-{file_name(panel.name)}-{entry.row}-{number:02d}.png"
        with told_in_one_line("write", found.place.pictures / name):
            found.place.pictures.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(grid, found.place.pictures / name)
        files.append(name)
    return {"name": entry.name, "file": files[min(at, len(files)) - 1], "frames": files, "at": min(at, len(files))}


def one_class(entry: Entry, item: Item, panel: Panel, found: Found, stream: Stream) -> dict[str, Any]:
    """One class, a row an increment, from the same noise."""
    classes = stream.dataset.classes
    label = classes.index(panel.image_class) if panel.image_class in classes else 0
    grids = drawn(entry, found)
    every = -(-len(grids) // MOST_ROWS)
    shown = [number for number in range(1, len(grids) + 1) if number % every == 0 or number == 1]
    images = []
    for number in shown:
        seen = len(stream.classes_after(number - 1))
        all_classes = grid_images(grids[number - 1], seen, SAMPLES_PER_CLASS, stream.image_shape[1:])
        images.append(all_classes[label])
    name = f"{item.name}-{file_name(panel.name)}-{entry.row}.png"
    pixels = np.concatenate(images).transpose(0, 3, 1, 2)
    sample_grid(found.place.pictures / name, pixels, len(shown), [f"increment {number}" for number in shown])
    return {"name": f"{entry.name}, class {classes[label]}", "file": name}
