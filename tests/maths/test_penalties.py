"""EWC, SI and MAS in closed form on linear models; what all penalties share is in test_penalty_contract.py."""

import pytest
import torch
from torch import Tensor, nn

from ordisco.maths.penalties import (
    EWC,
    MAS,
    SI,
    Evidence,
    Penalty,
    make_penalty,
    quadratic,
    quadratic_gradient,
)


def pixels(*rows: list[float]) -> Tensor:
    """Rows of values −1, −0.6, −0.2, 0.2, 0.6 or 1 as uint8 pixels, which have just these values in [−1, 1]."""
    return ((torch.tensor(rows) + 1) * 127.5).round().to(torch.uint8)


def seen(module: nn.Module, images: Tensor, slots: list[int], num_classes: int, chunk: int = 32) -> Evidence:
    return Evidence(module, images, torch.tensor(slots), num_classes, chunk)


def move(si: SI, theta: Tensor, gradient: Tensor, delta: Tensor) -> Tensor:
    """A step of an optimiser."""
    si.before_step(theta, gradient)
    si.after_step(theta + delta)
    return theta + delta


NOTHING = Evidence(nn.Identity(), torch.zeros(0, 1, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64), 1, 1)


def test_quadratic_by_hand():
    theta, anchor, importance = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), torch.tensor([3.0, 0.5])
    assert quadratic(theta, anchor, importance, 2.0).item() == 2 * (3 * 1 + 0.5 * 4)
    assert quadratic_gradient(theta, anchor, importance, 2.0).tolist() == [12.0, -4.0]


def test_evidence_is_shown_in_parts_and_in_order():
    images, slots = pixels([-1.0, 1.0], [0.2, 0.6], [-0.6, -0.2]), [2, 0, 1]
    parts = list(seen(nn.Identity(), images, slots, 3).batches(size=2))
    assert [len(y) for _, y in parts] == [2, 1]
    expected = torch.tensor([[-1.0, 1.0], [0.2, 0.6], [-0.6, -0.2]])
    torch.testing.assert_close(torch.cat([x for x, _ in parts]), expected)
    assert torch.cat([y for _, y in parts]).tolist() == slots


@pytest.mark.parametrize("chunk", [1, 32])
def test_fisher_of_a_softmax_regression(chunk: int):
    C = nn.Linear(2, 3)
    nn.init.zeros_(C.weight)
    nn.init.zeros_(C.bias)
    x = [[0.2, 0.6], [1.0, -0.2]]
    fisher = EWC(1.0).importance(seen(C, pixels(*x), [0, 1], num_classes=2, chunk=chunk))
    # p = (1/2, 1/2), so every gradient is ±x/2 in the rows of both classes; the third class is not yet seen.
    row = [(0.2**2 + 1) / 8, (0.6**2 + 0.2**2) / 8]
    torch.testing.assert_close(fisher, torch.tensor([*row, *row, 0.0, 0.0, 0.25, 0.25, 0.0]))


def test_fisher_is_that_of_the_model_where_labels_follow_it():
    torch.manual_seed(0)
    C, x = nn.Linear(1, 2, bias=False), pixels([0.6])
    p = C(torch.tensor([[0.6]])).softmax(1)[0].detach()
    both = [EWC(1.0).importance(seen(C, x, [y], num_classes=2)) for y in range(2)]
    expected = p * (1 - p) * 0.6**2  # E_y (p_c − [y = c])² x²
    torch.testing.assert_close(p[0] * both[0] + p[1] * both[1], expected)


def test_sensitivity_of_a_linear_map():
    C = nn.Linear(2, 3, bias=False)
    C.weight.data = torch.tensor([[1.0, 0.0], [1.0, 1.0], [9.0, 9.0]])
    found = MAS(1.0).importance(seen(C, pixels([1.0, 1.0], [-0.6, 0.2]), [0, 0], num_classes=2))
    # |∂‖Wx‖²/∂W| = |2 W x xᵀ|: Wx = (1, 2) and (−0.6, −0.4).
    first = torch.tensor([[2.0, 2.0], [4.0, 4.0], [0.0, 0.0]])
    second = 2 * torch.tensor([[0.6 * 0.6, 0.6 * 0.2], [0.4 * 0.6, 0.4 * 0.2], [0.0, 0.0]])
    torch.testing.assert_close(found, ((first + second) / 2).flatten())


def test_mas_needs_no_labels():
    C, x = nn.Linear(2, 3), pixels([1.0, 0.6], [-0.6, 0.2])
    a, b = (MAS(1.0).importance(seen(C, x, slots, num_classes=3)) for slots in ([0, 0], [2, 1]))
    assert torch.equal(a, b)


def test_ewc_adds_up_and_mas_averages(monkeypatch: pytest.MonkeyPatch):
    parts = [torch.tensor([1.0, 0.0]), torch.tensor([3.0, 3.0]), torch.tensor([2.0, 6.0])]
    ewc, mas, evidence = EWC(1.0), MAS(1.0), seen(nn.Identity(), pixels([1.0]), [0], 1)
    for part in parts:
        for penalty in (ewc, mas):
            monkeypatch.setattr(penalty, "importance", lambda evidence, part=part: part)
            penalty.end(torch.zeros(2), evidence)
    assert ewc.vectors["importance"].tolist() == [6.0, 9.0]
    assert mas.vectors["importance"].tolist() == [2.0, 3.0]
    assert ewc.count == mas.count == 3


@pytest.mark.parametrize("penalty", [EWC(1.0), MAS(1.0)], ids=["ewc", "mas"])
def test_an_increment_without_images_to_measure_on_changes_nothing(penalty: Penalty):
    penalty.end(torch.zeros(2), NOTHING)
    assert not penalty.holds
    penalty.keep(torch.zeros(2), torch.ones(2))
    penalty.end(torch.ones(2), NOTHING)
    assert penalty.vectors["anchor"].tolist() == [0, 0]
    assert penalty.vectors["importance"].tolist() == [1, 1]
    assert penalty.count == 1


def descend(si: SI, theta: Tensor, curvature: Tensor, steps: int) -> Tensor:
    """Gradient descent on ½ Σ a θ² in small steps."""
    for _ in range(steps):
        theta = move(si, theta, curvature * theta, -1e-3 * curvature * theta)
    return theta


def test_si_shares_out_the_fall_of_a_quadratic_loss():
    si, curvature = SI(1.0, "sl", damping=0.1), torch.tensor([1.0, 3.0, 0.0], dtype=torch.float64)
    start = torch.tensor([2.0, -1.0, 5.0], dtype=torch.float64)
    si.begin(start)
    end = descend(si, start, curvature, 500)
    fall = 0.5 * curvature * (start**2 - end**2)
    torch.testing.assert_close(si.vectors["path"], fall, rtol=3e-3, atol=0)
    path = si.vectors["path"].clone()
    si.end(end, NOTHING)
    first = path / ((end - start) ** 2 + 0.1)
    torch.testing.assert_close(si.vectors["importance"], first)
    assert si.vectors["importance"][2] == 0
    assert set(si.vectors) == {"anchor", "importance"}

    si.begin(end)
    descend(si, end, curvature, 10)
    path = si.vectors["path"].clone()
    si.end(end + 1, NOTHING)
    torch.testing.assert_close(si.vectors["importance"], first + path / 1.1)


def test_si_does_not_reward_what_raised_the_loss():
    si = SI(1.0, "sl")
    si.begin(torch.zeros(2))
    end = move(si, torch.zeros(2), torch.tensor([1.0, -1.0]), torch.tensor([0.5, 0.5]))
    si.end(end, NOTHING)
    torch.testing.assert_close(si.vectors["importance"], torch.tensor([0.0, 0.5 / (0.25 + 1e-3)]))


def test_si_notes_the_gradient_and_the_place_before_the_step():
    si, theta, gradient = SI(1.0, "sl"), torch.zeros(2), torch.ones(2)
    si.begin(theta)
    si.before_step(theta, gradient)
    gradient.zero_()  # as after an optimiser's step, which changes both in place
    theta.sub_(2.0)
    si.after_step(theta)
    assert si.vectors["path"].tolist() == [2.0, 2.0]


def test_names_and_grids():
    grids = {"ewc": (0.1, 1, 10, 100), "si": (0.1, 1, 10, 100), "mas": (1e-6, 1e-4, 1e-2, 1)}  # of the paper's App. B
    made = {name: make_penalty(name, "sl") for name in grids}
    assert {name: type(penalty) for name, penalty in made.items()} == {"ewc": EWC, "si": SI, "mas": MAS}
    assert make_penalty("none", "sl", 1.0) is None
    for name, grid in grids.items():
        default = made[name]
        assert isinstance(default, Penalty)
        assert default.weight in grid
    assert make_penalty("ewc", "sl", 0.0).weight == 0.0  # type: ignore[union-attr]


def test_only_si_follows_a_loss():
    for on in ("sl", "sl+ul"):
        assert make_penalty("si", on).follows == on  # type: ignore[union-attr]
        assert make_penalty("ewc", on).follows is None  # type: ignore[union-attr]
        assert make_penalty("mas", on).follows is None  # type: ignore[union-attr]
