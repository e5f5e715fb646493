"""The table of methods: checked against the paper, and every row runs."""

import pytest
import torch

from conftest import FABRIC, TINY, increment_of, make_learner
from ordisco.errors import UsageError
from ordisco.learner import Learner
from ordisco.methods import METHODS, TABLE, Method, method
from ordisco.scenarios import STREAMS, build_stream
from ordisco.stream import Stream

LOSSES = ("mean-teacher", "pi-model", "pseudo-label", "vat", "fixmatch")

# memory, UMB, head, penalty on C, GAN, replay, stabilisation: read from the paper, not from the table
PAPER = {
    "jt": ("all", 0, "linear", None, False, "none", False),
    "st": ("none", 0, "linear", None, False, "none", False),
    "smb": ("labels", 0, "linear", None, False, "none", False),
    "smb-mof": ("herding", 0, "linear", None, False, "none", False),
    "smb+umb": ("labels", 1, "linear", None, False, "none", False),
    "smb+4umb": ("labels", 4, "linear", None, False, "none", False),
    "smb+umb-500": ("labels", 500, "linear", None, False, "none", False),
    "smb+umb-1000": ("labels", 1_000, "linear", None, False, "none", False),
    "smb+umb-10000": ("labels", 10_000, "linear", None, False, "none", False),
    "smb+umb+uc": ("labels", 1, "cosine", None, False, "none", False),
    "smb+4umb+uc": ("labels", 4, "cosine", None, False, "none", False),
    "ewc-sl": ("none", 0, "linear", "ewc on sl", False, "none", False),
    "ewc-sl+ul": ("none", 0, "linear", "ewc on sl+ul", False, "none", False),
    "si-sl": ("none", 0, "linear", "si on sl", False, "none", False),
    "si-sl+ul": ("none", 0, "linear", "si on sl+ul", False, "none", False),
    "mas-sl": ("none", 0, "linear", "mas on sl", False, "none", False),
    "mas-sl+ul": ("none", 0, "linear", "mas on sl+ul", False, "none", False),
    "cgan+smb": ("labels", 0, "linear", None, True, "none", False),
    "ordisco": ("labels", 0, "linear", None, True, "online", True),
    "ordisco-reg": ("labels", 0, "linear", None, True, "online", False),
    "ordisco-replay": ("labels", 0, "linear", None, True, "none", True),
    "ordisco-mof": ("herding", 0, "linear", None, True, "online", True),
    "offline-all": ("labels", 0, "linear", None, True, "offline-all", False),
    "offline-last": ("labels", 0, "linear", None, True, "offline-last", False),
}


@pytest.fixture(scope="module")
def digits() -> Stream:
    return build_stream(STREAMS["digits-1"], "digits-1", seed=0)


def parts(row: Method) -> tuple[object, ...]:
    penalty = None if row.penalty == "none" else f"{row.penalty} on {row.penalty_on}"
    return row.memory, row.umb, row.head, penalty, row.gan, row.replay, row.stabilize


@pytest.mark.parametrize("name", PAPER)
def test_a_row_has_the_parts_that_the_paper_describes(name: str):
    assert parts(method(name)) == PAPER[name]


def test_the_table_is_whole_and_no_two_rows_are_alike():
    assert METHODS.keys() == PAPER.keys()
    assert len(TABLE) >= 20
    assert len({parts(row) for row in TABLE}) == len({row.title for row in TABLE}) == len(TABLE)
    assert all(row.where for row in TABLE)


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"method = 'icarl' is not allowed: one of jt, st, smb, .*, offline-last"):
        method("icarl")


@pytest.mark.parametrize("name", METHODS)
def test_every_row_learns_two_increments_of_digits_1(name: str, digits: Stream):
    learner = Learner(METHODS[name], digits.num_classes, digits.image_shape, TINY, fabric=FABRIC)
    start = learner.nets.C.flat.theta.clone()
    for index in range(2):
        learner.learn(digits[index])
        assert all(network.flat.theta.isfinite().all() for _, network in learner.nets.named())
    test = digits.test_after(1)
    p = learner.predict_proba(test.images[:50])
    assert p.shape == (50, 10)
    assert set(learner.predict(test.images[:50]).tolist()) <= set(range(10))
    assert not torch.equal(learner.nets.C.flat.theta, start)
    if METHODS[name].gan:
        assert learner.sample(torch.arange(10)).shape == (10, 1, 8, 8)


@pytest.mark.parametrize("name", ["ordisco", "smb"])
@pytest.mark.parametrize("loss", [*LOSSES, "none"])
def test_every_unlabelled_loss_with_and_without_replay(name: str, loss: str):
    learner = make_learner(name, unlabeled_loss=loss, threshold=0.0)
    for seed in (0, 1):
        learner.learn(increment_of([0, 1, 2], [0, 1, 2] * 3, seed))
    last = learner.trace[learner.settings.step.steps - 1].tolist()
    supervised, unlabeled, replay = last[:3]
    assert supervised > 0
    assert (unlabeled > 0) == (loss != "none")
    assert (replay > 0) == (name == "ordisco")
