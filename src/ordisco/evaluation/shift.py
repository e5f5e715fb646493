"""Do two sets of points come from one distribution? Maximum mean discrepancy, with a permutation test.

Gretton et al. 2012 (JMLR 13): the unbiased estimate of MMD² with a Gaussian kernel whose width is the median distance
of the pooled points. Its p-value is the share of random divisions of the pooled points that are as far apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation.coverage import check_points
from ordisco.learner.seeding import derive_seed

POINTS = 2_000  # the most of each set; of more, so many are drawn
MEDIAN_OF = 1_000  # points whose distances give the kernel's width
CHUNK = 512  # rows of the kernel matrix in memory at once


@dataclass(frozen=True)
class Shift:
    """How far apart two sets are, and how often chance alone is as far."""

    mmd2: float
    p: float


def shift_test(a: Tensor, b: Tensor, permutations: int = 500, seed: int = 0, points: int = POINTS) -> Shift:
    """Compare points (n, d) with points (m, d); the smallest p is 1 / (permutations + 1).

    >>> rng = torch.Generator().manual_seed(0)
    >>> a, b = torch.randn(200, 3, generator=rng), torch.randn(100, 3, generator=rng)
    >>> shift_test(a, b).p > 0.05, shift_test(a, b + 1).p < 0.01
    (True, True)
    """
    _check(a, b, permutations, points)
    draws = torch.Generator().manual_seed(derive_seed(seed, "shift"))
    a, b = (_some(part, points, draws) for part in (a, b))
    pooled = torch.cat([a, b]).to("cpu", torch.float64)
    n, m = len(a), len(b)
    width = median_distance(_some(pooled, MEDIAN_OF, draws))
    if not width:
        return Shift(0.0, 1.0)  # all points are one
    first = torch.zeros(n + m, permutations + 1, dtype=torch.float64)  # a column a division: 1 for its first part
    first[:n, 0] = 1
    for column in range(1, permutations + 1):
        first[torch.randperm(n + m, generator=draws)[:n], column] = 1
    within, across, total = torch.zeros(3, permutations + 1, dtype=torch.float64)
    for start in range(0, n + m, CHUNK):
        rows = pooled[start : start + CHUNK]
        kernel = torch.cdist(rows, pooled).square_().mul_(-0.5 / width**2).exp_()
        kernel.diagonal(start).zero_()  # the unbiased estimate leaves out k(x, x)
        to_first = kernel @ first
        mine = first[start : start + CHUNK]
        within += (mine * to_first).sum(0)
        across += ((1 - mine) * to_first).sum(0)
        total += kernel.sum()
    rest = total - within - 2 * across
    found = within / (n * (n - 1)) + rest / (m * (m - 1)) - 2 * across / (n * m)
    as_far = int((found[1:] >= found[0] - 1e-12).sum())
    return Shift(float(found[0]), (1 + as_far) / (1 + permutations))


def median_distance(points: Tensor) -> float:
    """The median distance of two different points, or the mean of those that are not 0 where the median is."""
    apart = torch.pdist(points)
    median = float(apart.median())
    if median:
        return median
    apart = apart[apart > 0]
    return float(apart.mean()) if len(apart) else 0.0


def _some(points: Tensor, count: int, draws: torch.Generator) -> Tensor:
    if len(points) <= count:
        return points
    return points[torch.randperm(len(points), generator=draws)[:count].to(points.device)]


def _check(a: Tensor, b: Tensor, permutations: int, points: int) -> None:
    check_points(a, "first")
    check_points(b, "second")
    if a.shape[1] != b.shape[1]:
        raise OrdiscoError(f"the first points have {a.shape[1]} features, the second {b.shape[1]}")
    if min(len(a), len(b), points) < 2:
        raise OrdiscoError(f"{len(a)} and {len(b)} points cannot be compared: give 2 or more of each")
    if permutations < 1:
        raise OrdiscoError(f"permutations = {permutations} is not allowed: 1 or more")
