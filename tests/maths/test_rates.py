"""Warm-up and decay of a learning rate, by hand."""

import pytest

from ordisco.maths.rates import share_of_rate


@pytest.mark.parametrize(
    ("warm_up", "decay", "expected"),
    [
        (0.0, 0.0, [1, 1, 1, 1]),
        (0.5, 0.0, [0.5, 1, 1, 1]),
        (1.0, 0.0, [0.25, 0.5, 0.75, 1]),
        (0.0, 1.0, [1, 0.75, 0.5, 0.25]),
        (0.0, 0.5, [1, 1, 1, 0.5]),
        (1.0, 1.0, [0.25, 0.5, 0.5, 0.25]),  # the lower of the two lines
        (0.1, 0.1, [1, 1, 1, 1]),  # less than a step
    ],
)
def test_the_line_by_hand(warm_up: float, decay: float, expected: list[float]):
    assert [share_of_rate(step, 4, warm_up, decay) for step in range(4)] == expected
