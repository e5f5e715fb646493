"""The end of a network's step: what the penalty is told, what is added to the gradient, and when."""

import pytest
import torch
from torch import Tensor

from midway import ready
from ordisco.learner.state import Setup
from ordisco.learner.update import update
from ordisco.maths.penalties import Penalty


class Witness(Penalty):
    """Notes what it is told; its gradient is 2 in every entry."""

    def __init__(self) -> None:
        super().__init__(1.0)
        self.follows = "sl+ul"
        self.told: list[tuple[str, Tensor, Tensor | None]] = []

    def before_step(self, theta: Tensor, gradient: Tensor) -> None:
        self.told.append(("before", theta.clone(), gradient.clone()))

    def after_step(self, theta: Tensor) -> None:
        self.told.append(("after", theta.clone(), None))

    def gradient(self, theta: Tensor) -> Tensor:
        return torch.full_like(theta, 2.0)


@pytest.mark.parametrize("follows_another", [False, True])
def test_a_penalty_sees_the_losss_gradient_and_both_ends_of_the_step(follows_another: bool):
    learner, witness = ready("smb"), Witness()
    C = learner.state.nets.C
    start, other = C.flat.theta.clone(), torch.full_like(C.flat.theta, 7.0)
    C.flat.grad.fill_(-1.0)
    ratio = update(learner.setup, C, witness, other if follows_another else None)
    assert ratio is not None
    assert ratio.item() == pytest.approx(2.0)  # ‖2, 2, …‖ over ‖−1, −1, …‖
    (before, theta, gradient), (after, end, _) = witness.told
    assert (before, after) == ("before", "after")
    assert torch.equal(theta, start)
    assert gradient is not None
    assert gradient.unique().tolist() == [7.0 if follows_another else -1.0]  # without that of the penalty
    assert torch.equal(end, C.flat.theta)
    moved = end - start
    assert moved.max() < 0  # Adam's first step is against −1 + 2
    assert not C.flat.grad.any()  # ready for the next step


def test_the_gradient_that_a_penalty_follows_is_that_of_all_processes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Setup, "averaged", lambda self, vector: 10 * vector)
    learner, witness = ready("smb"), Witness()
    C = learner.state.nets.C
    update(learner.setup, C, witness, torch.full_like(C.flat.theta, 7.0))
    gradient = witness.told[0][2]
    assert gradient is not None
    assert gradient.unique().tolist() == [70.0]


def test_a_penalty_that_follows_nothing_only_adds_its_gradient():
    learner, witness = ready("smb"), Witness()
    witness.follows = None
    C = learner.state.nets.C
    start = C.flat.theta.clone()
    C.flat.grad.fill_(-1.0)
    update(learner.setup, C, witness)
    assert witness.told == []
    assert (C.flat.theta - start).max() < 0


def test_without_a_penalty_the_optimiser_just_moves():
    learner = ready("smb")
    C = learner.state.nets.C
    start = C.flat.theta.clone()
    C.flat.grad.fill_(-1.0)
    assert update(learner.setup, C) is None
    assert (C.flat.theta - start).min() > 0
