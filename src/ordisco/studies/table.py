"""The table of a study: mean ± std over seeds, paired differences, the share of the gap closed."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ordisco.errors import UsageError, shown
from ordisco.report.table import TextTable
from ordisco.studies.paired import BySeed, Gap, Interval, differences, gap_closed, interval
from ordisco.studies.results import Result, seconds_to
from ordisco.studies.study import Row, Study, stream_title
from ordisco.words import duration, percent_mean, size

NONE = "—"
MEASURES = ("pseudo-labels", "trusted", "right of these", "penalty / loss", "samples by judge")  # columns
SHARES = ("pseudo_label_accuracies", "trusted_shares", "trusted_accuracies", "generated_accuracies")


@dataclass(frozen=True)
class Span:
    """The increments from `first` to `last`, counted from 1, over which accuracy is averaged."""

    first: int
    last: int

    @staticmethod
    def read(text: str) -> Span:
        """`2-4`, or `3` for one increment."""
        found = re.fullmatch(r"([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?", text, re.ASCII)
        if found is None or int(found[1]) > int(found[2] or found[1]):
            raise UsageError(f"over = {shown(text)} is not allowed: increments such as 2-4")
        return Span(int(found[1]), int(found[2] or found[1]))

    def of(self, accuracies: Sequence[float]) -> float:
        """The mean over these increments."""
        if self.last > len(accuracies):
            raise UsageError(f"over = {self.first}-{self.last} is not allowed: there are {len(accuracies)} increments")
        return statistics.fmean(accuracies[self.first - 1 : self.last])


@dataclass(frozen=True)
class Group:
    """The results of one configuration, by seed."""

    name: str
    results: dict[int, Result]

    def values(self, field: str) -> dict[int, float]:
        """One number for each seed."""
        return {seed: result[field] for seed, result in self.results.items()}

    def scores(self, over: Span | None = None) -> dict[int, float]:
        """What is compared: the accuracy after the last increment, or the mean over some."""
        if over is None:
            return self.values("last_accuracy")
        return {seed: over.of(result["accuracies"]) for seed, result in self.results.items()}

    def last_of(self, field: str) -> list[float]:
        """The last number of a list, from the seeds that have one."""
        lasts = [(result.get(field) or [None])[-1] for result in self.results.values()]
        return [last for last in lasts if last is not None]


def grouped(done: Iterable[tuple[Row, Result]]) -> dict[str, list[Group]]:
    """The configurations of each stream, in the order of the study; only rows of one stream can be compared."""
    streams: dict[str, dict[str, dict[int, Result]]] = {}
    for row, result in done:
        streams.setdefault(stream_title(row.config), {}).setdefault(row.name, {})[row.seed] = result
    return {stream: [Group(*item) for item in groups.items()] for stream, groups in streams.items()}


def curves_of(groups: Iterable[Group]) -> dict[str, Sequence[Sequence[float]]]:
    """The accuracies of each group, a list per seed, for `accuracy_curves`."""
    return {group.name: [result["accuracies"] for result in group.results.values()] for group in groups}


def study_text(
    study: Study,
    done: Sequence[tuple[Row, Result]],
    over: Span | None = None,
    reach: float | None = None,
    other: Callable[[Sequence[Group]], TextTable] | None = None,
) -> str:
    """Markdown: the title, a table for each stream, or some `other` one, and how much is done."""
    parts = [f"## {study.title}\n"]
    for stream, groups in grouped(done).items():
        table = table_of(groups, study.reference, study.ceiling, over, reach=reach) if other is None else other(groups)
        parts += [f"### {stream}\n", table.markdown()]
    if len(done) < len(study.rows):
        parts.append(f"{len(done)} of {len(study.rows)} rows are done.\n")
    return "\n".join(parts)


def table_of(
    groups: Sequence[Group],
    reference: str | None = None,
    ceiling: str | None = None,
    over: Span | None = None,
    times: bool = True,
    reach: float | None = None,
    measures: bool = True,
) -> TextTable:
    """The groups of one stream side by side; columns without any entry are left out.

    `times`: by the clock, which says little of runs beside others. `reach`: an accuracy, the CPU-seconds to which are
    a column. `measures`: what was measured beside accuracy, time and bytes.
    """
    by_name = {group.name: group for group in groups}
    low, high = by_name.get(reference or ""), by_name.get(ceiling or "")
    what = "last" if over is None else "difference"
    header = [
        "method",
        "seeds",
        "after the last increment" if over is None else f"mean over increments {over.first} to {over.last}",
        "mean over increments",
        f"{what} − {reference}, points [95 % CI]",
        f"gap {reference} → {ceiling} closed (seeds)",
        *MEASURES,
        "time",
        "CPU s",
        "" if reach is None else f"CPU s to {100 * reach:g} % (seeds)",
        "kept",
    ]
    lines = [cells(group, low, high, over, times, reach) for group in groups]
    if all(len(group.results) == 1 for group in groups):
        lines = [[line[0], NONE, *line[2:]] for line in lines]
    wanted = [index for index, name in enumerate(header) if measures or name not in MEASURES]
    used = [index for index in wanted if index == 0 or any(line[index] != NONE for line in lines)]
    means = [statistics.fmean(group.scores(over).values()) for group in groups]
    return TextTable(
        tuple(header[index] for index in used),
        tuple(tuple(line[index] for index in used) for line in lines),
        tuple(index for index, mean in enumerate(means) if mean == max(means)),
    )


def cells(
    group: Group, low: Group | None, high: Group | None, over: Span | None, times: bool, reach: float | None
) -> list[str]:
    """One line of the table."""
    scores = group.scores(over)
    of_seeds = {name: group.last_of(name) for name in SHARES}
    pseudo, trusted, right, judged = (percent_mean(of_seeds[name]) if of_seeds[name] else NONE for name in SHARES)
    ratios = group.last_of("penalty_ratios")
    return [
        group.name,
        str(len(scores)),
        percent_mean(list(scores.values())),
        percent_mean(list(group.values("mean_accuracy").values())),
        difference_cell(scores, low.scores(over)) if low is not None and low is not group else NONE,
        gap_cell(group, low, high, over),
        pseudo,
        trusted,
        right,
        f"{statistics.geometric_mean(ratios):.1e}".replace("-", "−") if ratios else NONE,
        judged,
        duration(statistics.fmean(group.values("seconds").values())) if times else NONE,
        cpu_cell([result.get("cpu_seconds") for result in group.results.values()]),
        reach_cell([seconds_to(result, reach) for result in group.results.values()]) if reach is not None else NONE,
        size(max(group.values("kept_bytes").values())),
    ]


def accuracy_of(percent: str) -> float:
    """An accuracy that `--reach` gives in percent."""
    try:
        value = float(percent)
    except ValueError:
        value = math.nan
    if not 0 < value <= 100:
        raise UsageError(f"reach = {shown(percent)} is not allowed: an accuracy in percent, such as 75")
    return value / 100


def cpu_cell(seconds: Sequence[float | None]) -> str:
    """The mean over seeds; a dash where a run has not counted them."""
    known = [value for value in seconds if value is not None]
    return f"{statistics.fmean(known):.0f}" if known and len(known) == len(seconds) else NONE


def reach_cell(seconds: Sequence[float | None]) -> str:
    """`61 (3 of 5)`: the mean of the seeds that got so far, and how many they are."""
    known = [value for value in seconds if value is not None]
    return f"{statistics.fmean(known):.0f} ({len(known)} of {len(seconds)})" if known else NONE


def difference_cell(values: BySeed, reference: BySeed) -> str:
    """`+5.3 [+1.2, +9.4]`, of the seeds that both have."""
    paired = differences(values, reference)
    return points(interval(paired)) if paired else NONE


def gap_cell(group: Group, low: Group | None, high: Group | None, over: Span | None) -> str:
    """`62 % (55, 70, 61)`: of the means, and of each seed."""
    if low is None or high is None or group is low or group is high:
        return NONE
    gap = gap_closed(*(of.scores(over) for of in (group, low, high)))
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
