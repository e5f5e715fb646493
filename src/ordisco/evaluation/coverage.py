"""Density and coverage of generated points among real ones (Naeem et al. 2020, arXiv 2002.09797).

Every real point has a ball that reaches to its k-th nearest real neighbour. Coverage is the share of real points
with a generated one inside their ball: how much of the real variety is there. Density is the mean number of
balls that hold a generated point, over k: how typical the generated points are; it may exceed 1.
As in the authors' code a ball is open, so a point on its surface is outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError

K = 5  # the authors' choice
CHUNK = 1024  # real points whose distances to all others are in memory at once


@dataclass(frozen=True)
class DensityCoverage:
    """The two numbers of one set of generated points."""

    density: float
    coverage: float


def nearest_radii(real: Tensor, k: int = K, chunk: int = CHUNK) -> Tensor:
    """The distance of each point (n, d) to its k-th nearest other point."""
    check_points(real, "real")
    if k < 1:
        raise OrdiscoError(f"k = {k} is not allowed: 1 or more")
    if len(real) < k + 1:
        raise OrdiscoError(f"{len(real)} real points have no {k}-th nearest neighbours: give {k + 1} or more")
    radii = []
    for start in range(0, len(real), chunk):
        apart = distances(real[start : start + chunk], real)
        apart.diagonal(start).fill_(torch.inf)  # a point is no neighbour of its own
        radii.append(apart.topk(k, dim=1, largest=False).values[:, -1])  # far faster than kthvalue
    return torch.cat(radii)


def in_balls(real: Tensor, radii: Tensor, generated: Tensor, k: int = K, chunk: int = CHUNK) -> DensityCoverage:
    """Density and coverage of generated points (m, d) among real ones (n, d), whose `nearest_radii` are given."""
    check_points(generated, "generated")
    if generated.shape[1] != real.shape[1]:
        raise OrdiscoError(f"generated points have {generated.shape[1]} features, real ones {real.shape[1]}")
    if not len(generated):
        raise OrdiscoError("there are no generated points: give one or more")
    pairs = covered = 0
    for part, radius in zip(real.split(chunk), radii.split(chunk), strict=True):
        inside = distances(part, generated) < radius[:, None]
        pairs += int(inside.sum())
        covered += int(inside.any(dim=1).sum())
    return DensityCoverage(pairs / (k * len(generated)), covered / len(real))


def distances(a: Tensor, b: Tensor) -> Tensor:
    """Euclidean distances (n, m), without the faster matrix product, by which equal points are not at distance 0."""
    return torch.cdist(a.float(), b.float(), compute_mode="donot_use_mm_for_euclid_dist")


def check_points(points: Tensor, name: str) -> None:
    """Refuse what has no distances."""
    if points.ndim != 2:
        raise OrdiscoError(f"{name} points must be of shape (n, d), not {tuple(points.shape)}")
    if not bool(torch.isfinite(points).all()):
        raise OrdiscoError(f"some {name} points are not finite")
