"""`Model`: what a user holds. Names, pictures and a history around a `Learner`."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation.ask import uncertainty, worth_a_label
from ordisco.learner.learner import Learner
from ordisco.learner.seeding import derive_seed
from ordisco.machine.fabric import Fabric
from ordisco.machine.processes import make_fabric
from ordisco.model import learning, pictures
from ordisco.model.about import About
from ordisco.model.arrays import fitted, images_of, typed
from ordisco.model.automatic import side_for
from ordisco.model.delivery import Delivery, from_arrays
from ordisco.model.directory import ModelDirectory
from ordisco.model.knowledge import Knowledge, to_version
from ordisco.model.learning import Options, Plan
from ordisco.model.listing import listing_of
from ordisco.model.overview import overview
from ordisco.model.reading import read_delivery
from ordisco.model.stored import settled, stored, undone
from ordisco.model.testing import in_batches, labelled, positions, tested
from ordisco.model.work import Work, refuse_other
from ordisco.report.terminal import Display, SilentDisplay
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings

Images = Any  # arrays or tensors of images, or the path of a folder, a CSV file or an image, or a list of paths


class Model:
    """A model that is better after each delivery: `create` or `open` one, then `learn`, `predict`, `sample`.

    Images are arrays (n, height, width), (n, height, width, channels) or (n, channels, height, width) of uint8, or of
    floating-point numbers from 0 to 1; or the path of a folder, of a CSV file or of an image.

    >>> model = Model.create(None, side=8)  # None: in memory; a path: a directory that survives
    >>> images = np.concatenate([np.zeros((4, 8, 8), np.uint8), np.full((4, 8, 8), 255, np.uint8)])
    >>> record = model.learn(images, ["night", "night", None, None, "day", None, None, "day"], steps=20)
    >>> model.classes, record["labeled"], model.deliveries
    (['day', 'night'], 4, 1)
    >>> model.predict_proba(images).shape
    (8, 2)
    """

    def __init__(self, knowledge: Knowledge, directory: ModelDirectory | None, fabric: Fabric) -> None:
        self._knowledge, self._directory, self._fabric = knowledge, directory, fabric

    @classmethod
    def create(
        cls,
        path: str | PathLike[str] | None,
        *,
        side: int | None = None,
        channels: int | None = None,
        flip: bool = False,
        holdout: float = 0.0,
        method: str = "ordisco",
        seed: int = 0,
        settings: LearnerSettings | None = None,
        machine: MachineSettings | None = None,
    ) -> Model:
        """A new model, in a new directory or (`path` None) in memory; what is not given, the first delivery decides."""
        about = About(method, seed, side, channels, flip, holdout, settings=settings)
        directory = None if path is None else ModelDirectory.create(Path(path), about)
        return cls(Knowledge(about), directory, make_fabric(machine or MachineSettings()))

    @classmethod
    def open(cls, path: str | PathLike[str], machine: MachineSettings | None = None) -> Model:
        """The model of a directory, as its last delivery left it."""
        directory, fabric = ModelDirectory.open(Path(path)), make_fabric(machine or MachineSettings())
        return cls(stored(directory, fabric), directory, fabric)

    # ------------------------------------------------------------------ what it is

    @property
    def path(self) -> Path | None:
        """Its directory; None: it is in memory."""
        return None if self._directory is None else self._directory.path

    @property
    def about(self) -> About:
        """Images, classes, method, settings."""
        return self._knowledge.about

    @property
    def classes(self) -> list[str] | list[int]:
        """The classes in the order they came; columns of probabilities are in this order."""
        names: list[str] | list[int] = typed(self.about.classes, self.about.labels).tolist()
        return names

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that its networks see."""
        return self.about.image_shape

    @property
    def deliveries(self) -> int:
        """How many deliveries it has learned."""
        return self._knowledge.deliveries

    @property
    def history(self) -> list[dict[str, Any]]:
        """A record a delivery: images, labels, new classes, accuracy before learning, …"""
        return self._knowledge.history

    def overview(self) -> dict[str, Any]:
        """What it is, what it has learned and what it keeps, as plain values."""
        return overview(self._knowledge, self._directory)

    @property
    def learner(self) -> Learner:
        """C, C′, G and D, and what they remember."""
        if self._knowledge.learner is None:
            raise OrdiscoError(f"{self.path or 'the model'} has learned nothing yet: learn a first delivery")
        return self._knowledge.learner

    # ------------------------------------------------------------------ learning

    def learn(
        self,
        images: Images,
        labels: Any = None,
        *,
        steps: int | None = None,
        minutes: float | None = None,
        holdout: float | None = None,
        again: bool = False,
        display: Display | None = None,
    ) -> dict[str, Any]:
        """Learn a delivery and give its line of the history. Labels are texts or whole numbers; None or −1: unlabelled.

        If the process dies, the same call goes on where it was. `steps` or `minutes` say how long; `holdout` is the
        share of labelled images that is set aside; `again` takes a delivery that was learned before.
        """
        options, display = Options(steps, minutes, again), display or SilentDisplay(sys.stdout)
        with self._working() as work:
            knowledge = self._knowledge
            about = knowledge.about if holdout is None else dataclasses.replace(knowledge.about, holdout=holdout)
            knowledge = dataclasses.replace(knowledge, about=about)
            delivery, about = self._delivery(images, labels, about, work, display)
            for note in delivery.notes:
                display.message(note)
            knowledge = dataclasses.replace(knowledge, about=about)
            plan = Plan.from_dict(work.plan() or {})
            if plan is None:
                with work.dropped_if_refused():
                    plan = learning.make_plan(knowledge, delivery, options, self._fabric)
                work.write_plan(plan.to_dict())
            elif late := learning.too_late(plan, options, holdout):
                display.message(f"warning: {late}")
            display.message(learning.in_words(plan))
            if warning := learning.warning_in_words(plan.record):
                display.message(f"warning: {warning}")
            self._knowledge = learning.learn(
                knowledge, delivery, plan, self._fabric, display, work, self._go_on(delivery)
            )
            if self._directory is not None:
                self._directory.write(to_version(self._knowledge))
            work.clear()
        return self.history[-1]

    def undo(self) -> str:
        """Drop the delivery under way, or else go back to the state before the last delivery; says in words what."""
        if self._directory is None:
            raise OrdiscoError("a model in memory keeps no earlier state: nothing to undo")
        with self._directory.locked():
            self._knowledge, words = undone(self._directory, self._fabric)
        return words

    @contextmanager
    def _working(self) -> Iterator[Work]:
        """The model locked and as it is on the disk by now, and its folder for a delivery under way."""
        if self._directory is None:
            with tempfile.TemporaryDirectory(prefix="ordisco-") as folder:
                yield Work(Path(folder) / "work")
            return
        with self._directory.locked():
            if self._directory.numbers()[:1] != [self.deliveries]:
                self._knowledge = stored(self._directory, self._fabric)
            yield settled(self._directory, self._knowledge)

    def _delivery(
        self, images: Images, labels: Any, about: About, work: Work, display: Display
    ) -> tuple[Delivery, About]:
        """The delivery, decoded into the work folder or found there; and what the first one decides on."""
        seed = derive_seed(about.seed, "holdout", self.deliveries)
        paths = pictures.paths_of(images)
        if paths is not None:
            if labels is not None or len(paths) > 1:
                raise OrdiscoError("give one folder or CSV file without labels, or arrays with labels")
            return read_delivery(listing_of(paths[0]), about, work, seed, display)
        pixels = images_of(images)
        if not len(pixels):
            raise OrdiscoError("the delivery has no images")
        about = dataclasses.replace(
            about, side=about.side or side_for([min(pixels.shape[2:])]), channels=about.channels or pixels.shape[1]
        )
        delivery = from_arrays(pixels, labels, about.image_shape, about.holdout, seed)
        under_way = work.delivery()
        if under_way is None or under_way.fingerprint != delivery.fingerprint:
            refuse_other(work, delivery.fingerprint)
            work.begin()
            work.write_images(delivery.images)
            under_way = work.describe(delivery, delivery.fingerprint, tuple(delivery.images.shape))
        return under_way, about

    def _go_on(self, delivery: Delivery) -> str:
        """What to do after an interruption."""
        if self._directory is None:
            return "learn it again"
        return f"go on with: {shlex.join(['ordisco', 'learn', str(self._directory.path), delivery.source])}"

    # ------------------------------------------------------------------ using what was learned

    def predict(self, images: Images) -> np.ndarray:
        """The class of each image, as it was named."""
        named: np.ndarray = typed(self.about.classes, self.about.labels)[self.predict_proba(images).argmax(1)]
        return named

    def predict_proba(self, images: Images) -> np.ndarray:
        """The probability of each class, a column for each of `classes`."""
        parts = [self.probabilities(part) for part in self._parts(images)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.classes)), np.float32)

    def probabilities(self, images: Tensor) -> np.ndarray:
        """The same for uint8 images that have the model's shape already."""
        return self.learner.predict_proba(images).cpu().numpy()

    def test(self, images: Images, labels: Any = None) -> dict[str, Any]:
        """Accuracy, `per_class` and `confusion` on labelled images: folders, CSV files, or arrays with labels.

        The label of an image file that is given by itself is the name of its folder.
        """
        paths = pictures.paths_of(images)
        if paths is None:
            return tested(self.about, self.learner, in_batches(self.about, images, labels))
        return tested(self.about, self.learner, pictures.read(labelled(paths), self.image_shape))

    def features(self, images: Images) -> Tensor:
        """What C′ sees in each image, under its head: a vector an image."""
        return torch.cat([self.learner.features(part).cpu() for part in self._parts(images)])

    def ask(self, images: Images, count: int = 20, seed: int = 0) -> np.ndarray:
        """The positions of the images that are worth a label, most uncertain first (`evaluation/ask.py`)."""
        paths = pictures.paths_of(images)
        files = None if paths is None else [image.path for image in pictures.listed(paths)]
        doubts = [torch.zeros(0)]
        doubts += [uncertainty(torch.from_numpy(self.probabilities(part))) for part in self._parts(images)]

        def features(chosen: Tensor) -> Tensor:
            if files is not None:
                return self.features([files[place] for place in chosen.tolist()])
            return self.features(images_of(images)[chosen])

        return worth_a_label(torch.cat(doubts), features, count, seed).numpy()

    def sample(self, name: str | int | None = None, count: int = 16, seed: int = 0) -> np.ndarray:
        """Images drawn from the generator, uint8 (n, height, width) or (n, height, width, 3); None: classes in turn."""
        some = torch.arange(count) % len(self.classes)
        labels = some if name is None else torch.full((count,), self.position(name))
        images = self.learner.sample(labels, seed).cpu().permute(0, 2, 3, 1).numpy()
        return images[..., 0] if self.image_shape[0] == 1 else images

    def position(self, name: str | int) -> int:
        """Where a class stands in `classes`; one that the model does not know is an error."""
        return int(positions(self.about, [str(name)], [self.path or "the model"])[0])

    def pictures(self, sources: Sequence[Path], batch: int = pictures.BATCH) -> Iterator[pictures.Pictures]:
        """The images of folders, CSV files and single files as the model sees them, a batch at a time."""
        return pictures.read(pictures.listed(sources), self.image_shape, batch)

    def _parts(self, images: Images) -> Iterator[Tensor]:
        paths = pictures.paths_of(images)
        if paths is None:
            yield fitted(images, self.image_shape)
            return
        for part in self.pictures(paths):
            for path, why in part.broken:
                raise OrdiscoError(f"cannot decode {path} ({why})")
            yield part.images
