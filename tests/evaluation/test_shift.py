"""The shift test: a case computed by hand, the null hypothesis, and its power."""

import math

import pytest
import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation import shift
from ordisco.evaluation.shift import Shift, median_distance, shift_test


def normal(count: int, seed: int, features: int = 4) -> Tensor:
    return torch.randn(count, features, generator=torch.Generator().manual_seed(seed))


def test_mmd_by_hand() -> None:
    # Points 0, 1 against 3, 7 on a line. Distances: 1 and 4 within; 3, 7, 2, 6 across; torch's median of the six is
    # the lower one, 3. So k(d) = exp(−d² / 18).
    def k(distance: float) -> float:
        return math.exp(-(distance**2) / 18)

    a, b = torch.tensor([[0.0], [1]]), torch.tensor([[3.0], [7]])
    assert median_distance(torch.cat([a, b])) == 3
    got = shift_test(a, b, permutations=2000, seed=0)
    assert got.mmd2 == pytest.approx(k(1) + k(4) - 2 * (k(3) + k(7) + k(2) + k(6)) / 4)
    # Of the three ways to make two pairs, this is the one farthest apart: two of six orders of (first, second).
    assert got.p == pytest.approx(1 / 3, abs=0.04)


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_the_chunks_change_nothing(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = normal(20, 0), normal(13, 1)
    whole = shift_test(a, b, permutations=50)
    monkeypatch.setattr(shift, "CHUNK", chunk)
    part = shift_test(a, b, permutations=50)
    assert part.mmd2 == pytest.approx(whole.mmd2, abs=1e-12)
    assert part.p == whole.p


def test_under_the_null_p_is_uniform_and_mmd_has_mean_zero() -> None:
    found = [shift_test(normal(20, 2 * i), normal(30, 2 * i + 1), permutations=99, seed=i) for i in range(200)]
    ps = torch.tensor([each.p for each in found])
    for level in (0.05, 0.1, 0.25, 0.5, 0.75):  # a binomial share of 200: three standard deviations
        assert float((ps <= level).float().mean()) == pytest.approx(level, abs=3 * (level * (1 - level) / 200) ** 0.5)
    values = torch.tensor([each.mmd2 for each in found])
    assert abs(float(values.mean())) < 3 * float(values.std()) / 200**0.5


def test_power_grows_with_the_distance() -> None:
    def power(distance: float) -> float:
        ps = [shift_test(normal(50, 2 * i), normal(50, 2 * i + 1) + distance, 99, i).p for i in range(30)]
        return sum(p <= 0.05 for p in ps) / len(ps)

    assert power(0.15) < power(0.5)
    assert power(0.5) > 0.9


def test_another_spread_around_the_same_mean_is_a_shift() -> None:
    assert shift_test(normal(100, 0), 2 * normal(100, 1)).p < 0.01


def test_many_points_are_drawn_from() -> None:
    a, b = normal(500, 0), normal(400, 1) + 1
    few = shift_test(a, b, 100, seed=3, points=50)
    assert few.p < 0.02
    assert few != shift_test(a, b, 100, seed=4, points=50)
    assert few == shift_test(a, b, 100, seed=3, points=50)


def test_points_that_are_all_one_have_not_shifted() -> None:
    assert shift_test(torch.ones(5, 2), torch.ones(4, 2)) == Shift(0.0, 1.0)
    mostly = torch.zeros(9, 1)
    mostly[0] = 2
    assert median_distance(mostly) == 2


@pytest.mark.parametrize(
    ("a", "b", "permutations", "words"),
    [
        (torch.zeros(1, 2), torch.zeros(5, 2), 10, "1 and 5 points cannot be compared"),
        (torch.zeros(3, 2), torch.zeros(5, 3), 10, "2 features, the second 3"),
        (torch.zeros(3, 2), torch.zeros(5, 2), 0, "permutations = 0"),
        (torch.zeros(3, 2), torch.full((5, 2), torch.nan), 10, "not finite"),
        (torch.zeros(3), torch.zeros(5, 2), 10, "shape"),
    ],
)
def test_what_has_no_answer_is_told_in_one_line(a: Tensor, b: Tensor, permutations: int, words: str) -> None:
    with pytest.raises(OrdiscoError, match=words):
        shift_test(a, b, permutations)
