"""How near samples come to the labelled images that are kept: by hand, and told apart from a G that copies."""

import pytest
import torch

from conftest import make_learner
from ordisco.evaluation.nearness import nearness, nearness_of, to_nearest
from ordisco.streams.stream import Stream


def test_distances_by_hand():
    labeled = torch.tensor([[0, 0], [10, 0]], dtype=torch.uint8).view(2, 1, 1, 2)
    images = torch.tensor([[3, 4], [10, 2], [0, 0]], dtype=torch.uint8).view(3, 1, 1, 2)
    assert to_nearest(images, labeled).tolist() == [5.0, 2.0, 0.0]
    assert nearness(images[1:2], labeled, images[:1]) == pytest.approx(0.4)


def test_a_generator_that_copies_is_seen(tasks: Stream, monkeypatch: pytest.MonkeyPatch):
    learner = make_learner("ordisco", num_classes=4, steps=1)
    for index in range(2):
        learner.learn(tasks[index])
    found = nearness_of(learner, tasks)
    assert list(found) == [0, 1, 2, 3]
    assert all(value > 0 for value in found.values())
    data = learner.state.memories.data
    copies = {label: data.images[data.labels == label] for label in range(4)}
    monkeypatch.setattr(type(learner), "sample", lambda self, labels, seed: copies[int(labels[0])])
    assert set(nearness_of(learner, tasks).values()) == {0.0}
    monkeypatch.setattr(type(learner), "sample", lambda self, labels, seed: copies[(int(labels[0]) + 1) % 4])
    assert min(nearness_of(learner, tasks).values()) > 0  # images of another class are no copies


def test_without_kept_labels_there_is_nothing_to_compare(tasks: Stream):
    learner = make_learner("st", num_classes=4, steps=1)
    learner.learn(tasks[0])
    assert nearness_of(learner, tasks) == {}
