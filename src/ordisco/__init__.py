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
    from ordisco.evaluation.accuracy import evaluate
    from ordisco.learner.learner import Learner
    from ordisco.model.model import Model
    from ordisco.runs.launch import load_learner
    from ordisco.runs.presets import preset
    from ordisco.settings.learner import LearnerSettings
    from ordisco.settings.methods import METHODS, method
    from ordisco.streams.arrange import new_class, new_instance
    from ordisco.streams.build import build_stream
    from ordisco.streams.stream import Increment, Stream

__version__ = "0.2.0.dev0"

_HOMES = {
    "Dataset": "data.dataset",
    "Increment": "streams.stream",
    "Learner": "learner.learner",
    "LearnerSettings": "settings.learner",
    "METHODS": "settings.methods",
    "Model": "model.model",
    "OrdiscoError": "errors",
    "Stream": "streams.stream",
    "build_stream": "streams.build",
    "evaluate": "evaluation.accuracy",
    "load": "data.load",
    "load_learner": "runs.launch",
    "method": "settings.methods",
    "new_class": "streams.arrange",
    "new_instance": "streams.arrange",
    "preset": "runs.presets",
}

__all__ = [
    "METHODS",
    "Dataset",
    "Increment",
    "Learner",
    "LearnerSettings",
    "Model",
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
