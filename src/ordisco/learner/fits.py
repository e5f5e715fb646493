"""What cannot be is refused before it is built: settings that contradict a method, networks beyond the memory."""

from __future__ import annotations

import torch

from ordisco.errors import UsageError
from ordisco.machine.cores import memory
from ordisco.machine.fabric import Fabric
from ordisco.nets.count import memory_of_a_step
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import Method
from ordisco.words import size

PAPER = LearnerSettings()
CLASSES = 1_000  # so many are not worth counting


def check_parts(method: Method, settings: LearnerSettings) -> None:
    """Refuse settings that contradict the method."""
    if method.stabilize and settings.gan.d_restart == "fresh":
        raise UsageError(
            f"d_restart = 'fresh' is not allowed with {method.name}: Reg holds D to what it was; "
            "take a method without Reg, such as ordisco-last"
        )


def check_memory(
    settings: LearnerSettings, image_shape: tuple[int, int, int], num_classes: int, gan: bool, fabric: Fabric
) -> None:
    """Refuse what needs more than there is; what is no larger than the paper's own is not counted, which takes time."""
    if num_classes <= CLASSES and not larger_than_the_papers(settings):
        return
    with fabric.autocast():
        activation = 2 if torch.is_autocast_enabled(fabric.device.type) else 4  # bytes
    needed = memory_of_a_step(settings, image_shape, num_classes, gan, activation)
    there = memory_of(fabric.device)
    if there is not None and needed > there:
        raise UsageError(
            f"these networks and mini-batches need about {size(needed)} of memory, this machine has {size(there)}: "
            "lower the widths or the batch sizes"
        )


def larger_than_the_papers(settings: LearnerSettings) -> bool:
    """Is anything that memory depends on larger than in the paper?"""
    names = {"step": ("batch_labeled", "batch_unlabeled", "batch_generated"), "classifier": ("width",)}
    names["gan"] = ("g_width", "d_width", "z_dim", "d_tail")
    return any(
        getattr(getattr(settings, group), name) > getattr(getattr(PAPER, group), name)
        for group, fields in names.items()
        for name in fields
    )


def memory_of(device: torch.device) -> int | None:
    """Bytes of the device that the networks live on."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return memory()
