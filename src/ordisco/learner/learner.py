"""The learner: what a user holds. It learns increments, predicts, samples, and is saved and restored.

What it does is in `step.py` and `end_increment.py`, on an explicit state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ordisco.data.pixels import denormalize, normalize
from ordisco.errors import OrdiscoError
from ordisco.learner.batch import Augmentation
from ordisco.learner.begin_increment import begin_increment
from ordisco.learner.checks import check_image_shape, check_images, check_increment
from ordisco.learner.end_increment import end_increment
from ordisco.learner.fits import check_memory, check_parts
from ordisco.learner.kept import network_bytes, round_weights
from ordisco.learner.memories import Memories, nbytes
from ordisco.learner.pools import Pools, lay_out
from ordisco.learner.saving import checksum, restore, saved
from ordisco.learner.seeding import derive_seed, seeded
from ordisco.learner.state import MEASURES, TERMS, TRACE, Setup, State
from ordisco.learner.statistics import gather_statistics
from ordisco.learner.step import train_step
from ordisco.learner.targets import check_predictions, no_predictions
from ordisco.machine.allocator import give_back_memory
from ordisco.machine.fabric import Fabric
from ordisco.machine.processes import one_device
from ordisco.maths.unlabeled import make_unlabeled_loss
from ordisco.nets.networks import Networks
from ordisco.nets.shared import shared_out
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method
from ordisco.streams.stream import Increment

TRACED = TERMS + MEASURES
AT_ONCE = 128  # images that C′ looks at at once: a tenth quicker than 512, in a quarter of the memory
NOTHING_TO_LEARN = "there is no increment to learn: call begin() first"


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
        settings = settings or LearnerSettings()
        check_parts(method, settings)
        self.setup = Setup(
            method,
            settings,
            image_shape,
            seed,
            Augmentation(translate, flip, settings.unlabeled.strong_colours == "any"),
            make_unlabeled_loss(settings.unlabeled),
            fabric or one_device(),
        )
        device = self.setup.device
        check_memory(settings, image_shape, num_classes, method.gan, self.setup.fabric)
        with self.random("init"):
            nets = Networks(settings, image_shape, num_classes, method.head, method.gan, device)
        memories = Memories(method, settings, image_shape, num_classes, device)
        self.state = State(nets, memories, trace=torch.zeros(TRACE, len(TRACED), device=device))
        self.increment: Increment | None = None  # the one under way, if any
        self.pools: Pools | None = None  # what its mini-batches are drawn from

    # ------------------------------------------------------------------ what it is

    @property
    def method(self) -> Method:
        """The parts that it is made of."""
        return self.setup.method

    @property
    def settings(self) -> LearnerSettings:
        """All its settings."""
        return self.setup.settings

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of its images."""
        return self.setup.image_shape

    @property
    def fabric(self) -> Fabric:
        """Device, precision and processes."""
        return self.setup.fabric

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.setup.device

    @property
    def classes(self) -> list[int]:
        """The labels seen so far in the order they came; columns of scores are in this order."""
        return self.state.classes.labels

    @property
    def increments(self) -> int:
        """How many increments are learned."""
        return self.state.increments

    @property
    def step_in_increment(self) -> int:
        """How many steps of the increment under way are made."""
        return self.state.step

    @property
    def total_steps(self) -> int:
        """How many steps are made in all."""
        return self.state.total_steps

    @property
    def capacity(self) -> int:
        """How many classes its networks have room for."""
        return self.state.nets.capacity

    @property
    def takes_shares(self) -> bool:
        """Does each process need only its share of an increment? Not where unlabelled images are kept."""
        memories = self.state.memories
        return self.setup.group.size > 1 and memories.umb is None and self.method.memory != "all"

    @property
    def has_generator(self) -> bool:
        """Can it `sample`?"""
        return self.state.nets.gan is not None

    # ------------------------------------------------------------------ learning

    def learn(self, increment: Increment) -> None:
        """Learn one increment: train on it, then keep what the method keeps."""
        self.begin(increment)
        with self.random("learn"):
            while not self.done:
                self.step()
                if self.state.step % TRACE == 0:
                    self.check_finite()
        self.finish()

    def begin(self, increment: Increment) -> None:
        """Make ready for a new increment: room for its new classes, fresh optimisers, its images on the device."""
        state, group = self.state, self.setup.group
        check_increment(increment, self.image_shape)
        if self.takes_shares:
            increment = increment.shared(group.rank, group.size)
        if not increment.classes and not (state.memories.data is not None and len(state.memories.data)):
            raise OrdiscoError("the increment has no labelled image and none is remembered: label at least one image")
        state.classes.add(increment.classes)
        if len(state.classes) > state.nets.capacity:
            with self.random("grow", len(state.classes)):
                state.memories.grow(state.nets.grow(len(state.classes)))
        state.step = 0
        state.trace.zero_()
        give_back_memory()  # of what was done before: the images of another increment, an evaluation
        begin_increment(self.setup, state, increment)
        self.attach(increment)
        assert self.pools is not None
        state.predicted = no_predictions(self.setup, self.pools)

    def attach(self, increment: Increment | None) -> None:
        """Lay out what mini-batches are drawn from; None: no increment is under way."""
        self.increment = increment
        self.pools = None if increment is None else lay_out(self.setup, self.state, increment)
        if self.pools is not None and self.state.step:
            check_predictions(self.state, self.pools)

    def step(self) -> None:
        """One training step; all its random numbers depend only on the seed and the step's number."""
        state = self.state
        if self.pools is None:
            raise OrdiscoError(NOTHING_TO_LEARN)
        state.nets.train()
        with shared_out(state.nets, self.setup.group):
            terms = train_step(self.setup, state, self.pools)
        zero = torch.zeros((), device=self.device)
        state.trace[state.step % TRACE] = torch.stack([terms.get(term, zero) for term in TRACED])
        state.step += 1
        state.total_steps += 1

    def finish(self, between: Callable[[], None] = lambda: None) -> None:
        """Close the increment: gather statistics, measure importances (Eqs. 9, 10), fill memories, save generators.

        `between` is called after each mini-batch of images that is read.
        """
        state = self.state
        if self.increment is None:
            raise OrdiscoError(NOTHING_TO_LEARN)
        self.check_finite()
        give_back_memory()  # of the steps
        if state.nets.gan is not None:
            round_weights(state.nets.gan)
        self.gather_statistics(between)
        with self.random("finish", state.increments):
            end_increment(self.setup, state, self.increment, self.predict_slots, self.features)
        give_back_memory()
        self.check_replicas()
        state.nets.stop_optimizers()
        state.classes.before = len(state.classes)
        state.increments += 1
        state.step = 0
        self.attach(None)

    @property
    def steps(self) -> int:
        """Training steps of the increment under way."""
        return 0 if self.pools is None else self.pools.steps

    @property
    def done(self) -> bool:
        """Are all steps of this increment made?"""
        return self.state.step >= self.steps

    def gather_statistics(self, between: Callable[[], None] = lambda: None) -> None:
        """Batch-norm statistics of C′ and G at their weights of now: done by `finish`; to predict before, call it."""
        if self.pools is None:
            raise OrdiscoError(NOTHING_TO_LEARN)
        with self.random("statistics", self.state.total_steps), shared_out(self.state.nets, self.setup.group):
            gather_statistics(self.setup, self.state, self.pools, between)

    def mean_losses(self) -> dict[str, float]:
        """The mean of each loss term over the last steps."""
        return {name: value for name, value in self._means().items() if name in TERMS}

    def mean_measures(self) -> dict[str, float]:
        """The mean of what is measured beside the losses, over the last steps."""
        return {name: value for name, value in self._means().items() if name in MEASURES}

    def _means(self) -> dict[str, float]:
        step = self.state.step
        filled = (step - 1) % TRACE + 1 if step else 0
        return dict(zip(TRACED, self.state.trace[:filled].mean(0).tolist(), strict=True)) if filled else {}

    def check_finite(self) -> None:
        """Stop with the step and the term if one of the last losses is not finite."""
        trace = self.state.trace
        bad = (~torch.isfinite(trace)).nonzero()
        if len(bad):
            row, term = bad[0].tolist()
            start = (self.state.step - 1) // TRACE * TRACE
            raise NonFiniteError(
                f"the {TRACED[term]} loss is {float(trace[row, term])} at step {start + row + 1} of increment "
                f"{self.state.increments + 1}: lower the learning rate or use --precision 32-true"
            )

    def check_replicas(self) -> None:
        """Stop if the processes of a data-parallel run no longer have the same state, bit for bit."""
        if self.setup.group.size > 1 and not self.setup.group.alike(checksum(self.saved()[0]), self.device):
            raise OrdiscoError(
                f"the processes have drifted apart in increment {self.increments + 1}: their weights differ; "
                "use machines of one kind with the same libraries, and go on with `ordisco resume`"
            )

    # ------------------------------------------------------------------ using what was learned

    @torch.no_grad()
    def scores(self, images: Tensor, batch: int = AT_ONCE) -> Tensor:
        """Logits of C′ for uint8 images, a column for each entry of `classes`."""
        if not self.classes:
            raise OrdiscoError("the learner has learned nothing yet: call learn() first")
        check_images(images, self.image_shape)
        self.state.nets.teacher.module.eval()
        parts = [torch.zeros(0, len(self.classes), device=self.device)]
        for part in images.split(batch):
            x = normalize(part.to(self.device))
            with self.fabric.autocast():
                parts.append(self.state.nets.teacher.module(x)[:, : len(self.classes)].float())
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
        module = self.state.nets.teacher.module.eval()
        parts = [module.features(normalize(part.to(self.device))) for part in images.split(AT_ONCE)]  # type: ignore[operator]
        return torch.cat(parts).float()

    @torch.no_grad()
    def sample(self, labels: Tensor, seed: int = 0) -> Tensor:
        """Images (uint8) drawn from G for the given labels; the same seed gives the same noise."""
        gan = self.state.nets.gan
        if gan is None:
            raise OrdiscoError(f"the method {self.method.name} has no generator to sample from")
        noise = torch.Generator().manual_seed(derive_seed(seed, "sample"))
        z = torch.randn(len(labels), self.settings.gan.z_dim, generator=noise).to(self.device)
        G, slots = gan.sampler.module.eval(), self.state.classes.slots_of(labels.to(self.device))
        return torch.cat([denormalize(G(*part)) for part in zip(z.split(256), slots.split(256), strict=True)])

    # ------------------------------------------------------------------ saving and restoring

    @contextmanager
    def random(self, *place: int | str) -> Iterator[None]:
        """Seed torch for a place, and leave the caller's random state as it was."""
        with seeded(self.device, self.setup.seed, *place):
            yield

    def bytes_kept(self) -> dict[str, int]:
        """Storage from one increment to the next, by part."""
        kept = self.settings.classifier.moments == "kept"
        moments = sum(nbytes(network.moments) for _, network in self.state.nets.named()) if kept else 0
        return network_bytes(self.state.nets) | self.state.memories.bytes() | {"moments": moments}

    def saved(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that decides how learning goes on: tensors (not copies), and plain values for JSON."""
        return saved(self.state, under_way=self.increment is not None)

    def load(self, tensors: dict[str, Tensor], values: dict[str, Any], increment: Increment | None = None) -> None:
        """Put back what `saved` gave; `increment` is the one under way if that was in the middle of one.

        A state that is not of such a learner is refused before anything is changed.
        """
        restore(self.setup, self.state, tensors, values, under_way=increment is not None)
        self.attach(increment)
