"""What a learner's saved state must be: the names, shapes and types of its tensors, and numbers within range.

All follows from the settings, the method and a few plain numbers of the state. It is compared before anything is built
or put back, so that a state that does not fit is one line that names what is wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError, shown
from ordisco.learner.buffers import INCREMENT
from ordisco.learner.kept import OF_THE_GAN, bits
from ordisco.learner.memories import distils, umb_images
from ordisco.learner.state import MEASURES, TERMS, TRACE
from ordisco.maths.penalties import make_penalty
from ordisco.maths.rounding import blocks_of
from ordisco.nets.flat import Flat
from ordisco.nets.gan import make_generator
from ordisco.nets.networks import Gan, Networks, Shape
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method
from ordisco.tensorfile import Form, forms_of

SHORT = {16: torch.float16, 8: torch.int8}  # what weights of so many bits are
MANY = 2**40  # where a size is bounded by nothing but the file
META = torch.device("meta")  # shapes without memory
NUMBERS = {  # of a learner's plain state, and how large they can be
    "classes_before": 10**6,
    "capacity": 10**6,
    "increments": 10**5,
    "step_in_increment": 2**53,
    "total_steps": 2**53,
}


@dataclass(frozen=True)
class Wanted:
    """The form of a tensor: a size is a number or a range; one that is not needed may be absent."""

    shape: tuple[int | range, ...]
    dtype: torch.dtype = torch.float32
    needed: bool = True
    shortened: torch.dtype | None = None  # of fewer bits, which it may have as well

    def fits(self, form: Form) -> bool:
        """Is it of this form?"""
        return (
            form.dtype in (self.dtype, self.shortened)
            and len(form.shape) == len(self.shape)
            and all(
                size in want if isinstance(want, range) else size == want
                for size, want in zip(form.shape, self.shape, strict=True)
            )
        )

    def __str__(self) -> str:
        sizes = (f"{want.start}…{want.stop - 1}" if isinstance(want, range) else str(want) for want in self.shape)
        return f"{str(self.dtype).removeprefix('torch.')} {'×'.join(sizes) or 'number'}"


# ---------------------------------------------------------------------- plain numbers


def check_whole(name: str, value: Any, low: int, high: int) -> int:
    """Refuse what is not a whole number from `low` to `high`; True and False are none."""
    if type(value) is not int or not low <= value <= high:
        raise OrdiscoError(f"{name} is {shown(value)}, not a whole number from {low} to {high}")
    return value


def check_numbers(state: Any) -> dict[str, Any]:
    """The plain values of a learner; those that cannot be are refused."""
    if not isinstance(state, dict):
        raise OrdiscoError("the learner's state is missing")
    for name in ("classes", *NUMBERS):
        if name not in state:
            raise OrdiscoError(f"{name} is missing")
    for name in state:
        if name not in ("classes", *NUMBERS):
            raise OrdiscoError(f"{shown(name)} is not part of a learner's state")
    for name, high in NUMBERS.items():
        check_whole(name, state[name], 1 if name == "capacity" else 0, high)
    classes = state["classes"]
    if not isinstance(classes, list):
        raise OrdiscoError(f"classes is {shown(classes)}, not a list")
    for label in classes:
        check_whole("a class", label, 0, 2**63 - 1)
    if len(set(classes)) < len(classes):
        raise OrdiscoError("classes has a class twice")
    check_whole("the number of classes", len(classes), 0, state["capacity"])
    check_whole("classes_before", state["classes_before"], 0, len(classes))
    check_whole("step_in_increment", state["step_in_increment"], 0, state["total_steps"])
    return state


MOMENTS = ("exp_avg", "exp_avg_sq")  # of Adam

# ---------------------------------------------------------------------- forms


def check_forms(
    method: Method,
    settings: LearnerSettings,
    image_shape: Shape,
    state: dict[str, Any],
    forms: Mapping[str, Form],
    most_images: int = MANY,
    nets: Networks | None = None,
) -> None:
    """Refuse a state whose numbers or tensors' names, shapes or types are not those of such a learner.

    `nets` are such networks, if there are any: to make them anew, without memory, takes a quarter of a second.
    """
    check_numbers(state)
    if nets is None or nets.capacity != state["capacity"]:
        with META:
            nets = Networks(settings, image_shape, state["capacity"], method.head, method.gan, META)
    compare(expected(method, settings, image_shape, state, nets, most_images), forms, method)


def compare(wanted: Mapping[str, Wanted], forms: Mapping[str, Form], method: Method) -> None:
    """Refuse the first tensor that is missing, of another form, or not wanted."""
    for name, want in wanted.items():
        if name not in forms:
            if want.needed:
                raise OrdiscoError(f"{name} is missing")
        elif not want.fits(forms[name]):
            raise OrdiscoError(f"{name} is {forms[name]}, not {want}")
    for name in forms:
        if name not in wanted:
            raise OrdiscoError(f"{shown(name)} is not part of the state of {method.title} with these settings")
    for name in OF_THE_GAN:
        codes, scales = f"{name}.theta", f"{name}.scales"
        if codes in forms and (forms[codes].dtype == torch.int8) != (scales in forms):
            raise OrdiscoError(
                f"{scales} is {'there' if scales in forms else 'missing'}, but {codes} is {forms[codes]}"
            )
    for name in ("G", "D"):
        parts = [f"{name}.adam.{part}" for part in ("step", *MOMENTS)]
        missing = [part for part in parts if part not in forms]
        if 0 < len(missing) < len(parts):
            raise OrdiscoError(f"{missing[0]} is missing")
    for part in ("data.labels", "data.increments", "umb.increments"):
        images, beside = f"memories.{part.split('.')[0]}.images", f"memories.{part}"
        if images in forms and beside in forms and forms[images].shape[0] != forms[beside].shape[0]:
            raise OrdiscoError(f"{beside} are not as many as {images}")


def expected(
    method: Method,
    settings: LearnerSettings,
    image_shape: Shape,
    state: dict[str, Any],
    nets: Networks,
    most_images: int = MANY,
) -> dict[str, Wanted]:
    """The tensors of a learner's state, given its plain numbers and networks like its own."""
    wanted: dict[str, Wanted] = {}
    for name, network in nets.named():
        wanted |= {key: Wanted(form.shape, form.dtype) for key, form in forms_of(network.flat.state(name)).items()}
    if nets.gan is not None and not state["step_in_increment"]:
        wanted |= as_kept(wanted, nets.gan)
    if state["step_in_increment"] or (settings.classifier.moments == "kept" and state["increments"]):
        forgotten = nets.gan is not None and nets.gan.forgets_D and not state["step_in_increment"]
        for name in (("C", "G") if forgotten else ("C", "G", "D")) if method.gan else ("C",):
            begun = name == "C" or settings.gan.gan_start == 0  # else D and G may not have made a step
            wanted[f"{name}.adam.step"] = Wanted((), needed=begun)
            for moment in MOMENTS:
                wanted[f"{name}.adam.{moment}"] = Wanted(wanted[f"{name}.theta"].shape, needed=begun)
    align = settings.unlabeled.align
    uses = [*(["pseudo_labels"] if method.gan and align != "none" else []), *(["targets"] if align == "all" else [])]
    rows = state["increments"] + 1 if method.memory == "all" or method.has_umb else 1
    known = state["step_in_increment"] > 0 or state["increments"] > 0
    sums = Wanted((range(1, rows + 1), len(state["classes"]) + 1), needed=known)
    wanted |= {f"predicted.{use}": sums for use in uses}
    wanted["trace"] = Wanted((TRACE, len(TERMS) + len(MEASURES)))
    memories = expected_memories(method, settings, image_shape, state, nets, most_images)
    return wanted | {f"memories.{name}": want for name, want in memories.items()}


def as_kept(wanted: Mapping[str, Wanted], gan: Gan) -> dict[str, Wanted]:
    """The forms of G and D between two increments, see `learner/kept.py`."""
    found, short = {}, SHORT.get(bits(gan))
    for name, network in (("G", gan.G), ("G_mean", gan.G_mean), ("D", gan.D)):
        if network is None:
            continue
        needed = not ((name == "G" and gan.restarts) or (name == "D" and gan.forgets_D))
        theta, buffers = wanted[f"{name}.theta"], wanted[f"{name}.buffers"]
        found[f"{name}.theta"] = dataclasses.replace(theta, needed=needed, shortened=short)
        found[f"{name}.buffers"] = dataclasses.replace(buffers, needed=needed)
        if short == torch.int8:
            found[f"{name}.scales"] = Wanted((blocks_of(len(network.flat.theta)),), torch.bfloat16, needed=False)
    return found


def expected_memories(
    method: Method,
    settings: LearnerSettings,
    image_shape: Shape,
    state: dict[str, Any],
    nets: Networks,
    most_images: int,
) -> dict[str, Wanted]:
    """The tensors of what is kept of past increments; values among them decide on some, see `check_values`."""
    wanted: dict[str, Wanted] = {}
    increments, under_way, capacity = state["increments"], state["step_in_increment"] > 0, state["capacity"]
    if method.memory != "none":
        wanted["data.images"] = Wanted((range(most_images + 1), *image_shape), torch.uint8)
        wanted["data.labels"] = Wanted((range(most_images + 1),), torch.int64)
        wanted["data.increments"] = Wanted((range(most_images + 1),), INCREMENT)
    umb = umb_images(method, settings, image_shape, capacity)
    if umb:
        wanted["umb.images"] = Wanted((range(umb + 1), *image_shape), torch.uint8)
        wanted["umb.increments"] = Wanted((range(umb + 1),), INCREMENT)
        wanted["umb.seen"] = Wanted((), torch.int64)
    if umb or method.memory == "all":
        wanted["arrived"] = Wanted((increments, range(len(state["classes"]) + 1)), torch.int64)
    held = {"penalty_on_C": nets.C.flat if method.penalty != "none" else None}
    held["penalty_on_D"] = nets.gan.D.flat if method.stabilize and nets.gan is not None else None
    for name, flat in held.items():
        if flat is not None:
            half = name == "penalty_on_D" and settings.gan.kept_precision != "32"
            shape = tuple(flat.theta.shape)
            if half:
                wanted[f"{name}.scale"] = Wanted(())
            wanted[f"{name}.count"] = Wanted((), torch.int64)
            wanted[f"{name}.anchor"] = Wanted(shape, needed=False)
            wanted[f"{name}.importance"] = Wanted(shape, torch.float16 if half else torch.float32, needed=False)
    penalty = make_penalty(method.penalty, method.penalty_on)
    for name in penalty.underway if penalty is not None else ():
        wanted[f"penalty_on_C.{name}"] = Wanted(tuple(nets.C.flat.theta.shape), needed=under_way)
    if method.offline and nets.gan is not None:
        saved = increments if method.replay == "offline-all" else min(1, increments)
        wanted["generators.saved.classes"] = Wanted((2, saved), torch.int64)
        flat = nets.gan.sampler.flat
        for part, vector in (("theta", flat.theta), ("buffers", flat.buffers)):
            wanted |= {f"generators.saved.{i}.{part}": Wanted((range(len(vector) + 1),)) for i in range(saved)}
    if method.head == "cosine" and increments:
        features = nets.C.module.get_submodule("features")
        wanted["old_features.theta"] = Wanted((sum(p.numel() for p in features.parameters()),))
        wanted["old_features.buffers"] = Wanted((sum(b.numel() for b in features.buffers() if b.is_floating_point()),))
    if distils(method, settings) and increments:
        for part, vector in (("theta", nets.teacher.flat.theta), ("buffers", nets.teacher.flat.buffers)):
            wanted[f"old_teacher.{part}"] = Wanted(tuple(vector.shape), needed=under_way)
    if method.replay == "last" and increments and nets.gan is not None:
        flat = nets.gan.sampler.flat
        for part, vector in (("theta", flat.theta), ("buffers", flat.buffers)):
            wanted[f"last_G.{part}"] = Wanted(tuple(vector.shape), needed=under_way)
    return wanted


# ---------------------------------------------------------------------- values


def check_values(
    method: Method,
    settings: LearnerSettings,
    image_shape: Shape,
    state: dict[str, Any],
    tensors: Mapping[str, Tensor],
) -> None:
    """Refuse values that cannot be, in tensors whose forms are right."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise OrdiscoError(f"{name} is not finite")
        if name.endswith((".adam.exp_avg_sq", ".adam.step", ".scale", ".scales")) and bool((tensor < 0).any()):
            raise OrdiscoError(f"{name} is negative")
    if "memories.data.labels" in tensors:
        labels = tensors["memories.data.labels"].cpu()
        allowed = [*state["classes"], *([-1] if method.memory == "all" else [])]
        strange = labels[~torch.isin(labels, torch.tensor(allowed, dtype=torch.int64))]
        if len(strange):
            raise OrdiscoError(f"memories.data.labels has {int(strange[0])}, which is no class seen so far")
    for name in ("memories.data.increments", "memories.umb.increments"):
        if name in tensors and len(tensors[name]):
            for end in (tensors[name].min(), tensors[name].max()):
                check_whole(f"an entry of {name}", int(end), 0, state["increments"] - 1)
    if "memories.arrived" in tensors and bool((tensors["memories.arrived"] < 0).any()):
        raise OrdiscoError("memories.arrived is negative")
    if "memories.umb.seen" in tensors:
        held = len(tensors["memories.umb.images"])
        check_whole("memories.umb.seen", int(tensors["memories.umb.seen"]), held, 2**63 - 1)
    for part in ("memories.penalty_on_C", "memories.penalty_on_D"):
        if f"{part}.count" in tensors:
            _check_penalty(part, state, tensors)
    if "memories.generators.saved.classes" in tensors:
        _check_saved(settings, image_shape, state, tensors)


def _check_penalty(part: str, state: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Importances are there once they were measured; D's θ* while an increment is under way, else it is D."""
    increments = state["increments"]
    count = check_whole(f"{part}.count", int(tensors[f"{part}.count"]), 0, increments)
    needed = {"anchor": count, "importance": count}
    if part.endswith("D"):
        needed = {"anchor": increments, "importance": count} if state["step_in_increment"] else {"importance": count}
    for name, times in needed.items():
        if (f"{part}.{name}" in tensors) != (times > 0):
            raise OrdiscoError(f"{part}.{name} is {'missing' if times else 'there'}, but {part}.count is {count}")


def _check_saved(
    settings: LearnerSettings, image_shape: Shape, state: dict[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Each saved generator has the size that the number of its classes calls for."""
    sizes: dict[int, Flat] = {}
    for i, (count, capacity) in enumerate(tensors["memories.generators.saved.classes"].t().tolist()):
        check_whole("memories.generators.saved.classes", capacity, 1, state["capacity"])
        check_whole("memories.generators.saved.classes", count, 1, min(capacity, len(state["classes"])))
        if capacity not in sizes:
            with META:
                sizes[capacity] = Flat(make_generator(settings.gan, image_shape, capacity))
        for part in ("theta", "buffers"):
            name, length = f"memories.generators.saved.{i}.{part}", len(getattr(sizes[capacity], part))
            if len(tensors[name]) != length:
                raise OrdiscoError(f"{name} has {len(tensors[name])} numbers, not {length}")
