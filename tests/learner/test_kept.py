"""What lies between two increments: nothing twice, and G's and D's weights in few bits where the settings say so."""

from __future__ import annotations

import pytest
import torch

from conftest import make_learner
from ordisco.errors import OrdiscoError
from ordisco.learner.kept import ANCHOR
from ordisco.maths.rounding import from_eight
from ordisco.streams.stream import Increment, Stream

IMPORTANCE = "memories.penalty_on_D.importance"
HALF = {"kept_precision": "16", "g_ema": 0.9, "g_restart": "average"}
EIGHT = HALF | {"kept_precision": "8"}


def test_the_anchor_of_D_is_D_and_not_kept_beside_it(tasks: Stream):
    learner = make_learner("ordisco", steps=2)
    learner.learn(tasks[0])
    tensors, state = learner.saved()
    assert IMPORTANCE in tensors
    assert ANCHOR not in tensors
    again = make_learner("ordisco", steps=2)
    again.load(tensors, state)
    held = again.state.memories.penalty_on_D
    assert torch.equal(held.vectors["anchor"], learner.state.memories.penalty_on_D.vectors["anchor"])
    assert torch.equal(held.vectors["anchor"], again.state.nets.gan.D.flat.theta)
    learner.begin(tasks[1])
    learner.step()
    tensors, state = learner.saved()
    assert not torch.equal(tensors.pop(ANCHOR), tensors["D.theta"])
    with pytest.raises(OrdiscoError, match="anchor is missing"):
        make_learner("ordisco", steps=2).load(tensors, state, tasks[1])


def test_a_state_that_has_the_anchor_all_the_same_is_taken(tasks: Stream):
    learner = make_learner("ordisco", steps=1)
    learner.learn(tasks[0])
    tensors, state = learner.saved()
    again = make_learner("ordisco", steps=1)
    again.load(tensors | {ANCHOR: tensors["D.theta"]}, state)
    assert torch.equal(again.state.memories.penalty_on_D.vectors["anchor"], tensors["D.theta"])


def test_the_bytes_counted_are_the_bytes_saved(tasks: Stream):
    for changes in ({}, HALF, EIGHT, {"g_ema": 0.9}):
        learner = make_learner("ordisco", steps=1, **changes)
        learner.learn(tasks[0])
        tensors, _ = learner.saved()
        networks = {name: tensor for name, tensor in tensors.items() if name.split(".")[0] in ("G", "G_mean", "D")}
        counted = learner.bytes_kept()
        assert sum(tensor.nbytes for tensor in networks.values()) == sum(
            counted.get(name, 0) for name in ("G", "G_mean", "D")
        )
        assert tensors[IMPORTANCE].nbytes == counted["importance"]


def test_weights_in_sixteen_bits_between_increments_and_in_32_within(tasks: Stream):
    learner = make_learner("ordisco", steps=2, **HALF)
    learner.learn(tasks[0])
    gan = learner.state.nets.gan
    for network in (gan.G, gan.G_mean, gan.D):
        theta = network.flat.theta
        assert torch.equal(theta, theta.half().float())
    assert not torch.equal(learner.state.nets.C.flat.theta, learner.state.nets.C.flat.theta.half().float())
    tensors, state = learner.saved()
    assert {tensors[f"{name}.theta"].dtype for name in ("G_mean", "D")} == {torch.float16}
    assert "G.theta" not in tensors
    assert tensors["C.theta"].dtype == torch.float32
    again = make_learner("ordisco", steps=2, **HALF)
    again.load(tensors, state)
    assert torch.equal(again.state.nets.gan.G.flat.theta, gan.G.flat.theta)
    assert torch.equal(again.state.nets.gan.G.flat.buffers, gan.G.flat.buffers)
    learner.begin(tasks[1])
    learner.step()
    assert learner.saved()[0]["D.theta"].dtype == torch.float32


def test_weights_in_eight_bits_between_increments(tasks: Stream):
    """What is saved stands for the weights as they are, and one that was loaded goes on as the one that was not."""
    learner, again = (make_learner("ordisco", steps=2, **EIGHT) for _ in range(2))
    learner.learn(tasks[0])
    gan = learner.state.nets.gan
    tensors, state = learner.saved()
    for name, network in (("G_mean", gan.G_mean), ("D", gan.D)):
        assert tensors[f"{name}.theta"].dtype == torch.int8
        assert torch.equal(from_eight(tensors[f"{name}.theta"], tensors[f"{name}.scales"]), network.flat.theta)
    assert tensors["C.theta"].dtype == torch.float32
    assert tensors[IMPORTANCE].dtype == torch.float16
    again.load(tensors, state)
    for one in (learner, again):
        one.learn(tasks[1])
    for name, tensor in learner.saved()[0].items():
        assert torch.equal(again.saved()[0][name], tensor), name


def test_codes_without_their_scales_are_refused(tasks: Stream):
    learner = make_learner("ordisco", steps=1, **EIGHT)
    learner.learn(tasks[0])
    tensors, state = learner.saved()
    less = {name: tensor for name, tensor in tensors.items() if name != "D.scales"}
    with pytest.raises(OrdiscoError, match=r"D\.scales is missing, but D\.theta is int8"):
        make_learner("ordisco", steps=1, **EIGHT).load(less, state)
    with pytest.raises(OrdiscoError, match=r"D\.scales is there, but D\.theta is float32"):
        make_learner("ordisco", steps=1, **EIGHT).load(tensors | {"D.theta": tensors["D.theta"].float()}, state)
    with pytest.raises(OrdiscoError, match=r"D\.scales is negative"):
        make_learner("ordisco", steps=1, **EIGHT).load(tensors | {"D.scales": -tensors["D.scales"]}, state)


def test_statistics_of_G_are_those_of_its_weights_as_they_are_kept(tasks: Stream):
    """Rounding comes first: the running statistics of G's average are gathered with the weights that are kept."""
    learner = make_learner("ordisco-last", steps=2, **EIGHT)
    learner.learn(tasks[0])
    learner.begin(tasks[1])
    while not learner.done:
        learner.step()
    before = learner.state.nets.gan.G_mean.flat.theta.clone()
    seen = []
    gather, learner.gather_statistics = (
        learner.gather_statistics,
        lambda between: (
            seen.append(learner.state.nets.gan.G_mean.flat.theta.clone()),
            gather(between),
        ),
    )
    learner.finish()
    assert not torch.equal(seen[0], before)
    assert torch.equal(seen[0], learner.state.nets.gan.G_mean.flat.theta)


def test_sixteen_bits_where_the_settings_have_32_are_refused(tasks: Stream):
    learner = make_learner("ordisco", steps=1)
    learner.learn(tasks[0])
    tensors, state = learner.saved()
    with pytest.raises(OrdiscoError, match=r"D\.theta is float16"):
        make_learner("ordisco", steps=1).load(tensors | {"D.theta": tensors["D.theta"].half()}, state)


def test_the_anchor_comes_back_also_where_nothing_was_measured(tasks: Stream):
    labels_only = tasks[0].labels >= 0
    learner, again = (make_learner("ordisco", steps=2) for _ in range(2))
    learner.learn(Increment(tasks[0].images[labels_only], tasks[0].labels[labels_only]))
    assert IMPORTANCE not in learner.saved()[0]
    again.load(*learner.saved())
    for one in (learner, again):
        one.begin(tasks[1])
        one.step()
    make_learner("ordisco", steps=2).load(*again.saved(), tasks[1])
    assert torch.equal(again.saved()[0][ANCHOR], learner.saved()[0][ANCHOR])


def test_a_learner_that_has_learned_nothing_has_no_anchor(tasks: Stream):
    again = make_learner("ordisco", steps=2)
    again.load(*make_learner("ordisco", steps=2).saved())
    again.begin(tasks[0])
    again.step()
    assert ANCHOR not in again.saved()[0]
