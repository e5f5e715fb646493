"""Statistics over seeds: the same seed is the same stream for every row, so differences are paired."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BySeed = Mapping[int, float]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its confidence interval, None for a single value."""

    mean: float
    half: float | None
    count: int


def interval(values: Sequence[float]) -> Interval:
    """Mean and confidence interval by Student's t."""
    n, mean = len(values), statistics.fmean(values)
    if n < 2:
        return Interval(mean, None, n)
    from scipy.stats import t as student  # takes a second to import

    quantile = float(student.ppf((1 + CONFIDENCE) / 2, n - 1))
    return Interval(mean, quantile * statistics.stdev(values) / math.sqrt(n), n)


def differences(a: BySeed, b: BySeed) -> list[float]:
    """Of `a` to `b`, for each seed that both have."""
    return [a[seed] - b[seed] for seed in sorted(a.keys() & b.keys())]


@dataclass(frozen=True)
class Gap:
    """The share of the way from `low` to `high` that was gone: of the means, and of each seed by itself."""

    share: float
    by_seed: tuple[float, ...]


def gap_closed(values: BySeed, low: BySeed, high: BySeed) -> Gap | None:
    """Mean paired gain over mean paired gap, over the seeds that all three have; None where there is no gap.

    There is none where its mean is not positive, or, with several seeds, not beyond chance: a share of it would mean
    nothing. The mean of the seeds' own shares is not used: one seed with hardly a gap would decide it.
    """
    seeds = sorted(values.keys() & low.keys() & high.keys())
    if not seeds:
        return None
    gains, gaps = [values[s] - low[s] for s in seeds], [high[s] - low[s] for s in seeds]
    gap = interval(gaps)
    if gap.mean <= (gap.half or 0.0):
        return None
    shares = tuple(gain / of_seed if of_seed else math.nan for gain, of_seed in zip(gains, gaps, strict=True))
    return Gap(statistics.fmean(gains) / gap.mean, shares)
