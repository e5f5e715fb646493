"""What is said of a model without a test set: forgetting, shift, and the line that warns of it."""

import pytest
import torch

from conftest import TINY, blobs
from deliveries import CPU, arrays, new_model
from ordisco.data.dataset import Split
from ordisco.evaluation.shift import Shift
from ordisco.model import measures
from ordisco.model.automatic import settings_for, steps_for, threads_for
from ordisco.model.learning import warning_in_words
from ordisco.model.model import Model


class Always:
    """Sees the first class in every image."""

    classes = (0, 1, 2)

    def predict(self, images):
        return torch.zeros(len(images), dtype=torch.int64)


def held_out(per_class):
    return {"holdout": {"per_class": per_class}}


def test_forgetting_is_the_best_so_far_minus_now():
    holdout = Split(blobs([0, 0, 1, 2], seed=0), torch.tensor([0, 0, 1, 2]))
    history = [held_out({"a": 0.5}), {"holdout": None}, held_out({"a": 0.9, "b": 0.75}), held_out({"a": 0.2, "b": 0.5})]
    found = measures.on_holdout(Always(), holdout, ["a", "b", "c"], history)
    assert found["per_class"] == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert found["forgotten"] == {"a": 0.0, "b": 0.75}  # better than ever, worse than at its best; c is new
    assert found["forgetting"] == 0.375
    assert measures.on_holdout(Always(), holdout, ["a", "b", "c"], [])["forgetting"] is None


@pytest.mark.parametrize(
    ("now", "usual", "shifted"),
    [
        (Shift(0.5, 0.005), 0.2, True),
        (Shift(0.3, 0.005), 0.2, False),  # not twice as far as usual
        (Shift(0.5, 0.05), 0.2, False),  # chance is as far
        (Shift(0.1, 0.005), None, True),  # nothing to compare with
        (Shift(0.1, 0.005), -0.01, True),
    ],
)
def test_a_shift_is_far_from_chance_and_from_what_is_usual(now, usual, shifted):
    found = measures.compared(now, usual)
    assert found == {"mmd2": now.mmd2, "p": now.p, "usual": usual, "shifted": shifted}
    assert (warning_in_words({"shift": found}) is not None) == shifted


def test_images_of_another_kind_are_farther_from_those_of_g():
    quick = TINY.replace(statistics=4, ema=0.8, dropout=0.0)
    model = Model.create(None, side=8, settings=quick, machine=CPU)
    labels = ["a", "b"] * 5 + [None] * 60
    first = model.learn(arrays([0, 1] * 35), labels, steps=30)
    assert first["shift"] is None  # there is no past
    assert first["distance"] is not None
    same = model.learn(arrays([0, 1] * 35, seed=1), [None] * 70, steps=1)["shift"]
    other = model.learn(255 - arrays([8, 9] * 35, seed=2), [None] * 70, steps=1)["shift"]
    assert same["usual"] == first["distance"]
    assert other["mmd2"] > same["mmd2"]


def test_methods_without_a_generator_measure_no_shift():
    model = new_model(None, method="smb")
    model.learn(arrays([0, 1]), ["a", "b"], steps=1)
    assert model.learn(arrays([0, 1, 0], seed=1), None, steps=1)["shift"] is None


def test_more_images_take_more_steps_within_bounds():
    settings = settings_for(16)
    usual = settings.step.steps
    few, normal, many, huge = (steps_for(16, settings, images) for images in (1, 2_000, 8_000, 10**9))
    assert (few, normal, many, huge) == (usual // 2, usual, 2 * usual, 10 * usual)
    assert threads_for(16) == 1
