"""What a learner keeps of past increments besides its networks: memories, importances, old models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from ordisco.learner.buffers import DataMemory, LabelMemory, Reservoir
from ordisco.learner.generators import SavedGenerators
from ordisco.maths.penalties import Penalty, make_penalty
from ordisco.maths.rounding import bytes_of
from ordisco.maths.stabilize import Stabilizer
from ordisco.nets.flat import Flat, frozen
from ordisco.nets.gan import AnyGenerator, make_generator
from ordisco.nets.network import Layout, Network
from ordisco.nets.networks import Networks, Shape
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method


def umb_images(method: Method, settings: LearnerSettings, image_shape: Shape, num_classes: int) -> int:
    """How many images the UMB holds: a given number, or as many bytes as G's weights take."""
    if not method.has_umb:
        return 0
    if settings.memory.umb_size is not None:
        return settings.memory.umb_size
    if method.umb_images:
        return method.umb_images
    return images_of_G(settings, image_shape, num_classes, method.umb_of_G)


def images_of_G(settings: LearnerSettings, image_shape: Shape, num_classes: int, times: float = 1) -> int:
    """How many images fit into the bytes of G's weights as they are kept, or a multiple of them."""
    with torch.device("meta"):
        G = make_generator(settings.gan, image_shape, num_classes)
    size = bytes_of(sum(p.numel() for p in G.parameters()), int(settings.gan.kept_precision))
    return int(times * size) // math.prod(image_shape)


def distils(method: Method, settings: LearnerSettings) -> bool:
    """Does the C′ of the last increment teach C on replayed images?"""
    return method.replay != "none" and settings.replay.replay_targets != "label"


class Memories:
    """The parts that a method's row asks for; absent ones are None."""

    def __init__(
        self,
        method: Method,
        settings: LearnerSettings,
        image_shape: Shape,
        num_classes: int,
        device: torch.device,
    ) -> None:
        self.device = device
        self.data: DataMemory | None = None  # the SMB; all images in joint training
        if method.memory == "all":
            self.data = DataMemory(image_shape, device)
        elif method.memory in ("labels", "herding"):
            self.data = LabelMemory(image_shape, device)
        umb = umb_images(method, settings, image_shape, num_classes)
        self.umb = Reservoir(umb, image_shape, device) if umb else None
        # how many labels of each class came with each increment, where unlabelled images of it may be kept
        keeps_unlabeled = method.memory == "all" or self.umb is not None
        self.arrived = torch.zeros(0, 0, dtype=torch.int64, device=device) if keeps_unlabeled else None
        self.penalty_on_C: Penalty | None = make_penalty(method.penalty, method.penalty_on, settings.memory.c_penalty)
        self.penalty_on_D: Stabilizer | None = None
        if method.stabilize:
            g = settings.gan
            self.penalty_on_D = Stabilizer(g.d_penalty, g.d_importance == "normalised", g.kept_precision != "32")
        self.generators = SavedGenerators(method.replay == "offline-all") if method.offline else None
        self.old_features: Flat | None = None  # C's features after the last increment, for the Unified Classifier
        self.old_teacher: Flat | None = None  # C′ after the last increment, while one that distils it is under way
        self.last_G: Flat | None = None  # and G, while one that replays its images is

    def note_labels(self, counts: Tensor) -> None:
        """Remember how many labels of each class came with an increment."""
        if self.arrived is not None:
            new = len(counts) - self.arrived.shape[1]
            self.arrived = torch.cat([torch.nn.functional.pad(self.arrived, (0, new)), counts[None]])

    def remember_features(self, C: Network) -> None:
        """Freeze a copy of C's features for the less-forget constraint."""
        self.old_features = frozen(C.module.get_submodule("features"))

    def grow(self, layouts: dict[str, Layout]) -> None:
        """Lay importances and anchors anew after the networks grew."""
        for penalty, name in ((self.penalty_on_C, "C"), (self.penalty_on_D, "D")):
            if penalty is not None:
                penalty.grow(layouts[name].relay)

    def old_models(self) -> dict[str, Flat]:
        """Networks as they were, those that there are."""
        models = {"old_features": self.old_features, "old_teacher": self.old_teacher, "last_G": self.last_G}
        return {name: model for name, model in models.items() if model is not None}

    def bytes(self) -> dict[str, int]:
        """Storage of each part."""
        kept = {
            "labeled": self.data.bytes if self.data is not None else 0,
            "unlabeled": self.umb.bytes if self.umb is not None else 0,
            "arrived": self.arrived.nbytes if self.arrived is not None else 0,
            "importance": 0 if self.penalty_on_D is None else self.penalty_on_D.kept_bytes,
            "generators": self.generators.bytes if self.generators is not None else 0,
            "penalty": nbytes(self.penalty_on_C.state()) if self.penalty_on_C is not None else 0,
            "old_features": 0,
        }
        return kept | {name: old.theta.nbytes + old.buffers.nbytes for name, old in self.old_models().items()}

    def state(self) -> dict[str, Tensor]:
        """All tensors, named by part."""
        parts = {
            "data": self.data,
            "umb": self.umb,
            "penalty_on_C": self.penalty_on_C,
            "penalty_on_D": self.penalty_on_D,
            "generators": self.generators,
        }
        tensors = {
            f"memories.{name}.{key}": value
            for name, part in parts.items()
            if part is not None
            for key, value in part.state().items()
        }
        if self.arrived is not None:
            tensors["memories.arrived"] = self.arrived
        for name, old in self.old_models().items():
            tensors |= old.state(f"memories.{name}")
        return tensors

    def load(self, tensors: dict[str, Tensor], nets: Networks, build_generator: Callable[[int], AnyGenerator]) -> None:
        """Put a checkpoint back; `nets` give the shapes of old models, `build_generator` of saved generators."""

        def part(name: str) -> dict[str, Tensor]:
            prefix = f"memories.{name}."
            return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}

        def old(name: str, module: nn.Module) -> Flat | None:
            if f"memories.{name}.theta" not in tensors:
                return None
            flat = frozen(module)
            flat.load(f"memories.{name}", tensors)
            return flat

        if self.data is not None:
            self.data.load(part("data"))
        if self.umb is not None:
            self.umb.load(part("umb"))
        if self.arrived is not None:
            self.arrived = tensors["memories.arrived"].to(self.device)
        if self.penalty_on_C is not None:
            self.penalty_on_C.load(part("penalty_on_C"), self.device)
        if self.penalty_on_D is not None:
            self.penalty_on_D.load(part("penalty_on_D"), self.device)
        if self.generators is not None:
            self.generators.load(part("generators"), build_generator)
        self.old_features = old("old_features", nets.C.module.get_submodule("features"))
        self.old_teacher = old("old_teacher", nets.teacher.module)
        if nets.gan is not None:
            self.last_G = old("last_G", nets.gan.sampler.module)


def nbytes(tensors: Mapping[str, Tensor]) -> int:
    """Storage of tensors."""
    return sum(tensor.nbytes for tensor in tensors.values())
