"""The smallest whole run: two tasks of two classes of the digits, a few steps each, networks of four channels."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ordisco.cli import main
from ordisco.runs.checkpoint import load_latest

STREAM = "digits-1-new-class"
NETS = ("--c-width", "4", "--g-width", "4", "--d-width", "4", "--z-dim", "4")
BATCHES = ("--batch-labeled", "8", "--batch-unlabeled", "8", "--batch-generated", "8")
DATA = ("--increments", "1", "--classes", "0,1,2,3", "--max-images", "80")
TINY = (STREAM, *DATA, *NETS, *BATCHES, "--threads", "1", "--accelerator", "cpu")
STEPS = 6  # an increment
VARYING = ("seconds", "total_seconds", "total_cpu_seconds", "cpu_seconds", "peak_memory_bytes")


def arguments(out: Path | str, *options: str, steps: int = STEPS) -> list[str]:
    """The command line of a tiny run; an option that is given takes the place of the one that is usual here."""
    usual = [*TINY[1:], "--steps", str(steps), "--out", str(out), "--jobs", "1"]
    pairs = zip(usual[::2], usual[1::2], strict=True)
    return ["run", STREAM, *(part for pair in pairs if pair[0] not in options for part in pair), *options]


def call(capsys: pytest.CaptureFixture[str], *argv: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    capsys.readouterr()
    code = main([str(part) for part in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out curve and confusion matrix, half of the time that a tiny run takes."""
    monkeypatch.setattr("ordisco.runs.summary.accuracy_curves", lambda *args: None)
    monkeypatch.setattr("ordisco.runs.summary.confusion_matrix", lambda *args: None)


def one_line(text: str) -> str:
    """The only line of a text."""
    assert text.count("\n") == 1, text
    assert text.endswith("\n")
    return text[:-1]


def records(run: Path, kind: str = "increment") -> list[dict[str, Any]]:
    """The lines of metrics.jsonl of one kind."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def outcome(run: Path) -> dict[str, Any]:
    """Whatever of a finished run must not depend on how often it was interrupted, bytes where there are bytes."""
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    newest = load_latest(run / "checkpoints")
    settings = re.sub("checkpoint_seconds = .*", "", (run / "settings.toml").read_text())
    content: dict[str, Any] = {
        "settings": settings,
        "metrics": [{key: value for key, value in line.items() if key not in VARYING} for line in metrics],
        "step": newest.path.name.split(".")[0],
        "tensors": (newest.path / "tensors.safetensors").read_bytes(),
        "state": newest.state["learner"],
    }
    summary = json.loads((run / "summary.json").read_text())
    content["summary"] = {key: value for key, value in summary.items() if key not in VARYING}
    for file in (run / "stream.json", *sorted(run.glob("samples/*")), *sorted(run.glob("figures/*"))):
        content[str(file.relative_to(run))] = file.read_bytes()
    return content


def assert_same_outcome(run: Path, reference: Path) -> None:
    """Bit for bit the same, apart from times and memory; the figures are compared if the run has any."""
    mine, its = outcome(run), outcome(reference)
    figures = set() if (run / "figures").exists() else {name for name in its if name.startswith("figures/")}
    assert mine.keys() == its.keys() - figures
    assert [key for key in mine if mine[key] != its[key]] == []
