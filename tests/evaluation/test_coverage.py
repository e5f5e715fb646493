"""Density and coverage, computed by hand on a line."""

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation.coverage import CHUNK, DensityCoverage, K, in_balls, nearest_radii

REAL = torch.tensor([[0.0], [1.0], [3.0], [7.0]])


def line(*values: float) -> Tensor:
    return torch.tensor(values)[:, None]


def density_coverage(real: Tensor, generated: Tensor, k: int = K, chunk: int = CHUNK) -> DensityCoverage:
    return in_balls(real, nearest_radii(real, k, chunk), generated, k, chunk)


def test_radii_by_hand() -> None:
    assert nearest_radii(REAL, k=1).tolist() == [1, 1, 2, 4]
    assert nearest_radii(REAL, k=2).tolist() == [3, 2, 3, 6]
    assert nearest_radii(REAL, k=3).tolist() == [7, 6, 4, 7]


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_density_and_coverage_by_hand(chunk: int) -> None:
    # Balls for k = 1: (−1, 1), (0, 2), (1, 5), (3, 11). 0.5 lies in two, 4 in two, 20 in none.
    got = density_coverage(REAL, line(0.5, 4, 20), k=1, chunk=chunk)
    assert got.coverage == 1.0
    assert got.density == pytest.approx(4 / 3)
    # Balls for k = 2: (−3, 3), (−1, 3), (0, 6), (1, 13). 12 lies in the last only, −2 in the first only.
    got = density_coverage(REAL, line(12, -2), k=2, chunk=chunk)
    assert got.coverage == 0.5
    assert got.density == pytest.approx(2 / (2 * 2))


def test_many_points_in_one_ball_cover_one_point() -> None:
    got = density_coverage(REAL, line(*[10.0] * 8), k=1)
    assert got.coverage == 0.25
    assert got.density == 1.0


def test_the_surface_of_a_ball_is_outside() -> None:
    assert density_coverage(REAL, line(-1.0), k=1).coverage == 0.0  # at distance 1 of 0, whose radius is 1
    assert density_coverage(REAL, line(-0.999), k=1).coverage == 0.25


def test_two_dimensions_and_shared_radii() -> None:
    corners = torch.tensor([[0.0, 0], [3, 0], [0, 4], [3, 4]])
    radii = nearest_radii(corners, k=2)  # the longer side: 4 everywhere
    assert radii.tolist() == [4, 4, 4, 4]
    got = in_balls(corners, radii, torch.tensor([[0.0, -3.9], [3, 8.1]]), k=2)
    assert got.coverage == 0.25
    assert got.density == 0.25


def test_copies_of_distinct_points_cover_all() -> None:
    points = torch.randn(300, 8, generator=torch.Generator().manual_seed(0))
    assert density_coverage(points, points.flip(0)).coverage == 1.0
    assert density_coverage(points, points + 100).coverage == 0.0


@hypothesis.given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 5))
@hypothesis.settings(deadline=None, max_examples=20)
def test_more_points_never_cover_less(seed: int, few: int, k: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    real, generated = torch.randn(30, 3, generator=rng), torch.randn(60, 3, generator=rng)
    radii = nearest_radii(real, k, chunk=7)
    part, whole = in_balls(real, radii, generated[:few], k, chunk=7), in_balls(real, radii, generated, k)
    assert 0 <= part.coverage <= whole.coverage <= 1
    assert whole.density >= 0
    assert in_balls(real, radii, generated * 2, k).density >= 0
    moved = density_coverage(real + 5, generated + 5, k)
    assert moved.coverage == pytest.approx(whole.coverage, abs=0.05)  # up to rounding


def test_a_perfect_sampler_reaches_the_expected_coverage() -> None:
    # For equal distributions of n = m points: 1 − Π_{i=1..k} (n − i) / (2n − i) (Naeem et al., Eq. 8), here 0.97.
    rng = torch.Generator().manual_seed(1)
    got = density_coverage(torch.randn(800, 4, generator=rng), torch.randn(800, 4, generator=rng))
    assert got.coverage == pytest.approx(1 - 0.5**5, abs=0.02)
    assert got.density == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(
    ("real", "generated", "k", "words"),
    [
        (REAL, REAL, 4, "4 real points have no 4-th nearest neighbours: give 5 or more"),
        (REAL[:0], REAL, 1, "give 2 or more"),
        (REAL, REAL, 0, "k = 0"),
        (REAL, REAL[:0], 1, "no generated points"),
        (REAL, torch.zeros(3, 2), 1, "2 features"),
        (REAL, torch.zeros(3), 1, "shape"),
        (REAL, line(float("nan")), 1, "generated points are not finite"),
        (REAL / 0, REAL, 1, "real points are not finite"),
    ],
)
def test_what_has_no_answer_is_told_in_one_line(real: Tensor, generated: Tensor, k: int, words: str) -> None:
    with pytest.raises(OrdiscoError, match=words) as caught:
        density_coverage(real, generated, k)
    assert "\n" not in str(caught.value)
