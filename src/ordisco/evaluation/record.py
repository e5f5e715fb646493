"""What is recorded of an increment once it is learned, and of a look within one: lines of metrics.jsonl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any

from ordisco.errors import OrdiscoError

KIND, LOOK = "increment", "look"


@dataclass(frozen=True)
class IncrementRecord:
    """Accuracies are shares from 0 to 1; None where there is no such thing or nobody knows."""

    increment: int  # counted from 1
    classes_seen: int
    images: int
    labeled: int
    accuracy: float  # of C′ on the test images of all classes seen
    per_class: dict[str, float]
    pseudo_label_accuracy: float | None  # of C′ on the increment's unlabelled images
    trusted_share: float | None  # of the pseudo-labels, those that the unlabelled loss believes
    trusted_accuracy: float | None  # of those
    penalty_ratio: float | None  # norm of the penalty's gradient over that of the loss, at the end of the increment
    generated_accuracy: float | None  # of the judge on generated images
    confusion: list[list[int]]  # true class down, predicted class across
    seconds: float  # of this increment
    total_seconds: float
    peak_memory_bytes: int | None
    kept_bytes: int  # carried to the next increment
    kept: dict[str, int]  # the same by part
    total_cpu_seconds: float | None = None  # of the processors; older runs do not have it

    @property
    def shares(self) -> dict[str, float]:
        """The accuracies that there are, by name."""
        names = ("accuracy", "pseudo_label_accuracy", "trusted_share", "trusted_accuracy", "generated_accuracy")
        found = {name: getattr(self, name) for name in names}
        return {name: share for name, share in found.items() if share is not None}

    def to_dict(self) -> dict[str, Any]:
        """The line of metrics.jsonl."""
        return {"kind": KIND, **asdict(self)}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> IncrementRecord:
        """Read such a line back."""
        known = fields(IncrementRecord)
        if missing := [field.name for field in known if field.name not in values and field.default is MISSING]:
            raise OrdiscoError(f"not the record of an increment, {missing[0]} is missing")
        record = IncrementRecord(**{field.name: values[field.name] for field in known if field.name in values})
        check_numbers(values, "accuracy", "seconds", "total_seconds", "kept_bytes")
        if record.total_cpu_seconds is not None:
            check_numbers(values, "total_cpu_seconds")
        return record


@dataclass(frozen=True)
class Look:
    """The accuracy of C′ in the middle of an increment, on the test images of all classes seen by then."""

    increment: int  # the one under way, counted from 1
    step: int  # of it, made by then
    accuracy: float
    total_cpu_seconds: float | None  # as of an increment

    def to_dict(self) -> dict[str, Any]:
        """The line of metrics.jsonl."""
        return {"kind": LOOK, **asdict(self)}


def check_numbers(values: Mapping[str, Any], *names: str) -> None:
    """Refuse a record in which one of these is no number."""
    for name in names:
        if isinstance(values[name], bool) or not isinstance(values[name], int | float):
            raise OrdiscoError(f"not the record of an increment, {name} is no number")


def looks_in(lines: list[dict[str, Any]]) -> list[Look]:
    """The looks among the lines of metrics.jsonl."""
    names = [field.name for field in fields(Look)]
    found = [line for line in lines if line.get("kind") == LOOK]
    if damaged := [name for line in found for name in names if name not in line]:
        raise OrdiscoError(f"not a look within an increment, {damaged[0]} is missing")
    return [Look(**{name: line[name] for name in names}) for line in found]


def increments_in(lines: list[dict[str, Any]]) -> list[IncrementRecord]:
    """The records of finished increments among the lines of metrics.jsonl."""
    return [IncrementRecord.from_dict(line) for line in lines if line.get("kind") == KIND]
