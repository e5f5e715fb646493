"""Images worth a label: uncertain, different from each other, the same for the same seed."""

import pytest
import torch
from torch import Tensor

from conftest import blobs, increment_of, make_learner
from ordisco.errors import OrdiscoError
from ordisco.evaluation import ask as module
from ordisco.evaluation.ask import ask, most_doubtful, spread, uncertainty


def groups(count: int, each: int, noise: float = 0.01) -> Tensor:
    """Points around `count` places far from each other."""
    places = 10 * torch.eye(count).repeat_interleave(each, dim=0)
    return places + noise * torch.randn(places.shape, generator=torch.Generator().manual_seed(0))


def test_one_of_each_group_is_chosen() -> None:
    chosen = spread(groups(5, 20), torch.ones(100), 5)
    assert sorted((chosen // 20).tolist()) == [0, 1, 2, 3, 4]


def test_doubt_draws_the_centre_of_a_group() -> None:
    line = torch.tensor([[0.0], [1], [2], [100], [101], [102]])
    assert sorted(spread(line, torch.ones(6), 2).tolist()) == [1, 4]
    weights = torch.tensor([100.0, 1, 1, 1, 1, 100])
    assert sorted(spread(line, weights, 2).tolist()) == [0, 5]


def test_equal_points_are_not_chosen_twice() -> None:
    assert sorted(spread(torch.ones(10, 3), torch.zeros(10), 4).tolist()) == [0, 1, 2, 3]
    assert spread(torch.ones(3, 2), torch.ones(3), 4).tolist() == [0, 1, 2]


def test_candidates_are_the_most_doubtful() -> None:
    doubts = torch.tensor([0.1, 0.9, 0.5, 0.9, 0.2])
    assert most_doubtful(doubts, 1, beta=3).tolist() == [1, 3, 2]
    assert uncertainty(torch.ones(4, 1)).tolist() == [1, 1, 1, 1]


def test_a_learner_asks_about_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("smb")
    learner.learn(increment_of([0, 1, 2, 0, 1, 2], [1, 2, 0]))
    images = blobs([0, 1, 2, 3, 4, 5] * 40, seed=3)
    chosen = ask(learner, images, 6, seed=1)
    assert len(set(chosen.tolist())) == 6
    doubts = uncertainty(learner.predict_proba(images))
    assert float(doubts[chosen].min()) >= float(doubts.sort(descending=True).values[59])
    assert doubts[chosen].tolist() == sorted(doubts[chosen].tolist(), reverse=True)
    assert torch.equal(chosen, ask(learner, images, 6, seed=1))
    monkeypatch.setattr(module, "CHUNK", 7)
    assert torch.equal(chosen, ask(learner, images, 6, seed=1))


def test_few_images_are_all_asked_about() -> None:
    learner = make_learner("smb")
    learner.learn(increment_of([0, 1, 0, 1]))
    assert sorted(ask(learner, blobs([0, 1, 2], 0), 20).tolist()) == [0, 1, 2]
    assert ask(learner, blobs([], 0), 20).tolist() == []
    with pytest.raises(OrdiscoError, match="count = 0"):
        ask(learner, blobs([0], 0), 0)
