"""EWC, SI and MAS in closed form on linear models."""

import pytest
import torch
from torch import Tensor, nn

from ordisco.errors import UsageError
from ordisco.penalties import (
    EWC,
    MAS,
    PAPER_GRIDS,
    SI,
    Penalty,
    fisher_diagonal,
    make_penalty,
    output_sensitivity,
    quadratic,
    quadratic_gradient,
)


def consolidated(penalty: EWC | MAS | SI, theta: Tensor) -> None:
    """End an increment in which every parameter mattered by 1."""
    if isinstance(penalty, SI):
        penalty.begin(theta - 1)
        penalty.after_step(-torch.ones_like(theta), torch.ones_like(theta))
        penalty.consolidate(theta)
    else:
        penalty.consolidate(theta, torch.ones_like(theta))


def test_quadratic_by_hand():
    theta, anchor, importance = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), torch.tensor([3.0, 0.5])
    assert quadratic(theta, anchor, importance).item() == 3 * 1 + 0.5 * 4
    assert quadratic_gradient(theta, anchor, importance).tolist() == [6.0, -2.0]


@pytest.mark.parametrize("name", PAPER_GRIDS)
def test_zero_before_the_first_consolidation_and_positive_after(name: str):
    penalty, theta = make_penalty(name, 0.5), torch.tensor([1.0, -2.0, 3.0])
    assert penalty is not None
    if isinstance(penalty, SI):
        penalty.begin(theta)
    assert penalty.value(theta).item() == 0
    assert penalty.gradient(theta).tolist() == [0, 0, 0]
    consolidated(penalty, theta)
    assert penalty.value(theta).item() == 0
    moved = (theta + torch.tensor([0.0, 1.0, -2.0])).requires_grad_()
    value = penalty.value(moved)
    assert value.item() == pytest.approx(0.5 * 5, rel=2e-3)
    torch.testing.assert_close(penalty.gradient(moved.detach()), torch.autograd.grad(value, moved)[0])


def test_anchor_is_a_copy():
    penalty, theta = EWC(1.0), torch.zeros(2)
    consolidated(penalty, theta)
    theta += 1  # as an optimiser does
    assert penalty.value(theta).item() == 2


def test_fisher_of_a_softmax_regression():
    C = nn.Linear(2, 3)
    nn.init.zeros_(C.weight)
    nn.init.zeros_(C.bias)
    x, y = torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([0, 1])
    fisher = fisher_diagonal(C, [(x, y)], num_classes=2)
    # p = (1/2, 1/2), so every gradient is ±x/2 in the rows of both classes; the third class is not yet seen.
    row = [(1 + 9) / 8, 4 / 8]
    torch.testing.assert_close(fisher, torch.tensor([*row, *row, 0.0, 0.0, 0.25, 0.25, 0.0]))


def test_fisher_is_that_of_the_model_where_labels_follow_it():
    torch.manual_seed(0)
    C = nn.Linear(1, 2, bias=False).double()
    x = torch.tensor([[1.5]], dtype=torch.float64)
    p = C(x).softmax(1)[0].detach()
    both = [fisher_diagonal(C, [(x, torch.tensor([y]))], num_classes=2) for y in range(2)]
    expected = p * (1 - p) * 1.5**2  # E_y (p_c − [y = c])² x²
    torch.testing.assert_close(p[0] * both[0] + p[1] * both[1], expected)


def test_sensitivity_of_a_linear_map():
    C = nn.Linear(2, 3, bias=False)
    C.weight.data = torch.tensor([[1.0, 0.0], [1.0, 1.0], [9.0, 9.0]])
    x = torch.tensor([[1.0, 1.0], [-2.0, 1.0]])
    # |∂‖Wx‖²/∂W| = |2 W x xᵀ|: Wx = (1, 2) and (−2, −1).
    expected = torch.tensor([[2.0 + 8, 2 + 4], [4 + 4, 4 + 2], [0, 0]]) / 2
    torch.testing.assert_close(output_sensitivity(C, [(x,)], num_classes=2), expected.flatten())


def test_ewc_adds_up_and_mas_averages():
    parts = [torch.tensor([1.0, 0.0]), torch.tensor([3.0, 3.0]), torch.tensor([2.0, 6.0])]
    ewc, mas = EWC(1.0), MAS(1.0)
    for part in parts:
        ewc.consolidate(torch.zeros(2), part)
        mas.consolidate(torch.zeros(2), part)
    assert ewc.vectors["importance"].tolist() == [6.0, 9.0]
    assert mas.vectors["importance"].tolist() == [2.0, 3.0]


def descend(si: SI, theta: Tensor, curvature: Tensor, steps: int) -> Tensor:
    """Gradient descent on ½ Σ a θ² in small steps."""
    for _ in range(steps):
        gradient = curvature * theta
        delta = -1e-3 * gradient
        si.after_step(gradient, delta)
        theta = theta + delta
    return theta


def test_si_shares_out_the_fall_of_a_quadratic_loss():
    si, curvature = SI(1.0, damping=0.1), torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    start = torch.tensor([2.0, -1.0, 5.0], dtype=torch.float64)
    si.begin(start)
    end = descend(si, start, curvature, 500)
    fall = 0.5 * curvature * (start**2 - end**2)
    torch.testing.assert_close(si.vectors["path"], fall, rtol=3e-3, atol=0)
    path = si.vectors["path"].clone()
    si.consolidate(end)
    first = path / ((end - start) ** 2 + 0.1)
    torch.testing.assert_close(si.vectors["importance"], first)
    assert si.vectors["importance"][2] == 0
    assert set(si.vectors) == {"anchor", "importance"}

    si.begin(end)
    descend(si, end, curvature, 10)
    path = si.vectors["path"].clone()
    si.consolidate(end + 1)
    torch.testing.assert_close(si.vectors["importance"], first + path / 1.1)


def test_si_does_not_reward_what_raised_the_loss():
    si = SI(1.0)
    si.begin(torch.zeros(2))
    si.after_step(torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.5]))
    si.consolidate(torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(si.vectors["importance"], torch.tensor([0.0, 0.5 / (0.25 + 1e-3)]))


@pytest.mark.parametrize("name", PAPER_GRIDS)
def test_state_goes_on_where_it_was(name: str):
    theta = torch.tensor([1.0, 2.0])
    first, second = make_penalty(name, 2.0), make_penalty(name, 2.0)
    assert first is not None
    assert second is not None
    second.load(first.state())
    assert second.value(theta).item() == 0
    consolidated(first, theta)
    if isinstance(first, SI):  # saved in the middle of an increment
        first.begin(theta)
        first.after_step(torch.ones(2), -torch.ones(2))
    second.load(first.state())
    for penalty in (first, second):
        if isinstance(penalty, SI):
            penalty.after_step(torch.ones(2), -torch.ones(2))
            penalty.consolidate(theta - 2)
        else:
            penalty.consolidate(theta - 2, torch.tensor([5.0, 0.0]))
    torch.testing.assert_close(first.gradient(theta), second.gradient(theta))
    assert first.value(theta) == second.value(theta) > 0
    assert first.bytes == second.bytes == 2 * 2 * 4


def test_names_and_grids():
    assert {name: type(make_penalty(name)) for name in PAPER_GRIDS} == {"ewc": EWC, "si": SI, "mas": MAS}
    assert make_penalty("none", 1.0) is None
    for name, grid in PAPER_GRIDS.items():
        default = make_penalty(name)
        assert isinstance(default, Penalty)
        assert default.weight in grid
    assert make_penalty("ewc", 0.0).weight == 0.0  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="penalty = 'lwf'"):
        make_penalty("lwf")
