"""What was measured after each increment of a study's rows: a column an increment, the mean over seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.report.table import TextTable
from ordisco.studies.results import Result
from ordisco.studies.table import NONE, Group
from ordisco.words import percent_mean

# what can be asked for, and the list of a result that holds it
MEASURES = {
    "accuracy": "accuracies",
    "pseudo-labels": "pseudo_label_accuracies",
    "trusted": "trusted_shares",
    "right": "trusted_accuracies",
    "penalty": "penalty_ratios",
    "samples": "generated_accuracies",
}


def check_measure(name: str) -> str:
    """The name of something that is measured after each increment."""
    if name not in MEASURES:
        raise UsageError(f"each = {shown(name)} is not allowed: one of {', '.join(MEASURES)}")
    return name


def each_increment(groups: Sequence[Group], measure: str) -> TextTable:
    """A row for each group that has the measure; `—` where an increment has none."""
    field = MEASURES[check_measure(measure)]
    lists = {group.name: [values(result, field) for result in group.results.values()] for group in groups}
    count = max(len(of_seed) for of_group in lists.values() for of_seed in of_group)
    rows = []
    for name, of_group in lists.items():
        cells = [cell([of_seed[i] for of_seed in of_group if i < len(of_seed)], measure) for i in range(count)]
        if any(text != NONE for text in cells):
            rows.append((name, *cells))
    if not rows:
        raise OrdiscoError(f"no row has a measure of {measure}")
    return TextTable(("method", *(str(i + 1) for i in range(count))), tuple(rows))


def values(result: Result, field: str) -> list[float | None]:
    """A list of a result; results of earlier versions do not have all."""
    found: list[float | None] = result.get(field) or []
    return found


def cell(of_seeds: Sequence[float | None], measure: str) -> str:
    """Mean ± std over the seeds that have a value."""
    found = [value for value in of_seeds if value is not None]
    if not found:
        return NONE
    if measure == "penalty":
        return f"{statistics.geometric_mean(found):.1e}".replace("-", "−")
    return percent_mean(found)
