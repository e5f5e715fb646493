"""The results of rows: what is kept of a finished run, in a small JSON file that rows with the same settings share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.evaluation.record import IncrementRecord, Look
from ordisco.files import json_bytes, json_of, read_plain, told_in_one_line, write_atomically
from ordisco.runs.directory import RunDirectory
from ordisco.runs.launch import read_config
from ordisco.runs.made import machine_now
from ordisco.runs.summary import increments_of, looks_of
from ordisco.studies.study import JUDGED, Row

Result = dict[str, Any]
NEEDED = ("accuracies", "last_accuracy", "mean_accuracy", "seconds", "kept_bytes")


@dataclass(frozen=True)
class Results:
    """The directory of the files."""

    path: Path

    def file(self, row: Row) -> Path:
        """Where the result of a row belongs."""
        return self.path / f"{row.key}.json"

    def there(self, row: Row) -> Path | None:
        """The file of a row's result, None if there is none; one that was judged serves for one that need not be."""
        key = row.shared_key
        names = (f"{key}{JUDGED}",) if row.judged else (f"{key}{JUDGED}", key)
        files = (self.path / f"{name}.json" for name in names)
        return next((file for file in files if file.exists()), None)

    def read(self, row: Row) -> Result | None:
        """The result of a row, None if there is none."""
        file = self.there(row)
        return None if file is None else read_result(file)

    def read_all(self, rows: Iterable[Row]) -> list[tuple[Row, Result]]:
        """The rows that have a result, with it."""
        found = [(row, self.read(row)) for row in rows]
        return [(row, result) for row, result in found if result is not None]

    def write(self, row: Row, result: Result) -> Path:
        """Write a result aside and rename, a key a line."""
        lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in result.items()]
        file = self.file(row)
        write_atomically(file, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
        return file


def read_result(file: Path) -> Result:
    """A result file; one that is damaged is told in one line."""
    result = read_json(file)
    if not isinstance(result, dict) or any(key not in result for key in NEEDED):
        raise OrdiscoError(f"{file} is not the result of a run: put it back, or delete it")
    return result


def read_json(file: Path) -> Any:
    """The content of a file that this package wrote."""
    with told_in_one_line("read", file):
        data = read_plain(file)
    try:
        return json_of(data)
    except ValueError as error:
        raise OrdiscoError(f"{file} is not JSON ({error}): put it back, or delete it") from error


def outcome_of(directory: RunDirectory) -> Result:
    """The numbers of a finished run."""
    records = increments_of(directory)
    if not records:
        raise OrdiscoError(f"{directory.metrics.file} is damaged: a finished run's records are needed")
    accuracies = [record.accuracy for record in records]
    return {
        "seconds": records[-1].total_seconds,
        "last_accuracy": accuracies[-1],
        "mean_accuracy": sum(accuracies) / len(accuracies),
        "accuracies": accuracies,
        "pseudo_label_accuracies": [record.pseudo_label_accuracy for record in records],
        "trusted_shares": [record.trusted_share for record in records],
        "trusted_accuracies": [record.trusted_accuracy for record in records],
        "penalty_ratios": [record.penalty_ratio for record in records],
        "generated_accuracies": [record.generated_accuracy for record in records],
        "kept_bytes": records[-1].kept_bytes,
        "kept": records[-1].kept,
        "increment_seconds": [record.seconds for record in records],
        "cpu_seconds": records[-1].total_cpu_seconds,
        "points": points_of(directory, records),
        "kept_by_increment": [record.kept for record in records],
        "peak_memory_bytes": records[-1].peak_memory_bytes,
    }


def points_of(directory: RunDirectory, records: list[IncrementRecord]) -> list[list[float]]:
    """CPU-seconds and accuracy of C′, whenever it was evaluated with every class of the stream among the test images.

    Of New Class that is in the last task, as any method is soon right with two classes. None without counted seconds.
    """
    whole = next(record.increment for record in records if record.classes_seen == records[-1].classes_seen)
    at: list[IncrementRecord | Look] = [*records, *looks_of(directory)]
    found = [(one.total_cpu_seconds, one.accuracy) for one in at if one.increment >= whole]
    return sorted([seconds, accuracy] for seconds, accuracy in found if seconds is not None)


def seconds_to(result: Result, accuracy: float) -> float | None:
    """CPU-seconds until C′ was first found to be that accurate on all classes; None where it never was."""
    return next((seconds for seconds, reached in result.get("points", []) if reached >= accuracy), None)


def result_of(row: Row, directory: RunDirectory, code: list[dict[str, Any]]) -> Result:
    """What is kept of a finished run: enough to make it again and to compare it."""
    return {
        "command": row.command,
        "settings": row.settings(),
        "code": code,
        **machine_now(row.config.machine),
        **outcome_of(directory),
        "judge_accuracy": judge_accuracy(directory),
    }


def judge_accuracy(directory: RunDirectory) -> float | None:
    """How much of the test images the run's judge gets right; None without one, or where it is gone."""
    judge = read_config(directory.path).machine.judge
    summary = None if judge is None else RunDirectory(Path(judge)).summary_json
    if summary is None or not summary.is_file():
        return None
    value = read_json(summary).get("test_accuracy")
    return None if value is None else float(value)


# ---------------------------------------------------------------------- the code that made it


def note_code(run: Path, code: dict[str, Any]) -> list[dict[str, Any]]:
    """Add the current code to those that have worked on a run, which may be resumed by a later commit."""
    file = run.with_name(f"{run.name}.code.json")
    noted: list[dict[str, Any]] = read_json(file) if file.exists() else []
    if not isinstance(noted, list):
        raise OrdiscoError(f"{file} is not a list: put it back, or delete it")
    if code not in noted:
        noted.append(code)
        write_atomically(file, json_bytes(noted))
    return noted
