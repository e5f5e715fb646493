"""What a learner keeps of past increments besides its networks: memories, importances, old models."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from ordisco.memory import DataMemory, LabelMemory, Reservoir, images_for_bytes
from ordisco.methods import Method
from ordisco.nets import AnyGenerator, Flat, make_generator
from ordisco.networks import Layout, Network
from ordisco.penalties import EWC, MAS, SI, make_penalty
from ordisco.replay import SavedGenerators
from ordisco.settings import LearnerSettings

Shape = tuple[int, int, int]


def umb_images(method: Method, settings: LearnerSettings, image_shape: Shape, num_classes: int) -> int:
    """How many images the UMB holds: a given number, or as many bytes as G's weights take."""
    if method.umb == 0:
        return 0
    if settings.memory.umb_size is not None:
        return settings.memory.umb_size
    if method.umb >= 100:
        return int(method.umb)
    with torch.device("meta"):
        G = make_generator(settings.gan, image_shape, num_classes)
    weights = sum(p.numel() * p.element_size() for p in G.parameters())
    return images_for_bytes(int(method.umb * weights), image_shape)


class Kept:
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
        self.data: DataMemory | None = None
        if method.memory == "all":
            self.data = DataMemory(image_shape, device)
        elif method.memory in ("labels", "herding"):
            self.data = LabelMemory(image_shape, device)
        umb = umb_images(method, settings, image_shape, num_classes)
        self.umb = Reservoir(umb, image_shape, device) if umb else None
        self.penalty: EWC | MAS | SI | None = make_penalty(method.penalty, settings.memory.c_penalty)
        self.saved = SavedGenerators(method.replay == "offline-all") if method.replay.startswith("offline") else None
        self.xi: Tensor | None = None  # ξ_1:b of Eq. 9
        self.anchor: Tensor | None = None  # θ_D* of Eq. 8
        self.measured = 0  # b of Eq. 9
        self.old_features: Flat | None = None  # C's features after the last increment, for the Unified Classifier

    def remember_features(self, C: Network) -> None:
        """Freeze a copy of C's features for the less-forget constraint."""
        self.old_features = Flat(copy.deepcopy(C.module.get_submodule("features")).eval().requires_grad_(False))

    def grow(self, C: Layout, D: Layout | None) -> None:
        """Lay importances and anchors anew after the networks grew: new rows have no importance."""
        if self.xi is not None and self.anchor is not None and D is not None:
            self.xi, self.anchor = D.relay(self.xi), D.relay(self.anchor)
        if self.penalty is not None:
            self.penalty.load({key: C.relay(value) for key, value in self.penalty.state().items()})

    def bytes(self) -> dict[str, int]:
        """Storage of each part."""
        sizes = {
            "labeled": self.data.bytes if self.data is not None else 0,
            "unlabeled": self.umb.bytes if self.umb is not None else 0,
            "importance": sum(t.nbytes for t in (self.xi, self.anchor) if t is not None),
            "generators": self.saved.bytes if self.saved is not None else 0,
            "penalty": sum(t.nbytes for t in self.penalty.state().values()) if self.penalty is not None else 0,
            "old_features": 0,
        }
        if self.old_features is not None:
            sizes["old_features"] = self.old_features.theta.nbytes + self.old_features.buffers.nbytes
        return sizes

    def state(self) -> dict[str, Tensor]:
        """All tensors, named by part."""
        tensors: dict[str, Tensor] = {}
        for name, part in (
            ("data", self.data),
            ("umb", self.umb),
            ("penalty", self.penalty),
            ("replay", self.saved),
        ):
            if part is not None:
                tensors |= {f"kept.{name}.{key}": value for key, value in part.state().items()}
        for name, tensor in (("xi", self.xi), ("anchor", self.anchor)):
            if tensor is not None:
                tensors[f"kept.{name}"] = tensor
        if self.old_features is not None:
            tensors |= self.old_features.state("kept.old")
        return tensors

    def load(self, tensors: dict[str, Tensor], C: Network, build_generator: Callable[[int], AnyGenerator]) -> None:
        """Put a checkpoint back; `C` gives the shape of the old features, `build_generator` of saved generators."""

        def part(name: str) -> dict[str, Tensor]:
            prefix = f"kept.{name}."
            return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}

        if self.data is not None:
            self.data.load(part("data"))
        if self.umb is not None:
            self.umb.load(part("umb"))
        if self.penalty is not None:
            self.penalty.load({key: value.to(self.device) for key, value in part("penalty").items()})
        if self.saved is not None:
            self.saved.load(part("replay"), build_generator)
        self.xi, self.anchor = (
            tensors[f"kept.{name}"].to(self.device) if f"kept.{name}" in tensors else None for name in ("xi", "anchor")
        )
        self.old_features = None
        if "kept.old.theta" in tensors:
            self.remember_features(C)
            assert self.old_features is not None
            self.old_features.load("kept.old", tensors)
