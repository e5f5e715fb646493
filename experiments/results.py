"""The results of a study: one small JSON file a row, that rows with the same settings share."""

from __future__ import annotations

import json
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ordisco.config import RunConfig
from ordisco.errors import OrdiscoError
from ordisco.files import told_in_one_line, write_atomically
from ordisco.outcome import increments_of
from ordisco.rundir import RunDirectory
from rows import Row, Study

ROOT = Path(__file__).resolve().parents[1]
JUDGED = "-judged"


@dataclass(frozen=True)
class Results:
    """The directory of the files."""

    path: Path

    def file(self, row: Row, judged: bool) -> Path:
        """Where the result of a row belongs."""
        return self.path / f"{row.key}{JUDGED if judged else ''}.json"

    def read(self, row: Row, judged: bool) -> dict[str, Any] | None:
        """The result of a row, None if there is none; one that was judged serves for one that need not be."""
        for wanted in (True,) if judged else (True, False):
            file = self.file(row, wanted)
            if file.exists():
                try:
                    with told_in_one_line("read", file):
                        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
                    return result
                except ValueError as error:
                    raise OrdiscoError(f"{file} is not JSON ({error}): put it back, or delete it") from error
        return None

    def read_all(self, study: Study, rows: Iterable[Row]) -> list[tuple[Row, dict[str, Any]]]:
        """The rows that have a result, with it."""
        found = [(row, self.read(row, study.wants_judge(row))) for row in rows]
        return [(row, result) for row, result in found if result is not None]

    def write(self, row: Row, judged: bool, result: dict[str, Any]) -> Path:
        """Write a result aside and rename, a key a line."""
        lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in result.items()]
        file = self.file(row, judged)
        write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
        return file


def result_of(row: Row, config: RunConfig, directory: RunDirectory, code: list[dict[str, Any]]) -> dict[str, Any]:
    """What is kept of a finished run: enough to make it again and to compare it."""
    records = increments_of(directory)
    accuracies = [record["accuracy"] for record in records]
    return {
        "command": row.command,
        "settings": row.settings(),
        "code": code,
        "torch": version("torch"),
        "python": platform.python_version(),
        "threads": config.machine.threads,
        "precision": config.machine.precision,
        "seconds": records[-1]["total_seconds"],
        "last_accuracy": accuracies[-1],
        "mean_accuracy": sum(accuracies) / len(accuracies),
        "accuracies": accuracies,
        "pseudo_label_accuracies": [record["pseudo_label_accuracy"] for record in records],
        "generated_accuracies": [record["generated_accuracy"] for record in records],
        "kept_bytes": records[-1]["kept_bytes"],
        "kept": records[-1]["kept"],
        "peak_memory_bytes": records[-1]["peak_memory_bytes"],
    }


def code_now() -> dict[str, Any]:
    """The commit of this checkout and whether the package differs from it; None outside a checkout."""

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if changed is None else bool(changed)}


def note_code(file: Path, code: dict[str, Any]) -> list[dict[str, Any]]:
    """Add the code of now to those that have worked on a run, which may be resumed by a later commit."""
    noted: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    if code not in noted:
        noted.append(code)
        write_atomically(file, (json.dumps(noted) + "\n").encode())
    return noted
