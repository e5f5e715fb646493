"""Memories: herding against brute force, the reservoir's uniformity by chi-square, bytes in the budget."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.learner.buffers import DataMemory, LabelMemory, Reservoir, herding, select_herding

SHAPE = (1, 2, 2)


def images(*values: int) -> Tensor:
    """One image a value, all its pixels alike."""
    return torch.tensor(values, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, *SHAPE).contiguous()


def values(batch: Tensor) -> list[int]:
    return batch[:, 0, 0, 0].tolist()


# ------------------------------------------------------------------ SMB and JT


def test_label_memory_keeps_what_has_a_label():
    memory = LabelMemory(SHAPE)
    memory.add(images(1, 2, 3), torch.tensor([0, -1, 4]), 0)
    memory.add(images(4, 5), torch.tensor([-1, 1]), 0)
    assert values(memory.images) == [1, 3, 5]
    assert memory.labels.tolist() == [0, 4, 1]
    assert memory.bytes == 3 * 4 + 3 * (8 + 2)
    assert len(memory) == 3


def test_data_memory_keeps_everything():
    memory = DataMemory(SHAPE)
    memory.add(images(1, 2), torch.tensor([0, -1]), 0)
    memory.add(images(3), torch.tensor([-1]), 0)
    assert values(memory.images) == [1, 2, 3]
    assert memory.labels.tolist() == [0, -1, -1]


def test_memory_keeps_only_what_it_is_told():
    memory = LabelMemory(SHAPE)
    memory.add(images(1, 2, 3), torch.tensor([0, 1, 2]), 0)
    memory.keep(torch.tensor([2, 0]))
    assert (values(memory.images), memory.labels.tolist()) == ([3, 1], [2, 0])


def test_memories_go_through_their_state():
    memory = DataMemory(SHAPE)
    memory.add(images(1, 2), torch.tensor([0, -1]), 0)
    again = DataMemory(SHAPE)
    again.load(memory.state())
    assert (values(again.images), again.labels.tolist()) == ([1, 2], [0, -1])
    assert all(isinstance(tensor, Tensor) for tensor in memory.state().values())


@pytest.mark.parametrize("wrong", [torch.zeros(2, *SHAPE), torch.zeros(2, 3, 2, 2, dtype=torch.uint8)])
def test_memory_refuses_other_images(wrong: Tensor):
    with pytest.raises(OrdiscoError, match=r"uint8 images of shape \(1, 2, 2\)"):
        DataMemory(SHAPE).add(wrong, torch.zeros(2, dtype=torch.int64), 0)
    with pytest.raises(OrdiscoError, match="uint8 images"):
        Reservoir(5, SHAPE).add(wrong, 0)


# ------------------------------------------------------------------ SMB-mof


def brute_force_herding(features: np.ndarray, size: int) -> list[int]:
    """iCaRL's algorithm as printed: at every turn try each image that is left."""
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    picked: list[int] = []
    while len(picked) < min(size, len(unit)):
        left = [i for i in range(len(unit)) if i not in picked]
        distances = [np.linalg.norm(unit.mean(0) - unit[[*picked, i]].mean(0)) for i in left]
        picked.append(left[int(np.argmin(distances))])
    return picked


@pytest.mark.parametrize("seed", range(4))
def test_herding_is_brute_force(seed: int):
    features = np.random.default_rng(seed).normal(1.0, 2.0, (17, 5))
    assert herding(torch.tensor(features), 9).tolist() == brute_force_herding(features, 9)


def test_herding_sees_directions_only():
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    scaled = features * torch.tensor([[100.0], [0.01], [1.0]])
    assert herding(features, 1).tolist() == herding(scaled, 1).tolist() == [2]


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 12), st.integers(0, 15), st.integers(0, 1000))
def test_herding_picks_each_image_once(n: int, size: int, seed: int):
    features = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    picked = herding(features, size).tolist()
    assert len(picked) == len(set(picked)) == min(n, size)


def test_selection_gives_each_class_an_equal_share():
    labels = torch.tensor([0] * 30 + [3] * 5 + [7] * 40)
    data = torch.randint(0, 256, (75, *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    picked = select_herding(data, labels, lambda x: x.flatten(1).float(), total=32)
    counts = labels[picked].unique(return_counts=True)
    assert [c.tolist() for c in counts] == [[0, 3, 7], [10, 5, 10]]
    members = torch.where(labels == 7)[0]
    order = brute_force_herding(data[members].flatten(1).double().numpy(), 10)
    assert picked[labels[picked] == 7].tolist() == members[order].tolist()


def test_selection_of_twenty_a_class():
    labels = torch.arange(10).repeat(25)
    data = torch.randint(0, 256, (250, *SHAPE), dtype=torch.uint8)
    picked = select_herding(data, labels, lambda x: x.flatten(1).float())
    assert len(picked) == 200
    assert labels[picked].bincount().tolist() == [20] * 10


def test_selection_needs_room_for_each_class():
    with pytest.raises(OrdiscoError, match="too small for 3 classes"):
        select_herding(images(1, 2, 3), torch.tensor([0, 1, 2]), lambda x: x.flatten(1).float(), total=2)


# ------------------------------------------------------------------ UMB


@pytest.mark.slow
def test_reservoir_is_uniform_over_the_stream():
    stream, capacity, draws = 24, 6, 1200
    counts = torch.zeros(stream)
    generator = torch.Generator().manual_seed(0)
    for _ in range(draws):
        reservoir = Reservoir(capacity, SHAPE)
        for chunk in images(*range(stream)).split([4, 3, 10, 7]):
            reservoir.add(chunk, 0, generator)
        counts[values(reservoir.images)] += 1
    share = capacity / stream
    # Counts of samples without replacement vary by p (1 − p), with N − 1 degrees of freedom.
    statistic = ((counts - draws * share) ** 2).sum() / (draws * share * (1 - share)) * (stream - 1) / stream
    assert counts.sum() == draws * capacity
    assert statistic < chi2.ppf(0.999, stream - 1)


def test_reservoir_does_as_if_images_came_one_by_one():
    reservoir = Reservoir(3, SHAPE)
    reservoir.add(images(0, 1, 2), 0)
    slots = [0, 1, 2]
    draws = torch.rand(60, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    for image, draw in enumerate(draws.tolist(), start=3):
        slot = int(draw * (image + 1))
        if slot < 3:
            slots[slot] = image
    reservoir.add(images(*range(3, 63)), 1, torch.Generator().manual_seed(5))
    assert values(reservoir.images) == slots
    assert reservoir.seen == 63


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10), st.lists(st.integers(0, 9), max_size=6))
def test_reservoir_stays_within_its_budget(capacity: int, sizes: list[int]):
    reservoir, offered = Reservoir(capacity, SHAPE), 0
    for size in sizes:
        reservoir.add(images(*range(offered, offered + size)), 0)
        offered += size
        assert reservoir.seen == offered
        assert reservoir.bytes == 6 * min(capacity, offered) == 6 * len(reservoir)  # 4 pixels, 2 for the increment
        kept = values(reservoir.images)
        assert len(set(kept)) == len(kept)
        assert set(kept) <= set(range(offered))


def test_images_remember_the_increment_that_they_came_with():
    reservoir, memory = Reservoir(20, SHAPE), DataMemory(SHAPE)
    for increment in range(4):
        some = images(*(10 * increment + k for k in range(10)))
        reservoir.add(some, increment, torch.Generator().manual_seed(increment))
        memory.add(some, torch.full((10,), -1), increment)
    assert reservoir.increments.tolist() == [value // 10 for value in values(reservoir.images)]
    assert set(reservoir.increments.tolist()) == {0, 1, 2, 3}
    memory.keep(torch.tensor([35, 3, 12]))
    assert memory.increments.tolist() == [3, 0, 1]


def test_reservoir_goes_on_from_its_state():
    first, second = Reservoir(4, SHAPE), Reservoir(4, SHAPE)
    first.add(images(*range(10)), 0, torch.Generator().manual_seed(0))
    state = first.state()
    second.load(state)
    for reservoir in (first, second):
        reservoir.add(images(*range(10, 30)), 1, torch.Generator().manual_seed(1))
    assert values(first.images) == values(second.images)
    assert second.seen == 30
    assert values(state["images"]) != values(first.images)  # a state stays as it was
    with pytest.raises(OrdiscoError, match="more than its capacity 3"):
        Reservoir(3, SHAPE).load(state)
