"""Is settings.toml still what the run was started with?

A run goes on only with the settings that it has learned with so far. They may be changed where no number depends on
them: [machine] data_dir, checkpoint_seconds, evaluate_every and tensorboard; devices and num_nodes, on which no more
than rounding depends; and where a data set of one's own lies, as its images are compared with stream.json anyway. A
setting that a later version added, and that has its default, may be absent.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.streams.settings import StreamSettings

FREE = (
    "machine.data_dir",
    "machine.checkpoint_seconds",
    "machine.evaluate_every",
    "machine.tensorboard",
    "machine.devices",
    "machine.num_nodes",
)


def fixed_fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that must stay, by dotted names; None is the same as absent."""
    flat = {name: value for name, value in _flattened(settings, "") if value is not None and name not in FREE}
    dataset = flat.get("stream.dataset")
    if isinstance(dataset, str) and os.path.isabs(dataset):
        flat["stream.dataset"] = "a path"
    return flat


def checksum(settings: Mapping[str, Any]) -> str:
    """SHA-256 of the settings that must stay."""
    return hashlib.sha256(json.dumps(fixed_fields(settings), sort_keys=True, default=str).encode()).hexdigest()


def difference(now: Mapping[str, Any], before: Mapping[str, Any]) -> str | None:
    """The first field that must stay and has not, in words; None where nothing has changed."""
    here, there = fixed_fields(now), fixed_fields(before)
    for name in sorted(here.keys() | there.keys()):
        if name not in here and there[name] == defaults().get(name):
            continue
        if here.get(name) != there.get(name) or type(here.get(name)) is not type(there.get(name)):
            is_now = f"is {here[name]!r}" if name in here else "is missing"
            was = repr(there[name]) if name in there else "not set"
            return f"{name} {is_now}, it was {was}"
    return None


@functools.cache
def defaults() -> dict[str, Any]:
    """What a setting is where settings.toml does not have it."""
    groups = {"stream": StreamSettings(), "machine": MachineSettings()}
    plain = {name: dataclasses.asdict(group) for name, group in groups.items()}
    return fixed_fields({**plain, "learner": LearnerSettings().to_dict()})


def _flattened(value: Any, name: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        start = f"{name}." if name else ""
        return [pair for key, item in value.items() for pair in _flattened(item, f"{start}{key}")]
    return [(name, value)]
