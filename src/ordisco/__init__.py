"""ORDisCo and its baselines: semi-supervised continual learning with online generative replay.

The names below are imported when they are first used, so that `ordisco --help` need not load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordisco.data.dataset import Dataset
    from ordisco.data.load import load
    from ordisco.errors import OrdiscoError
    from ordisco.evaluation import evaluate
    from ordisco.launch import load_learner
    from ordisco.learner import Learner
    from ordisco.methods import METHODS, method
    from ordisco.presets import preset
    from ordisco.scenarios import build_stream
    from ordisco.settings import LearnerSettings
    from ordisco.stream import Increment, Stream, new_class, new_instance

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "data.dataset",
    "Increment": "stream",
    "Learner": "learner",
    "LearnerSettings": "settings",
    "METHODS": "methods",
    "OrdiscoError": "errors",
    "Stream": "stream",
    "build_stream": "scenarios",
    "evaluate": "evaluation",
    "load": "data.load",
    "load_learner": "launch",
    "method": "methods",
    "new_class": "stream",
    "new_instance": "stream",
    "preset": "presets",
}

__all__ = [
    "METHODS",
    "Dataset",
    "Increment",
    "Learner",
    "LearnerSettings",
    "OrdiscoError",
    "Stream",
    "build_stream",
    "evaluate",
    "load",
    "load_learner",
    "method",
    "new_class",
    "new_instance",
    "preset",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ordisco' has no attribute {name!r}")
    return getattr(importlib.import_module(f"ordisco.{_HOMES[name]}"), name)
