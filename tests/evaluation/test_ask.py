"""Images worth a label: typical of what has no label, doubtful groups first, the same for the same seed."""

import pytest
import torch
from torch import Tensor

from conftest import blobs, increment_of, make_learner
from ordisco.errors import OrdiscoError
from ordisco.evaluation import ask as module
from ordisco.evaluation.ask import ask, drawn, labelled, typical, typicality, uncertainty, worth_a_label

NONE = torch.zeros(0)


def groups(*sizes: int, noise: float = 0.01) -> Tensor:
    """Points around as many places, far from each other."""
    places = torch.eye(len(sizes)).repeat_interleave(torch.tensor(sizes), dim=0)
    return places + noise * torch.randn(places.shape, generator=torch.Generator().manual_seed(0))


def test_one_of_each_group_is_chosen_the_largest_first() -> None:
    sizes = (10, 40, 20, 30)
    of = torch.arange(4).repeat_interleave(torch.tensor(sizes))
    assert of[typical(groups(*sizes), torch.ones(100), NONE, 4)].tolist() == [1, 3, 2, 0]


def test_groups_with_a_label_come_last() -> None:
    known = torch.eye(3)[[1, 1]]  # two labels: five clusters, of which those with a label are not asked about
    of = typical(groups(20, 20, 20, noise=0.1), torch.ones(60), known, 3) // 20
    assert set(of.tolist()) >= {0, 2}
    equal = torch.eye(3).repeat_interleave(20, dim=0)
    assert int(typical(equal, torch.ones(60), known, 3)[2]) // 20 == 1


def test_doubt_brings_a_group_forward() -> None:
    doubts = torch.cat([torch.full((30,), 0.1), torch.full((10,), 0.9)])
    assert int(typical(groups(30, 10), torch.ones(40), NONE, 2)[0]) < 30
    assert int(typical(groups(30, 10), doubts, NONE, 2)[0]) >= 30


def test_the_image_amid_its_group_is_the_typical_one() -> None:
    angles = torch.tensor([0.00, 0.10, 0.11, 0.12, 0.30])
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    assert typical(points, torch.ones(5), NONE, 1).tolist() == [2]
    assert typical(7 * points, torch.ones(5), NONE, 1).tolist() == [2]
    assert typicality(torch.zeros(1, 2)).tolist() == [1]


def test_equal_points_are_not_chosen_twice() -> None:
    assert typical(torch.ones(10, 3), torch.zeros(10), NONE, 4).tolist() == [0, 1, 2, 3]


def test_many_labels_take_the_clusters_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLUSTERS", 2)
    of = typical(groups(30, 10), torch.ones(40), NONE, 6) // 30
    assert of.tolist() == [0, 1, 0, 1, 0, 1]


def test_of_very_many_images_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def features(places: Tensor) -> Tensor:
        seen.append(len(places))
        return groups(50, 50)[places]

    monkeypatch.setattr(module, "LOOKED_AT", 20)
    chosen = worth_a_label(torch.ones(100), features, NONE, 4, seed=1)
    assert seen == [20]
    assert set((chosen // 50).tolist()) == {0, 1}
    assert len(set(worth_a_label(torch.ones(100), features, NONE, 30).tolist())) == 30
    assert not torch.equal(drawn(100, 20, seed=0), drawn(100, 20, seed=1))


def test_a_learner_asks_about_what_it_has_no_labels_of(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make_learner("smb")
    learner.learn(increment_of([0, 1, 2, 0, 1, 2], [1, 2, 0]))
    assert len(labelled(learner)) == 6
    images = blobs([0, 1, 2, 3, 4, 5] * 40, seed=3)
    chosen = ask(learner, images, 6, seed=1)
    assert len(set(chosen.tolist())) == 6
    assert torch.equal(chosen, ask(learner, images, 6, seed=1))
    monkeypatch.setattr(module, "CHUNK", 7)
    assert torch.equal(chosen, ask(learner, images, 6, seed=1))
    assert uncertainty(torch.ones(4, 1)).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(("method", "kept"), [("st", 0), ("jt", 4)])
def test_labels_are_known_as_far_as_they_are_kept(method: str, kept: int) -> None:
    learner = make_learner(method)
    learner.learn(increment_of([0, 1, 0, 1], [0, 1]))
    assert len(labelled(learner)) == kept
    assert len(ask(learner, blobs([0, 1] * 5, 0), 4)) == 4


def test_few_images_are_all_asked_about() -> None:
    learner = make_learner("smb")
    learner.learn(increment_of([0, 1, 0, 1]))
    assert sorted(ask(learner, blobs([0, 1, 2], 0), 20).tolist()) == [0, 1, 2]
    assert ask(learner, blobs([], 0), 20).tolist() == []
    with pytest.raises(OrdiscoError, match="count = 0"):
        ask(learner, blobs([0], 0), 0)
