"""Images worth a label: uncertain, different from each other, the same for the same seed."""

import pytest
import torch
from torch import Tensor

from conftest import blobs, increment_of, make_learner
from ordisco.errors import OrdiscoError
from ordisco.evaluation import ask as module
from ordisco.evaluation.ask import ask, drawn, spread, uncertainty, worth_a_label


def groups(count: int, each: int, noise: float = 0.01) -> Tensor:
    """Points around `count` places far from each other."""
    places = torch.eye(count).repeat_interleave(each, dim=0)
    return places + noise * torch.randn(places.shape, generator=torch.Generator().manual_seed(0))


def arc(*degrees: float) -> Tensor:
    """Points of length 1."""
    angles = torch.tensor(degrees).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def test_one_of_each_group_is_chosen() -> None:
    chosen = spread(groups(5, 20), torch.ones(100), 5)
    assert sorted((chosen // 20).tolist()) == [0, 1, 2, 3, 4]


def test_doubt_draws_the_centre_of_a_group() -> None:
    points = arc(0, 1, 2, 80, 81, 82)
    assert sorted(spread(points, torch.ones(6), 2).tolist()) == [1, 4]
    weights = torch.tensor([100.0, 1, 1, 1, 1, 100])
    assert sorted(spread(points, weights, 2).tolist()) == [0, 5]


def test_doubt_draws_the_centres_to_a_group() -> None:
    weights = torch.cat([torch.full((50,), 1e-3), torch.ones(50)])
    near = groups(2, 50, noise=0.3)
    assert int((spread(near, weights, 10) >= 50).sum()) > int((spread(near, torch.ones(100), 10) >= 50).sum())


def test_the_length_of_features_does_not_matter() -> None:
    features = torch.tensor([50.0, 1, 3, 0.1, 7, 20])[:, None] * arc(0, 1, 2, 80, 81, 82)
    assert sorted(worth_a_label(torch.ones(6), lambda places: features[places], 2).tolist()) == [1, 4]


def test_equal_points_are_not_chosen_twice() -> None:
    assert sorted(spread(torch.ones(10, 3), torch.zeros(10), 4).tolist()) == [0, 1, 2, 3]


def test_the_most_doubtful_comes_first() -> None:
    doubts = torch.tensor([0.1, 0.9, 0.5, 0.9, 0.2])
    assert worth_a_label(doubts, lambda places: groups(5, 1)[places], 5).tolist() == [1, 3, 2, 4, 0]
    assert uncertainty(torch.ones(4, 1)).tolist() == [1, 1, 1, 1]


def test_of_very_many_images_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def features(places: Tensor) -> Tensor:
        seen.append(len(places))
        return groups(2, 50)[places]

    monkeypatch.setattr(module, "LOOKED_AT", 20)
    chosen = worth_a_label(torch.ones(100), features, 2, seed=1)
    assert seen == [20]
    assert sorted((chosen // 50).tolist()) == [0, 1]
    assert len(set(worth_a_label(torch.ones(100), features, 30).tolist())) == 30
    assert not torch.equal(drawn(100, 20, seed=0), drawn(100, 20, seed=1))


def test_a_learner_asks_about_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("smb")
    learner.learn(increment_of([0, 1, 2, 0, 1, 2], [1, 2, 0]))
    images = blobs([0, 1, 2, 3, 4, 5] * 40, seed=3)
    chosen = ask(learner, images, 6, seed=1)
    assert len(set(chosen.tolist())) == 6
    doubts = uncertainty(learner.predict_proba(images))
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
