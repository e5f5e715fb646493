"""What there is to say about a model: what it is, what it has learned, what it keeps."""

from __future__ import annotations

from typing import Any

from ordisco.model.about import About
from ordisco.model.arrays import typed
from ordisco.model.directory import ModelDirectory
from ordisco.model.knowledge import Knowledge
from ordisco.model.work import Work
from ordisco.settings.methods import method
from ordisco.words import counted, size

NETWORKS = ("C", "teacher", "G", "D", "G_mean")


def overview(knowledge: Knowledge, directory: ModelDirectory | None) -> dict[str, Any]:
    """Plain values, as `ordisco show --json` prints them."""
    about = knowledge.about
    return {
        "model": None if directory is None else str(directory.path),
        "method": about.method,
        "classes": typed(about.classes, about.labels).tolist(),
        "side": about.side,
        "channels": about.channels,
        "holdout": about.holdout,
        "under_way": None if directory is None else Work(directory.work).source(),
        "kept": kept(knowledge),
        "disk": {} if directory is None else directory.bytes(),
        "deliveries": knowledge.history,
    }


def kept(knowledge: Knowledge) -> dict[str, int]:
    """What survives of the deliveries: images by number, everything in bytes."""
    learner, holdout = knowledge.learner, knowledge.holdout
    if learner is None:
        return {}
    parts, memory = learner.bytes_kept(), learner.state.memories
    networks = sum(parts.get(name, 0) for name in NETWORKS)
    return {
        "labeled_images": _labeled(knowledge),
        "labeled_bytes": parts["labeled"],
        "unlabeled_images": 0 if memory.umb is None else len(memory.umb),
        "unlabeled_bytes": parts["unlabeled"],
        "held_out_images": 0 if holdout is None else len(holdout),
        "held_out_bytes": 0 if holdout is None else holdout.images.nbytes + holdout.labels.nbytes,
        "networks_bytes": networks,
        "other_bytes": sum(parts.values()) - networks - parts["labeled"] - parts["unlabeled"],
    }


def _labeled(knowledge: Knowledge) -> int:
    memory = None if knowledge.learner is None else knowledge.learner.state.memories.data
    return 0 if memory is None else len(memory)


def kept_in_words(found: dict[str, Any]) -> str:
    """What is kept of the images, and what is not."""
    parts, seen = found["kept"], sum(record["images"] for record in found["deliveries"])
    if not parts:
        return "nothing"
    text = f"{counted(parts['labeled_images'], 'labelled image')} ({size(parts['labeled_bytes'])})"
    if parts["held_out_images"]:
        text += f", {parts['held_out_images']:,} set aside ({size(parts['held_out_bytes'])})"
    if parts["unlabeled_images"]:
        text += f", {parts['unlabeled_images']:,} unlabelled ({size(parts['unlabeled_bytes'])})"
    rest = seen - parts["labeled_images"] - parts["held_out_images"] - parts["unlabeled_images"]
    return f"{text}; of the other {max(0, rest):,} of {seen:,} images nothing but what the networks learned"


def facts(found: dict[str, Any], about: About) -> dict[str, str]:
    """The facts of a model, in words."""
    names = [str(name) for name in found["classes"]]
    shape = "not known yet"
    if about.side is not None:
        shape = f"{about.side}×{about.side} pixels, {'grey' if about.channels == 1 else 'colour'}"
    images = sum(record["images"] for record in found["deliveries"])
    told = {
        "classes": f"{len(names)}: {', '.join(names)}" if names else "none yet",
        "images": shape,
        "learned": f"{counted(len(found['deliveries']), 'delivery')}, {counted(images, 'image')}",
        "kept": kept_in_words(found),
        "networks": size(found["kept"].get("networks_bytes", 0) + found["kept"].get("other_bytes", 0)),
        "on disk": f"{size(sum(found['disk'].values()))} ({', '.join(found['disk']) or 'no version yet'})",
        "method": method(about.method).title,
    }
    if found["under_way"]:
        told["under way"] = f"{found['under_way']}: `ordisco learn` again goes on"
    return told
