"""How many unlabelled images of a mini-batch come from the UMB: so many as asked, each as likely as the others."""

import torch

from conftest import increment_of, make_learner
from ordisco.learner.learner import Learner


def second(share: float | None, unlabeled: list[int]) -> Learner:
    learner = make_learner("smb+umb", umb_size=4, umb_share=share, steps=1)
    learner.learn(increment_of([0, 1, 2], [0, 1, 2] * 4))
    learner.begin(increment_of([0, 1, 2], unlabeled, seed=1))
    assert learner.pools.remembered == 4
    return learner


def test_the_share_of_the_umb_is_exact_and_even():
    pools = second(0.25, [0, 1, 2] * 2).pools  # 6 new images, then 4 of the UMB
    places = torch.stack([pools.places(8) for _ in range(400)])
    assert ((places >= 6).sum(1) == 2).all()
    counts = torch.bincount(places.flatten(), minlength=10)
    assert counts[:6].min() > 320  # 400 each, standard deviation 18
    assert counts[:6].max() < 480
    assert counts[6:].min() > 140  # 200 each, standard deviation 12
    assert counts[6:].max() < 260


def test_images_of_the_umb_are_those_of_the_buffer_with_their_increment():
    learner = second(0.99, [0, 1, 2] * 2)
    pools, held = learner.pools, learner.state.memories.umb.images
    assert torch.equal(pools.unlabeled[6:], held)
    with learner.random("test"):
        learner.step()


def test_without_a_share_or_without_other_images_all_are_alike():
    for pools in (second(None, [0, 1, 2] * 2).pools, second(0.25, []).pools):
        count = len(pools.unlabeled)
        drawn = torch.bincount(pools.places(400 * count), minlength=count)
        assert drawn.min() > 320
        assert drawn.max() < 480
