"""The learner: everything that survives from one increment to the next. Its training step is in `step.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ordisco.consolidate import after_increment
from ordisco.data import denormalize, normalize
from ordisco.errors import OrdiscoError
from ordisco.expected import check_forms, check_values
from ordisco.fits import check_memory
from ordisco.kept import Kept
from ordisco.methods import Method
from ordisco.nets import AnyGenerator, make_generator
from ordisco.networks import Network, Networks
from ordisco.penalties import SI
from ordisco.pools import Augmentation, Pool
from ordisco.seeding import derive_seed
from ordisco.settings import LearnerSettings
from ordisco.ssl import make_unlabeled_loss
from ordisco.step import TERMS, TRACE, train_step
from ordisco.stream import Increment
from ordisco.tensorfile import forms_of

SIDES = (8, 16, 32, 64)


class NonFiniteError(OrdiscoError):
    """A loss became infinite or not a number."""


class Learner:
    """Learns one increment after the other from partially labelled images.

    `num_classes` is how many classes are expected; more can come. `translate` and `flip` say which views of an
    image keep its meaning. `fabric` chooses device, precision and processes; without it, one CPU or GPU.
    """

    def __init__(
        self,
        method: Method,
        num_classes: int,
        image_shape: tuple[int, int, int],
        settings: LearnerSettings | None = None,
        *,
        seed: int = 0,
        translate: int = 1,
        flip: bool = False,
        fabric: Fabric | None = None,
    ) -> None:
        check_image_shape(image_shape)
        self.method, self.settings, self.seed = method, settings or LearnerSettings(), seed
        self.image_shape = image_shape
        self.fabric = fabric or Fabric(accelerator="auto", devices=1)
        self.device = self.fabric.device
        self.augment = Augmentation(translate, flip)
        self.unlabeled_loss = make_unlabeled_loss(self.settings.unlabeled)
        self.classes: list[int] = []  # labels in the order they came; the position is the class's slot
        self.classes_before = 0  # how many of them are from earlier increments
        self.increments = 0  # learned so far
        self.step_in_increment = 0
        self.total_steps = 0
        self.mean_prediction: dict[str, Tensor] = {}  # running, for distribution alignment
        self.trace = torch.zeros(TRACE, len(TERMS), device=self.device)  # the losses of the last steps
        check_memory(self.settings, image_shape, num_classes, method.gan, self.fabric)
        with self.random("init"):
            self.nets = Networks(self.settings, image_shape, num_classes, method.head, method.gan, self.device)
        self.kept = Kept(method, self.settings, image_shape, num_classes, self.device)

    # ------------------------------------------------------------------ learning

    def learn(self, increment: Increment) -> None:
        """Learn one increment: train on it, then keep what the method keeps."""
        self.begin(increment)
        with self.random("learn"):
            while not self.done:
                self.step()
                if self.step_in_increment % TRACE == 0:
                    self.check_finite()
        self.finish()

    def begin(self, increment: Increment) -> None:
        """Make ready for a new increment: room for its new classes, fresh optimisers, its images on the device."""
        check_increment(increment, self.image_shape)
        if not increment.classes and not (self.kept.data is not None and len(self.kept.data)):
            raise OrdiscoError("the increment has no labelled image and none is remembered: label at least one image")
        self.classes += [label for label in increment.classes if label not in self.classes]
        if len(self.classes) > self.nets.capacity:
            with self.random("grow", len(self.classes)):
                layouts = self.nets.grow(len(self.classes))
            self.kept.grow(layouts["C"], layouts.get("D"))
        self.step_in_increment = 0
        self.mean_prediction = {}
        self.trace.zero_()
        self.nets.start_optimizers()
        if isinstance(self.kept.penalty, SI):
            self.kept.penalty.begin(self.nets.C.flat.theta)
        self.attach(increment)

    def attach(self, increment: Increment) -> None:
        """Lay out what mini-batches are drawn from: b_l ∪ SMB and b_ul ∪ UMB, or everything (joint training)."""
        self.increment = increment
        images, labels = increment.images.to(self.device), increment.labels.to(self.device)
        came_with = labels[labels >= 0]  # the labels that came with the unlabelled images
        if self.kept.data is not None and len(self.kept.data):
            images = torch.cat([self.kept.data.images, images])
            labels = torch.cat([self.kept.data.labels, labels])
        known = labels >= 0
        self.labeled = Pool(images[known], self.slots_of(labels[known]))
        self.unlabeled = Pool(images[~known])
        remembered = self.class_frequencies(labels[known])
        joint = self.method.memory == "all" or not len(came_with)
        self.expected = remembered if joint else self.class_frequencies(came_with)
        umb = self.kept.umb
        if umb is not None and len(umb):
            share = len(umb) / (len(umb) + len(self.unlabeled))
            self.unlabeled = Pool(torch.cat([self.unlabeled.images, umb.images]))
            self.expected = (1 - share) * self.expected + share * remembered

    def step(self) -> None:
        """One training step; all its random numbers depend only on the seed and the step's number."""
        self.nets.train()
        terms = train_step(self)
        zero = torch.zeros((), device=self.device)
        self.trace[self.step_in_increment % TRACE] = torch.stack([terms.get(term, zero) for term in TERMS])
        self.step_in_increment += 1
        self.total_steps += 1

    def finish(self) -> None:
        """Close the increment: measure importances (Eqs. 9, 10), fill memories, save generators."""
        self.check_finite()
        with self.random("finish", self.increments):
            after_increment(self)
        self.nets.stop_optimizers()
        self.classes_before = len(self.classes)
        self.increments += 1
        self.step_in_increment = 0

    @property
    def steps(self) -> int:
        """Training steps of this increment; offline replay makes as many again for each old increment."""
        passes = self.increments + 1 if self.method.replay.startswith("offline") else 1
        return self.settings.step.steps * passes

    @property
    def done(self) -> bool:
        """Are all steps of this increment made?"""
        return self.step_in_increment >= self.steps

    def mean_losses(self) -> dict[str, float]:
        """The mean of each loss term over the last steps."""
        filled = (self.step_in_increment - 1) % TRACE + 1 if self.step_in_increment else 0
        return dict(zip(TERMS, self.trace[:filled].mean(0).tolist(), strict=True)) if filled else {}

    def check_finite(self) -> None:
        """Stop with the step and the term if one of the last losses is not finite."""
        bad = (~torch.isfinite(self.trace)).nonzero()
        if len(bad):
            row, term = bad[0].tolist()
            start = (self.step_in_increment - 1) // TRACE * TRACE
            raise NonFiniteError(
                f"the {TERMS[term]} loss is {float(self.trace[row, term])} at step {start + row + 1} of increment "
                f"{self.increments + 1}: lower the learning rate or use --precision 32-true"
            )

    # ------------------------------------------------------------------ using what was learned

    @torch.no_grad()
    def scores(self, images: Tensor, batch: int = 512) -> Tensor:
        """Logits of C′ for uint8 images, a column for each entry of `classes`."""
        if not self.classes:
            raise OrdiscoError("the learner has learned nothing yet: call learn() first")
        check_images(images, self.image_shape)
        self.nets.teacher.module.eval()
        parts = [torch.zeros(0, len(self.classes), device=self.device)]
        for part in images.split(batch):
            x = normalize(part.to(self.device))
            with self.fabric.autocast():
                parts.append(self.nets.teacher.module(x)[:, : len(self.classes)].float())
        return torch.cat(parts)

    def predict_slots(self, images: Tensor) -> Tensor:
        """The most likely class of each image as a position in `classes`."""
        return self.scores(images).argmax(1)

    def predict(self, images: Tensor) -> Tensor:
        """The most likely label of each uint8 image."""
        return torch.tensor(self.classes, device=self.device)[self.predict_slots(images)]

    def predict_proba(self, images: Tensor) -> Tensor:
        """Class probabilities of uint8 images; column j belongs to the label `classes[j]`."""
        return self.scores(images).softmax(1)

    @torch.no_grad()
    def features(self, images: Tensor) -> Tensor:
        """The features of C′ under its head, for uint8 images."""
        module = self.nets.teacher.module.eval()
        parts = [module.features(normalize(part.to(self.device))) for part in images.split(512)]  # type: ignore[operator]
        return torch.cat(parts).float()

    @torch.no_grad()
    def sample(self, labels: Tensor, seed: int = 0) -> Tensor:
        """Images (uint8) drawn from G for the given labels; the same seed gives the same noise."""
        if self.nets.sampler is None:
            raise OrdiscoError(f"the method {self.method.name} has no generator to sample from")
        noise = torch.Generator().manual_seed(derive_seed(seed, "sample"))
        z = torch.randn(len(labels), self.settings.gan.z_dim, generator=noise).to(self.device)
        G, slots = self.nets.sampler.module.eval(), self.slots_of(labels.to(self.device))
        return torch.cat([denormalize(G(*part)) for part in zip(z.split(256), slots.split(256), strict=True)])

    # ------------------------------------------------------------------ small parts

    def slots_of(self, labels: Tensor) -> Tensor:
        """Positions of labels in `classes`."""
        table = {label: slot for slot, label in enumerate(self.classes)}
        unknown = sorted(set(labels.tolist()) - table.keys())
        if unknown:
            raise OrdiscoError(f"class {unknown[0]} has not been seen; seen so far: {self.classes}")
        return torch.tensor([table[label] for label in labels.tolist()], dtype=torch.int64, device=self.device)

    def class_frequencies(self, labels: Tensor) -> Tensor:
        """The share of each class seen so far among the labels."""
        counts = torch.bincount(self.slots_of(labels), minlength=len(self.classes)).float()
        return counts / counts.sum()

    def reduce(self, network: Network) -> None:
        """Average gradients and batch-norm statistics over the processes of a data-parallel run."""
        if self.fabric.world_size > 1:
            for vector in (network.flat.grad, network.flat.buffers):
                if len(vector):
                    vector.copy_(self.averaged(vector))

    def averaged(self, vector: Tensor) -> Tensor:
        """The mean of a vector over the processes of a data-parallel run."""
        if self.fabric.world_size == 1:
            return vector
        mean = self.fabric.all_reduce(vector.clone(), reduce_op="mean")
        assert isinstance(mean, Tensor)
        return mean

    def seed_step(self, part: str) -> None:
        """Seed torch for a part of the present step (and process): a resumed run draws the same numbers."""
        set_seed(derive_seed(self.seed, part, self.total_steps, self.fabric.global_rank), self.device)

    @contextmanager
    def random(self, *place: int | str) -> Iterator[None]:
        """Seed torch for a place, and leave the caller's random state as it was."""
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            set_seed(derive_seed(self.seed, *place), self.device)
            yield

    def bytes_kept(self) -> dict[str, int]:
        """Storage from one increment to the next, by part."""
        networks = {
            name: network.flat.theta.nbytes + network.flat.buffers.nbytes for name, network in self.nets.named()
        }
        return networks | self.kept.bytes()

    # ------------------------------------------------------------------ saving and restoring

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that decides how learning goes on: tensors (not copies), and plain values for JSON."""
        tensors = self.nets.state() | self.kept.state() | {"trace": self.trace}
        tensors |= {f"mean_prediction.{use}": mean for use, mean in self.mean_prediction.items()}
        return tensors, {
            "classes": self.classes,
            "classes_before": self.classes_before,
            "capacity": self.nets.capacity,
            "increments": self.increments,
            "step_in_increment": self.step_in_increment,
            "total_steps": self.total_steps,
            "measured": self.kept.measured,
        }

    def load(self, tensors: dict[str, Tensor], state: dict[str, Any], increment: Increment | None = None) -> None:
        """Put a state back; `increment` is the one under way if the state was taken in the middle of one.

        A state that is not of such a learner is refused before anything is changed.
        """
        check_forms(self.method, self.settings, self.image_shape, state, forms_of(tensors), nets=self.nets)
        check_values(self.method, self.settings, self.image_shape, state, tensors)
        if state["capacity"] < self.nets.capacity:
            raise OrdiscoError(f"the state has room for {state['capacity']} classes, not for {self.nets.capacity}")
        with self.random("load"):
            if state["capacity"] > self.nets.capacity:
                self.nets.grow(state["capacity"])
            self.kept.load(tensors, self.nets.C, self._build_generator)
        self.classes, self.classes_before = list(state["classes"]), state["classes_before"]
        self.increments, self.step_in_increment = state["increments"], state["step_in_increment"]
        self.total_steps, self.kept.measured = state["total_steps"], state["measured"]
        if increment is not None:
            self.nets.start_optimizers()
        self.nets.load(tensors)
        self.trace.copy_(tensors["trace"])
        self.mean_prediction = {
            key.removeprefix("mean_prediction."): mean.to(self.device)
            for key, mean in tensors.items()
            if key.startswith("mean_prediction.")
        }
        if increment is not None:
            self.attach(increment)

    def _build_generator(self, capacity: int) -> AnyGenerator:
        return make_generator(self.settings.gan, self.image_shape, capacity).to(self.device)


def set_seed(seed: int, device: torch.device) -> None:
    """As `torch.manual_seed`, which on a machine without a GPU takes a millisecond to note where it was called."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        torch.manual_seed(seed)


def check_image_shape(image_shape: tuple[int, int, int]) -> None:
    """Refuse images that the networks cannot take."""
    if image_shape[0] not in (1, 3) or image_shape[1] != image_shape[2] or image_shape[1] not in SIDES:
        raise OrdiscoError(
            f"images of shape {tuple(image_shape)} do not fit: 1 or 3 channels, square, side {SIDES}; give --size"
        )


def check_images(images: Tensor, image_shape: tuple[int, int, int]) -> None:
    """Refuse images of another shape or type."""
    if images.dtype != torch.uint8 or tuple(images.shape[1:]) != tuple(image_shape):
        raise OrdiscoError(
            f"these are {images.dtype} images of shape {tuple(images.shape[1:])}; "
            f"this learner takes torch.uint8 of shape {tuple(image_shape)}"
        )


def check_increment(increment: Increment, image_shape: tuple[int, int, int]) -> None:
    """Refuse what cannot be learned before anything is changed."""
    check_images(increment.images, image_shape)
    if not len(increment.images):
        raise OrdiscoError("an increment has no images: leave it out of the stream")
    labels = increment.labels
    if labels.dtype != torch.int64 or labels.shape != increment.images.shape[:1] or int(labels.min()) < -1:
        raise OrdiscoError(
            f"an increment of {len(increment.images)} images has {labels.dtype} labels of shape {tuple(labels.shape)}; "
            "give one torch.int64 label an image, -1 where it is unknown"
        )
