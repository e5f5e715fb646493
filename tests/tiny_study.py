"""A study of two tiny rows, and a judge that is trained in a moment."""

import json
from pathlib import Path
from typing import Any

import pytest

from ordisco.cli import main
from ordisco.runs.config import RunConfig
from ordisco.studies import judge
from ordisco.studies.study import Row
from tiny import STREAM, without_figures

DATA = {"increments": 1, "classes": "0,1,2,3", "max_images": 80}
SMALL = {
    "steps": 2,
    "c_width": 4,
    "g_width": 4,
    "d_width": 4,
    "z_dim": 4,
    "batch_labeled": 8,
    "batch_unlabeled": 8,
    "batch_generated": 8,
}
QUICK_JUDGE = judge.JUDGE.replace(steps=60, batch_labeled=32, c_width=8, dropout=0.0, c_lr=1e-2, ema=0.8)


def toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def table(**fields: Any) -> str:
    """The lines of a study's table."""
    return "".join(f"{name} = {toml(value)}\n" for name, value in fields.items())


BOTH = [{"name": "SMB", "method": "smb"}, {"name": "ORDisCo", "method": "ordisco", "purpose": "better?"}]
TINY = {"title": "Tiny", "stream": STREAM, "reference": "SMB", "changes": {**DATA, **SMALL}, "rows": BOTH}


def write_study(file: Path, **changes: Any) -> Path:
    """A file with the study `s`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = {name: value for name, value in {**TINY, **changes}.items() if value is not None}
    file.write_text(f"[s]\n{table(**fields)}", encoding="utf-8")
    return file


def tiny_config(method: str = "smb", seed: int = 0, **changes: Any) -> RunConfig:
    """The configuration of a tiny row."""
    return RunConfig.resolve(STREAM, method, seed=seed, **{**DATA, **SMALL, **changes})


def tiny_row(name: str, method: str, seed: int = 0, **changes: Any) -> Row:
    """A tiny row."""
    return Row(name, tiny_config(method, seed, **changes))


def run_study(tmp_path: Path, *options: str, **changes: Any) -> int:
    """`ordisco study` on the tiny study, in `tmp_path`."""
    file = write_study(tmp_path / "studies.toml", **changes)
    jobs = () if "--jobs" in options else ("--jobs", "1")
    return main(["study", str(file), "s", "--work", str(tmp_path / "work"), *jobs, *options])


def results_in(path: Path) -> dict[str, dict[str, Any]]:
    """The result files of a directory by method."""
    found = [json.loads(file.read_text()) for file in sorted(path.glob("*.json"))]
    return {result["settings"]["method"]: result for result in found}


@pytest.fixture
def quick_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """No figures, and a judge of few steps."""
    without_figures(monkeypatch)
    monkeypatch.setattr(judge, "judge_settings", lambda images: QUICK_JUDGE)
