"""Statistics over seeds, by hand."""

import math

import pytest

from ordisco.studies.paired import differences, gap_closed, interval
from ordisco.studies.table import points


def test_interval_by_hand() -> None:
    # mean 2, s = 1, n = 3: the 97.5 % quantile of t with 2 degrees is 4.302653, so ± 4.302653 / √3.
    got = interval([1.0, 2.0, 3.0])
    assert got.mean == 2.0
    assert got.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert interval([1.0, 3.0]).half == pytest.approx(12.706205 * math.sqrt(2) / math.sqrt(2), rel=1e-6)
    assert interval([5.0]).half is None
    assert interval([4.0] * 5).half == 0.0


def test_differences_are_of_common_seeds() -> None:
    assert differences({0: 0.5, 1: 0.7, 2: 0.9}, {1: 0.6, 2: 0.5, 7: 0.1}) == pytest.approx([0.1, 0.4])
    assert differences({0: 1.0}, {1: 1.0}) == []


def test_gap_closed_by_hand() -> None:
    low, high = {0: 0.40, 1: 0.60, 2: 0.1, 3: 0.50}, {0: 0.80, 1: 0.90, 3: 0.85}
    gap = gap_closed({0: 0.5, 1: 0.9, 2: 0.9, 3: 0.5}, low, high)  # seed 2 has no ceiling
    assert gap is not None
    assert gap.share == pytest.approx((0.1 + 0.3 + 0) / (0.4 + 0.3 + 0.35))  # not the mean of the shares
    assert gap.by_seed == pytest.approx((0.25, 1.0, 0.0))
    assert gap_closed({0: 0.5}, {0: 0.8}, {0: 0.7}) is None
    assert gap_closed({0: 0.5}, {1: 0.2}, {0: 0.7}) is None


def test_a_gap_within_chance_is_none() -> None:
    low, gain = {0: 0.4, 1: 0.4, 2: 0.4}, {0: 0.5, 1: 0.5, 2: 0.5}
    assert gap_closed(gain, low, {0: 0.41, 1: 0.45, 2: 0.39}) is None  # +1.7 points [−5.9, +9.3]
    assert gap_closed(gain, low, {0: 0.44, 1: 0.46, 2: 0.45}) is not None


def test_a_seed_without_a_gap_has_no_share() -> None:
    low = dict.fromkeys(range(6), 0.4)
    even = gap_closed(dict.fromkeys(range(6), 0.5), low, {0: 0.4, **dict.fromkeys(range(1, 6), 0.8)})
    assert even is not None
    assert math.isnan(even.by_seed[0])


def test_points_in_words() -> None:
    assert points(interval([0.053])) == "+5.3"
    assert points(interval([-0.01, -0.01])) == "−1.0 [−1.0, −1.0]"
