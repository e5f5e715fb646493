"""The classifier keeps scikit-learn's rules, and does more: unlabelled images, new classes later."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_classifiers_train, parametrize_with_checks

from conftest import TINY, blobs
from deliveries import QUICK
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.sklearn import ORDisCoClassifier

UNLABELLED = "-1 means unlabelled, as in scikit-learn's own semi-supervised classifiers"
TWO_STEPS = "two steps learn nothing; test_it_learns_what_scikit_learn_asks_for has enough of them"
EXPECTED = {
    "check_classifiers_classes": UNLABELLED,
    "check_classifiers_train": TWO_STEPS,
}


def tiny(**changes: Any) -> ORDisCoClassifier:
    return ORDisCoClassifier(**{"method": "smb", "steps": 2, "settings": QUICK, **changes})


@parametrize_with_checks([tiny()], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn_s_rules(estimator: ORDisCoClassifier, check: Any):
    check(estimator)


@pytest.mark.slow
def test_it_learns_what_scikit_learn_asks_for():
    enough = ORDisCoClassifier(
        "smb", steps=60, settings=TINY.replace(c_width=8, batch_labeled=32, ema=0.9, dropout=0.0)
    )
    check_classifiers_train("ORDisCoClassifier", enough)


def test_images_arrive_in_deliveries_with_new_classes_and_without_labels():
    names = np.array(["zero", "one", "two", "three", "four", "five"])
    images, labels = blobs([0, 1, 2] * 10, seed=0).numpy()[:, 0], names[[0, 1, 2] * 10]
    classifier = tiny(steps=5)
    hidden = np.where(np.arange(30) < 6, labels, "")
    assert classifier.partial_fit(images, hidden).classes_.tolist() == ["one", "two", "zero"]
    more = blobs([3, 1] * 5, seed=1).numpy()[:, 0]
    classifier.partial_fit(more, [*["three", "one"] * 2, *[None] * 6])
    assert classifier.classes_.tolist() == ["one", "three", "two", "zero"]
    classifier.partial_fit(more, np.full(10, -1))
    assert classifier.classes_.tolist() == ["one", "three", "two", "zero"]
    probabilities = classifier.predict_proba(images)
    assert probabilities.shape == (30, 4)
    assert (classifier.predict(images) == classifier.classes_[probabilities.argmax(1)]).all()
    assert classifier.learner_.classes == [0, 1, 2, 3]  # one, two, zero, three
    slots = classifier.learner_.predict_proba(blobs([0, 1, 2] * 10, seed=0))[:, [0, 3, 1, 2]]
    assert np.allclose(probabilities, slots.numpy(), atol=1e-5)


def test_the_columns_are_those_of_the_classes():
    classifier = tiny(method="smb", steps=40, settings=TINY.replace(c_width=8, batch_labeled=16, ema=0.9, dropout=0.0))
    images = blobs([0, 3] * 20, seed=0).numpy()[:, 0]
    classifier.partial_fit(images[::2], ["z"] * 20)
    classifier.partial_fit(images, ["z", "a"] * 20)
    assert classifier._order == ["z", "a"]
    assert classifier.score(images, ["z", "a"] * 20) > 0.9


def test_a_pickled_or_cloned_classifier():
    images = blobs([0, 1, 2] * 6, seed=0).numpy()[:, 0]
    classifier = tiny(method="ordisco").fit(images, [0, 1, 2] * 6)
    again = pickle.loads(pickle.dumps(classifier))
    assert (again.predict_proba(images) == classifier.predict_proba(images)).all()
    for each in (classifier, again):
        each.partial_fit(images, [2, 1, 0] * 6)
    assert (again.predict_proba(images) == classifier.predict_proba(images)).all()
    assert not hasattr(clone(classifier), "learner_")


def test_a_failure_leaves_it_as_it_was(monkeypatch: pytest.MonkeyPatch):
    images = blobs([0, 1] * 6, seed=0).numpy()[:, 0]
    classifier = tiny().fit(images, [0, 1] * 6)
    before = classifier.predict_proba(images)

    def interrupted(self: Learner) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            classifier.partial_fit(images, [4, 5] * 6)
    assert classifier.classes_.tolist() == [0, 1]
    assert (classifier.predict_proba(images) == before).all()


def test_pipelines_and_searches():
    images, labels = load_digits(return_X_y=True)
    images, labels = images[:60], labels[:60] % 3
    scores = cross_val_score(make_pipeline(MinMaxScaler(), tiny(image_shape=(8, 8))), images, labels, cv=2)
    assert scores.shape == (2,)
    search = GridSearchCV(tiny(), {"steps": [1, 2]}, cv=2).fit(images, labels)
    assert search.best_params_["steps"] in (1, 2)


@pytest.mark.parametrize(
    ("shape", "given", "seen"),
    [
        ((9, 64), None, (1, 8, 8)),
        ((9, 50), None, (1, 8, 8)),
        ((9, 192), (8, 8, 3), (3, 8, 8)),
        ((9, 192), (3, 8, 8), (3, 8, 8)),
        ((9, 20, 17), None, (1, 16, 16)),
        ((9, 16, 16, 3), None, (3, 16, 16)),
        ((9, 1, 8, 8), None, (1, 8, 8)),
    ],
)
def test_images_of_many_shapes(shape: tuple[int, ...], given: tuple[int, ...] | None, seen: tuple[int, ...]):
    images = np.random.RandomState(0).rand(*shape)
    classifier = tiny(image_shape=given, steps=1).fit(images, [0, 1, -1] * 3)
    assert classifier.learner_.image_shape == seen
    assert classifier.predict(images).shape == (9,)


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (np.zeros((4, 192)), [0, 1] * 2, r"give image_shape=\(8, 8, 3\)"),
        (np.zeros((4, 64)), [-1] * 4, "no label"),
        (np.zeros((4, 64)), [0, 1], "inconsistent"),
        (np.zeros((4, 64)), None, "requires y"),
        (np.zeros((4, 8, 8, 8)), [0, 1] * 2, "shape"),
    ],
)
def test_what_cannot_be_learned(images: np.ndarray, labels: Any, words: str):
    with pytest.raises((ValueError, OrdiscoError), match=words):
        tiny().fit(images, labels)


def test_announced_classes_are_checked():
    images = blobs([0, 1] * 3, seed=0).numpy()[:, 0]
    with pytest.raises(ValueError, match="not among classes"):
        tiny().partial_fit(images, [0, 7] * 3, classes=[0, 1])
    classifier = tiny().partial_fit(images, [0, 1] * 3, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="texts and numbers"):
        classifier.partial_fit(images, ["a", "b"] * 3)
    with pytest.raises(ValueError, match="image_shape"):
        tiny(image_shape=(5, 5)).fit(np.zeros((2, 64)), [0, 1])
