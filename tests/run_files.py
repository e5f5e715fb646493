"""The files of a run that nobody has made: enough for pages to read."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import tomli_w

from ordisco.evaluation.record import IncrementRecord
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import without_none


def write_run(
    path: Path,
    method: str = "smb",
    seed: int = 0,
    done: int = 3,
    finished: bool = True,
    names: str = "0123",
    **changes: Any,
) -> Path:
    """A run directory with `done` increments; `names` are those of its classes."""
    config = RunConfig.resolve("digits-1", method, seed=seed, **{"increments": 3, **changes})
    path.mkdir(parents=True)
    (path / "settings.toml").write_text(tomli_w.dumps(without_none(config.to_dict())), encoding="utf-8")
    lines = []
    for increment in range(1, done + 1):
        accuracy = 0.3 + 0.1 * increment + 0.02 * seed
        size = len(names)
        record = {
            "increment": increment,
            "classes_seen": size,
            "images": 100,
            "labeled": 10,
            "accuracy": accuracy,
            "per_class": dict.fromkeys(names, accuracy),
            "pseudo_label_accuracy": accuracy,
            "generated_accuracy": None,
            "confusion": [[9 if a == b else 1 for b in range(size)] for a in range(size)],
            "seconds": 1.0,
            "total_seconds": float(increment),
            "peak_memory_bytes": None,
            "kept_bytes": 1000,
            "kept": {"C": 1000},
        }
        usual = {field.name: None for field in dataclasses.fields(IncrementRecord)}
        lines.append(json.dumps({"kind": "increment", **usual, **record}))
    lines.append(json.dumps({"kind": "step", "increment": done + 1, "step": 10, "C": 1.0}))
    (path / "metrics.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if finished:
        (path / "summary.json").write_text("{}", encoding="utf-8")
    return path
