"""What the directory of a model knows, and the step back to what it knew before."""

from __future__ import annotations

import dataclasses

from ordisco import files
from ordisco.errors import OrdiscoError
from ordisco.machine.fabric import Fabric
from ordisco.model.directory import ModelDirectory
from ordisco.model.knowledge import Knowledge, from_version
from ordisco.model.work import Work


def stored(directory: ModelDirectory, fabric: Fabric) -> Knowledge:
    """What the newest whole version knows; nothing, where there is none yet."""
    return directory.read(lambda version: from_version(version, fabric)) or Knowledge(directory.about())


def settled(directory: ModelDirectory, knowledge: Knowledge) -> Work:
    """The folder of a delivery under way; one that a crash left after its version was written is cleared."""
    work = Work(directory.work)
    plan = work.plan()
    if plan is not None and plan.get("record", {}).get("delivery") != knowledge.deliveries + 1:
        work.clear()
        directory.follow(knowledge.about, knowledge.history)
    return work


def undone(directory: ModelDirectory, fabric: Fabric) -> tuple[Knowledge, str]:
    """Drop the delivery under way, or else the last version; what is known now, and in words what was done."""
    knowledge = stored(directory, fabric)
    work = settled(directory, knowledge)
    if files.kind_of(work.path) is not None:
        source = work.source()
        work.clear()
        return knowledge, f"dropped the delivery under way{f' ({source})' if source else ''}; what was learned stays"
    last = knowledge.deliveries
    if not last:
        raise OrdiscoError(f"{directory.path} has learned nothing: nothing to undo")
    if last > 1 and last - 1 not in directory.numbers():
        raise OrdiscoError(f"{directory.path}: the state before delivery {last} is no longer kept: nothing to undo")
    source = knowledge.history[-1]["source"]
    directory.forget_after(last - 1)
    knowledge = stored(directory, fabric)
    if not knowledge.deliveries:  # as after the first delivery, but for its classes
        knowledge = Knowledge(dataclasses.replace(knowledge.about, classes=(), labels="text"))
    directory.follow(knowledge.about, knowledge.history)
    return knowledge, f"delivery {last} ({source}) is undone; the model is as after delivery {last - 1}"
