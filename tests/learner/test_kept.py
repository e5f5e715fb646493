"""What lies between two increments: nothing twice, and G's and D's weights in 16 bits where the settings say so."""

from __future__ import annotations

import pytest
import torch

from conftest import make_learner
from ordisco.errors import OrdiscoError
from ordisco.learner.kept import ANCHOR
from ordisco.streams.stream import Increment, Stream

IMPORTANCE = "memories.penalty_on_D.importance"
HALF = {"kept_precision": "16", "g_ema": 0.9, "g_restart": "average"}


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
    for changes in ({}, HALF, {"g_ema": 0.9}):
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
