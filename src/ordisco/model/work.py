"""A delivery under way: its images decoded, what was decided on, and the learner in between.

work/images.u8 and work/delivery.json come first, then work/plan.json, then work/checkpoints/. Whatever of it is
missing or damaged is made anew.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from ordisco import files
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line
from ordisco.learner.learner import Learner
from ordisco.model.delivery import Delivery
from ordisco.model.mapped import MappedImages
from ordisco.runs import checkpoint
from ordisco.streams.stream import Increment

IMAGES, DELIVERY, PLAN, CHECKPOINTS = "images.u8", "delivery.json", "plan.json", "checkpoints"
MOST = 1 << 30  # bytes of a JSON file
CHUNK = 4_096  # images written at once


class Work:
    """The folder work/ of a model, which is locked."""

    def __init__(self, path: Path) -> None:
        self.path, self.checkpoints = path, path / CHECKPOINTS
        self.images: MappedImages | None = None

    def begin(self) -> Path:
        """Empty the folder; gives the path of the images to be decoded."""
        self.clear()
        with told_in_one_line("write", self.path):
            files.make_directory(self.path)
        return self.path / IMAGES

    def write_images(self, images: torch.Tensor) -> None:
        """Images that are in memory."""
        with told_in_one_line("write", self.path / IMAGES), (self.path / IMAGES).open("xb") as file:
            for part in images.split(CHUNK):
                file.write(part.numpy().tobytes())

    def describe(self, delivery: Delivery, listing: str, shape: tuple[int, ...]) -> Delivery:
        """Keep all but the images, which are in their file; gives the delivery with its images mapped."""
        unlabeled = int((delivery.labels < 0).sum())
        plain = {
            "source": delivery.source,
            "listing": listing,
            "shape": list(shape),
            "labels": delivery.labels[delivery.labels >= 0].tolist(),
            "unlabeled": unlabeled,
            "names": list(delivery.names),
            "fingerprint": delivery.fingerprint,
            "held": delivery.held,
            "kind": delivery.kind,
            "notes": list(delivery.notes),
        }
        files.write_atomically(self.path / DELIVERY, files.json_bytes(plain))
        found = self.delivery()
        if found is None:
            raise OrdiscoError(f"{self.path} was changed while it was written: learn the delivery again")
        return found

    def delivery(self) -> Delivery | None:
        """The delivery under way, None where there is none that is whole."""
        plain = self._read(DELIVERY)
        try:
            count, *shape = plain["shape"]
            channels, height, width = shape
            given = torch.tensor(plain["labels"], dtype=torch.int64)
            learned = len(given) - plain["held"]
            unknown = torch.full((plain["unlabeled"],), -1)
            labels = torch.cat([given[:learned], unknown, given[learned:]])
            self.images = MappedImages(self.path / IMAGES, (count, channels, height, width))
            if len(labels) != count:
                raise ValueError("labels are not as many as images")
            return Delivery(
                plain["source"],
                self.images.tensor,
                labels,
                tuple(plain["names"]),
                plain["fingerprint"],
                plain["held"],
                plain["kind"],
                tuple(plain["notes"]),
            )
        except (KeyError, ValueError, TypeError, OSError):
            return None

    def listing(self) -> str | None:
        """What tells whether a delivery is the one under way."""
        value = self._read(DELIVERY).get("listing")
        return value if isinstance(value, str) else None

    def source(self) -> str | None:
        """Where the delivery under way came from, None where there is none."""
        value = self._read(DELIVERY).get("source")
        return value if isinstance(value, str) else None

    def write_plan(self, plan: dict[str, Any]) -> None:
        """Keep what was decided."""
        files.write_atomically(self.path / PLAN, files.json_bytes(plan))

    def plan(self) -> dict[str, Any] | None:
        """What was decided, None where it was not yet."""
        return self._read(PLAN) or None

    def save(self, learner: Learner, seconds: float) -> None:
        """Keep the learner as it is now."""
        tensors, state = learner.saved()
        learner.check_finite()
        checkpoint.save(self.checkpoints, learner.total_steps, tensors, {"learner": state, "seconds": seconds})

    def restore(self, learner: Learner, increment: Increment) -> float | None:
        """Go back to the last whole checkpoint of this delivery; gives its seconds, None where there is none."""
        if checkpoint.newest(self.checkpoints) is None:
            return None
        try:
            loaded = checkpoint.load_latest(self.checkpoints)
            learner.load(loaded.tensors, loaded.state["learner"], increment)
            return float(loaded.state["seconds"])
        except (OrdiscoError, KeyError, TypeError, ValueError):
            return None  # the delivery is begun again

    def rest(self) -> None:
        """Give back the memory of the images."""
        if self.images is not None:
            self.images.rest()

    @contextlib.contextmanager
    def dropped_if_refused(self) -> Iterator[None]:
        """A delivery that cannot be learned is not under way."""
        try:
            yield
        except OrdiscoError:
            self.clear()
            raise

    def clear(self) -> None:
        """Nothing is under way any more."""
        self.images = None
        if files.kind_of(self.path) is not None:
            aside = files.aside(self.path)
            with told_in_one_line("remove", self.path):
                self.path.rename(aside)
            files.remove(aside)

    def _read(self, name: str) -> dict[str, Any]:
        try:
            value = files.json_of(files.read_plain(self.path / name, MOST))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}


def refuse_other(work: Work, listing: str) -> None:
    """Another delivery than the one under way has to wait."""
    source = work.source()
    if source is not None and work.listing() != listing:
        raise OrdiscoError(
            f"the delivery {source} is under way, and this is another, or it has changed since: learn that to its end "
            "as it was, or drop it with `ordisco undo`"
        )
