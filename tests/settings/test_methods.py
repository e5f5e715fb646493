"""The table of methods: checked against the paper, and every row runs."""

from dataclasses import replace

import pytest
import torch

from conftest import FABRIC, TINY, increment_of, make_learner
from ordisco.errors import UsageError
from ordisco.learner.learner import Learner
from ordisco.maths.unlabeled import UNLABELED_LOSSES
from ordisco.settings.methods import METHODS, TABLE, Method, method
from ordisco.streams.build import build_stream
from ordisco.streams.catalogue import STREAMS
from ordisco.streams.stream import Stream

# The rows of the paper, read from it and not from the table:
# memory, UMB (G's bytes, images), head, penalty on C, GAN, replay, stabilisation
PAPER = {
    "jt": ("all", (0, 0), "linear", None, False, "none", False),
    "st": ("none", (0, 0), "linear", None, False, "none", False),
    "smb": ("labels", (0, 0), "linear", None, False, "none", False),
    "smb-mof": ("herding", (0, 0), "linear", None, False, "none", False),
    "smb-mof+umb": ("herding", (1, 0), "linear", None, False, "none", False),
    "smb-mof+umb+uc": ("herding", (1, 0), "cosine", None, False, "none", False),
    "smb+umb": ("labels", (1, 0), "linear", None, False, "none", False),
    "smb+4umb": ("labels", (4, 0), "linear", None, False, "none", False),
    "smb+umb-500": ("labels", (0, 500), "linear", None, False, "none", False),
    "smb+umb-1000": ("labels", (0, 1_000), "linear", None, False, "none", False),
    "smb+umb-10000": ("labels", (0, 10_000), "linear", None, False, "none", False),
    "smb+umb+uc": ("labels", (1, 0), "cosine", None, False, "none", False),
    "smb+4umb+uc": ("labels", (4, 0), "cosine", None, False, "none", False),
    "ewc-sl": ("none", (0, 0), "linear", "ewc on sl", False, "none", False),
    "ewc-sl+ul": ("none", (0, 0), "linear", "ewc on sl+ul", False, "none", False),
    "si-sl": ("none", (0, 0), "linear", "si on sl", False, "none", False),
    "si-sl+ul": ("none", (0, 0), "linear", "si on sl+ul", False, "none", False),
    "mas-sl": ("none", (0, 0), "linear", "mas on sl", False, "none", False),
    "mas-sl+ul": ("none", (0, 0), "linear", "mas on sl+ul", False, "none", False),
    "cgan+smb": ("labels", (0, 0), "linear", None, True, "none", False),
    "ordisco": ("labels", (0, 0), "linear", None, True, "online", True),
    "ordisco-reg": ("labels", (0, 0), "linear", None, True, "online", False),
    "ordisco-mof": ("herding", (0, 0), "linear", None, True, "online", True),
    "offline-all": ("labels", (0, 0), "linear", None, True, "offline-all", False),
    "offline-last": ("labels", (0, 0), "linear", None, True, "offline-last", False),
}


@pytest.fixture(scope="module")
def digits() -> Stream:
    return build_stream(STREAMS["digits-1"], "digits-1", seed=0)


def parts(row: Method) -> tuple[object, ...]:
    penalty = None if row.penalty == "none" else f"{row.penalty} on {row.penalty_on}"
    return row.memory, (row.umb_of_G, row.umb_images), row.head, penalty, row.gan, row.replay, row.stabilize


@pytest.mark.parametrize("name", PAPER)
def test_a_row_has_the_parts_that_the_paper_describes(name: str):
    assert parts(method(name)) == PAPER[name]


def test_the_table_is_whole_and_no_two_rows_are_alike():
    assert {row.name for row in TABLE if row.where != "not in the paper"} == PAPER.keys()
    assert len({parts(row) for row in TABLE}) == len({row.title for row in TABLE}) == len(TABLE)
    assert all(row.where for row in TABLE)


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"method = 'icarl' is not allowed: one of jt, st, smb, .*, offline-last"):
        method("icarl")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"memory": "label"}, r"memory = 'label' is not one of \('none', 'labels', 'herding', 'all'\)"),
        ({"head": "cosinus"}, r"head = 'cosinus' is not one of \('linear', 'cosine'\)"),
        ({"penalty": "lwf"}, r"penalty = 'lwf' is not one of \('none', 'ewc', 'si', "),
        ({"penalty": None}, r"penalty = None is not one of"),
        ({"penalty": "ewc", "penalty_on": "ul"}, r"penalty_on = 'ul' is not one of \('sl', 'sl\+ul'\)"),
        (
            {"gan": True, "replay": "on-line"},
            r"replay = 'on-line' is not one of \('none', 'online', 'last', 'offline-all', ",
        ),
        ({"gan": True, "replay": "offline"}, r"replay = 'offline' is not one of"),
        ({"stabilize": True}, "stabilize needs a GAN, set gan=True"),
        ({"replay": "online"}, "replay needs a GAN, set gan=True"),
        ({"replay": "offline-last"}, "replay needs a GAN, set gan=True"),
        ({"umb_of_G": 1, "umb_images": 500}, "a UMB has umb_of_G or umb_images, not both"),
        ({"umb_of_G": -1}, ".*not below 0"),
        ({"umb_images": -500}, ".*not below 0"),
    ],
    ids=str,
)
def test_a_row_that_contradicts_itself_is_refused_when_it_is_made(parts: dict[str, object], message: str):
    with pytest.raises(UsageError, match=f"^method 'mine': {message}") as error:
        Method("mine", "Mine", "nowhere", **parts)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


def test_a_new_row_cannot_be_made_from_an_old_one_by_a_contradiction():
    with pytest.raises(UsageError, match="method 'ordisco': stabilize needs a GAN"):
        replace(method("ordisco"), gan=False)
    assert replace(method("ordisco"), stabilize=False).replay == "online"


@pytest.mark.parametrize(
    ("name", "has_umb", "offline"),
    [("smb", False, False), ("smb+umb", True, False), ("smb+umb-500", True, False), ("offline-all", False, True)],
)
def test_what_follows_from_a_row(name: str, has_umb: bool, offline: bool):
    assert (method(name).has_umb, method(name).offline) == (has_umb, offline)


def test_whose_replayed_images_are_real_for_d():
    rehearse = {name for name, row in METHODS.items() if row.rehearses}
    assert rehearse == {"offline-last", "ordisco-last", "ordisco-no-images", "ordisco+"}
    assert not method("ordisco-last").offline  # as many steps as the others, and no generator kept beside G


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.slow
def test_every_row_learns_two_increments_of_digits_1(name: str, digits: Stream):
    learner = Learner(METHODS[name], digits.num_classes, digits.image_shape, TINY, fabric=FABRIC)
    start = learner.state.nets.C.flat.theta.clone()
    for index in range(2):
        learner.learn(digits[index])
        assert all(network.flat.theta.isfinite().all() for _, network in learner.state.nets.named())
    test = digits.test_after(1)
    p = learner.predict_proba(test.images[:50])
    assert p.shape == (50, 10)
    assert set(learner.predict(test.images[:50]).tolist()) <= set(range(10))
    assert not torch.equal(learner.state.nets.C.flat.theta, start)
    if METHODS[name].gan:
        assert learner.sample(torch.arange(10)).shape == (10, 1, 8, 8)


@pytest.mark.parametrize("name", ["ordisco", "smb"])
@pytest.mark.parametrize("loss", [*UNLABELED_LOSSES, "none"])
@pytest.mark.slow
def test_every_unlabelled_loss_with_and_without_replay(name: str, loss: str):
    learner = make_learner(name, unlabeled_loss=loss, threshold=0.0)
    for seed in (0, 1):
        learner.learn(increment_of([0, 1, 2], [0, 1, 2] * 3, seed))
    last = learner.state.trace[learner.settings.step.steps - 1].tolist()
    supervised, unlabeled, replay = last[:3]
    assert supervised > 0
    assert (unlabeled > 0) == (loss != "none")
    assert (replay > 0) == (name == "ordisco")
