"""The table of a study: mean ± std over seeds, paired differences, the share of the gap closed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ordisco.report.table import markdown_table
from ordisco.report.words import duration, percent_mean, size
from paired import BySeed, Gap, Interval, differences, gap_closed, interval
from rows import Row, Study

NONE = "—"


@dataclass(frozen=True)
class Group:
    """The results of one configuration, by seed."""

    name: str
    results: dict[int, dict[str, Any]]

    def values(self, field: str) -> dict[int, float]:
        """One number a seed."""
        return {seed: result[field] for seed, result in self.results.items()}

    def last_of(self, field: str) -> list[float]:
        """The last number of a list, from the seeds that have one."""
        return [result[field][-1] for result in self.results.values() if result[field][-1] is not None]


def grouped(done: Iterable[tuple[Row, dict[str, Any]]]) -> dict[str, list[Group]]:
    """The configurations of each stream, in the order of the study; only rows of one stream can be compared."""
    streams: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for row, result in done:
        changes = "".join(f", {name} = {value}" for name, value in row.stream_changes.items())
        streams.setdefault(row.stream + changes, {}).setdefault(row.name, {})[row.seed] = result
    return {stream: [Group(*item) for item in groups.items()] for stream, groups in streams.items()}


def study_table(study: Study, done: Sequence[tuple[Row, dict[str, Any]]]) -> str:
    """Markdown: a table a stream."""
    in_order = sorted(done, key=lambda item: study.rows.index(item[0]))
    streams = grouped(in_order)
    parts = [f"## {study.title}\n"]
    for stream, groups in streams.items():
        parts.append(f"### {stream}\n")
        parts.append(stream_table(study, groups))
    planned = len(study.rows)
    if len(done) < planned:
        parts.append(f"{len(done)} of {planned} rows are done.\n")
    return "\n".join(parts)


def stream_table(study: Study, groups: Sequence[Group]) -> str:
    """The table of one stream; columns without any entry are left out."""
    by_name = {group.name: group for group in groups}
    low, high = by_name.get(study.reference), by_name.get(study.ceiling or "")
    header = [
        "",
        "seeds",
        "after the last increment",
        "mean over increments",
        f"last − {study.reference}, points [95 % CI]",
        f"gap {study.reference} → {study.ceiling} closed (seeds)",
        "pseudo-labels",
        "samples by judge",
        "time",
        "kept",
    ]
    lines = [cells(group, low, high) for group in groups]
    used = [index for index in range(len(header)) if index == 0 or any(line[index] != NONE for line in lines)]
    return markdown_table([header[index] for index in used], [[line[index] for index in used] for line in lines])


def cells(group: Group, low: Group | None, high: Group | None) -> list[str]:
    """One line of the table."""
    last = group.values("last_accuracy")
    pseudo, judged = group.last_of("pseudo_label_accuracies"), group.last_of("generated_accuracies")
    return [
        group.name,
        str(len(last)),
        percent_mean(list(last.values())),
        percent_mean(list(group.values("mean_accuracy").values())),
        difference_cell(last, low.values("last_accuracy")) if low is not None and low is not group else NONE,
        gap_cell(group, low, high),
        percent_mean(pseudo) if pseudo else NONE,
        percent_mean(judged) if judged else NONE,
        duration(statistics.fmean(group.values("seconds").values())),
        size(max(group.values("kept_bytes").values())),
    ]


def difference_cell(values: BySeed, reference: BySeed) -> str:
    """`+5.3 [+1.2, +9.4]`, of the seeds that both have."""
    paired = differences(values, reference)
    return points(interval(paired)) if paired else NONE


def gap_cell(group: Group, low: Group | None, high: Group | None) -> str:
    """`62 % (55, 70, 61)`: of the means, and of each seed."""
    if low is None or high is None or group is low or group is high:
        return NONE
    gap = gap_closed(*(of.values("last_accuracy") for of in (group, low, high)))
    return "no gap" if gap is None else shares(gap)


def points(of: Interval) -> str:
    """A difference of shares in percentage points."""
    text = f"{100 * of.mean:+.1f}"
    if of.half is not None:
        text += f" [{100 * (of.mean - of.half):+.1f}, {100 * (of.mean + of.half):+.1f}]"
    return text.replace("-", "−")


def shares(gap: Gap) -> str:
    """A share of the gap, then that of each seed."""
    seeds = ", ".join("∞" if math.isnan(share) else f"{100 * share:.0f}" for share in gap.by_seed)
    text = f"{100 * gap.share:.0f} %" + (f" ({seeds})" if len(gap.by_seed) > 1 else "")
    return text.replace("-", "−")
