"""A learner's state as tensors and plain values, and back."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.learner.expected import check_forms, check_values
from ordisco.learner.kept import packed, unpacked
from ordisco.learner.seeding import seeded
from ordisco.learner.state import Classes, Setup, State
from ordisco.nets.gan import AnyGenerator, make_generator
from ordisco.tensorfile import forms_of


def saved(state: State, under_way: bool) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (copies only where they are kept in fewer bits), and plain values for JSON."""
    tensors = state.nets.state() | state.memories.state() | {"trace": state.trace}
    tensors |= {f"predicted.{use}": sums for use, sums in state.predicted.items()}
    return tensors if under_way else packed(tensors, state.nets.gan), {
        "classes": state.classes.labels,
        "classes_before": state.classes.before,
        "capacity": state.nets.capacity,
        "increments": state.increments,
        "step_in_increment": state.step,
        "total_steps": state.total_steps,
    }


def checksum(tensors: dict[str, Tensor]) -> int:
    """63 bits that differ where a tensor does."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return int.from_bytes(digest.digest()[:8], "little") >> 1


def restore(setup: Setup, state: State, tensors: dict[str, Tensor], values: dict[str, Any], under_way: bool) -> None:
    """Put back what `saved` gave; one that is not of such a learner is refused before anything is changed.

    `under_way`: it was taken in the middle of an increment, so the optimisers go on.
    """
    check_forms(setup.method, setup.settings, setup.image_shape, values, forms_of(tensors), nets=state.nets)
    check_values(setup.method, setup.settings, setup.image_shape, values, tensors)
    tensors = unpacked(tensors, state.nets.gan, values["increments"])
    if values["capacity"] < state.nets.capacity:
        raise OrdiscoError(f"the state has room for {values['capacity']} classes, not for {state.nets.capacity}")

    def build(capacity: int) -> AnyGenerator:
        return make_generator(setup.settings.gan, setup.image_shape, capacity).to(setup.device)

    with seeded(setup.device, setup.seed, "load"):
        if values["capacity"] > state.nets.capacity:
            state.nets.grow(values["capacity"])
        state.memories.load(tensors, state.nets, build)
    state.classes = Classes(list(values["classes"]), values["classes_before"])
    state.increments, state.step = values["increments"], values["step_in_increment"]
    state.total_steps = values["total_steps"]
    if under_way or (setup.settings.classifier.moments == "kept" and state.increments):
        state.nets.start_optimizers()
    state.nets.load(tensors)
    state.trace.copy_(tensors["trace"])
    state.predicted = {
        key.removeprefix("predicted."): sums.to(setup.device)
        for key, sums in tensors.items()
        if key.startswith("predicted.")
    }
