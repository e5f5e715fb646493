"""`ORDisCoClassifier`: the learner as a scikit-learn classifier, in pipelines and searches like any other.

>>> from sklearn.datasets import load_digits
>>> images, labels = load_digits(return_X_y=True)
>>> classifier = ORDisCoClassifier(method="smb", steps=5)
>>> for part in (slice(0, 60), slice(60, 120)):
...     classifier = classifier.partial_fit(images[part], labels[part])
>>> classifier.predict(images[120:130]).shape, classifier.predict_proba(images[120:130]).shape
((10,), (10, 10))
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import safetensors.torch
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor

from ordisco.data.catalogue import OWN
from ordisco.data.dataset import UNLABELED
from ordisco.learner.learner import Learner
from ordisco.machine.processes import make_fabric
from ordisco.model.arrays import fitted
from ordisco.model.automatic import settings_for, side_for, steps_for
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment

TEXT_UNLABELED = ("", "-1")  # −1 among texts becomes the text "-1" in an array


class ORDisCoClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from labelled and unlabelled images, one delivery after the other, without the old images.

    Parameters
    ----------
    method : the row of `ordisco methods`; `ordisco` is the whole method, `smb` the label buffer without a generator.
    image_shape : of a flat row of X: (height, width), (height, width, channels) or (channels, height, width). Without
        it, rows are squares, filled up with the lowest value where they are not. X may also be images, (n, height,
        width) or (n, height, width, channels).
    steps : training steps of each `fit` and `partial_fit`; None: more for more images.
    settings : all other choices (`LearnerSettings`); None: those of the preset for images of this side.
    value_range : the lowest and the highest value of X; None: 0 and 255 for uint8, else those of the first X.
    random_state : seed of networks and mini-batches.

    Attributes
    ----------
    classes_ : the labels seen so far, sorted; new ones may come with every `partial_fit`.
    learner_ : the `Learner`, with its generator.

    A label of −1 (among texts also "", "-1" or None) means unlabelled, as in `sklearn.semi_supervised`.

    """

    learner_: Learner
    classes_: np.ndarray
    _order: list[Any]  # the labels in the order they came

    def __init__(
        self,
        method: str = "ordisco",
        *,
        image_shape: tuple[int, ...] | None = None,
        steps: int | None = None,
        settings: LearnerSettings | None = None,
        value_range: tuple[float, float] | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.image_shape = image_shape
        self.steps = steps
        self.settings = settings
        self.value_range = value_range
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ORDisCoClassifier:
        """Forget everything and learn X."""
        return self._learn(X, y, afresh=True)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> ORDisCoClassifier:
        """Learn X on top of what is known; `classes` may announce labels, which is not needed."""
        afresh = not hasattr(self, "learner_")
        if classes is not None:
            announced = np.unique(classes)
            unknown = np.setdiff1d(_known(_labels(y)), announced)
            if len(unknown):
                raise ValueError(f"y has the label {unknown[0]!r}, which is not among classes = {announced}")
        return self._learn(X, y, afresh)

    def predict(self, X: Any) -> np.ndarray:
        """The most likely label of each image."""
        best = self.predict_proba(X).argmax(axis=1)
        predicted: np.ndarray = self.classes_[best]
        return predicted

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each label, a column for each of `classes_`."""
        check_is_fitted(self, "learner_")
        probabilities = self.learner_.predict_proba(self._images(X, reset=False)).double().cpu().numpy()
        probabilities = probabilities[:, [self._order.index(label) for label in self.classes_.tolist()]]
        shares: np.ndarray = probabilities / probabilities.sum(axis=1, keepdims=True)
        return shares

    # ------------------------------------------------------------------ learning

    def _learn(self, X: Any, y: Any, afresh: bool) -> ORDisCoClassifier:
        """Learn on a copy, so that a failure leaves the classifier as it was."""
        if y is None:
            raise ValueError("ORDisCoClassifier requires y to be passed, but the target y is None: -1 is unlabelled")
        images = self._images(X, reset=afresh)
        labels = _labels(y)
        if len(labels) != len(images):
            raise ValueError(f"X has {len(images)} images and y {len(labels)} labels: inconsistent numbers of samples")
        known = _known(labels)
        if afresh and not len(known):
            raise ValueError("y has no label: label at least one image")
        order: list[Any] = [] if afresh else list(self._order)
        if order and len(known) and isinstance(order[0], str) != isinstance(known[0].item(), str):
            raise ValueError("y has texts and numbers as labels: use one kind")
        order += [label for label in known.tolist() if label not in order]
        learner = self._new_learner(images, len(order)) if afresh else self._going_on(images)
        slot_of = {label: slot for slot, label in enumerate(order)}
        slots = torch.tensor([slot_of.get(label, UNLABELED) for label in labels.tolist()], dtype=torch.int64)
        learner.learn(Increment(images, slots))
        self.learner_, self._order = learner, order
        self.classes_ = np.unique(np.array(order))
        return self

    def _new_learner(self, images: Tensor, classes: int) -> Learner:
        channels, side = images.shape[1:3]
        settings = self.settings or settings_for(side)
        steps = self.steps or steps_for(side, settings, len(images))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        return _learner(self.method, classes, (channels, side, side), settings.replace(steps=steps), seed)

    def _going_on(self, images: Tensor) -> Learner:
        """A copy of the learner, for the steps of these images."""
        old = self.learner_
        steps = self.steps or steps_for(images.shape[2], old.settings, len(images))
        tensors, values = old.saved()
        new = _learner(
            old.method.name, old.capacity, old.image_shape, old.settings.replace(steps=steps), old.setup.seed
        )
        new.load({name: tensor.clone() for name, tensor in tensors.items()}, values)
        return new

    # ------------------------------------------------------------------ images

    def _images(self, X: Any, reset: bool) -> Tensor:
        """X as uint8 images of the side that the networks take."""
        axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        array = validate_data(self, X, reset=reset, ensure_2d=axes <= 2, allow_nd=True, dtype="numeric")
        if array.ndim == 2:
            array = _as_images(array, self.image_shape)
        if reset:
            self.range_ = self.value_range or _range(array)
            self._image_shape = _shape_of(array)
        low, high = self.range_
        scaled = (array.astype(np.float64) - low) * (255 / (high - low) if high > low else 0)
        return fitted(scaled.round().clip(0, 255).astype(np.uint8), self._image_shape)

    # ------------------------------------------------------------------ scikit-learn's rules

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The learner as bytes and plain values: its parameters are views of one vector, which pickle would lose."""
        state: dict[str, Any] = dict(super().__getstate__())
        learner = state.pop("learner_", None)
        if learner is not None:
            tensors, values = learner.saved()
            data = safetensors.torch.save({name: tensor.cpu().clone().contiguous() for name, tensor in tensors.items()})
            made = (learner.method.name, learner.capacity, learner.image_shape, learner.settings, learner.setup.seed)
            state["_saved_learner"] = (made, data, values)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        saved = state.pop("_saved_learner", None)
        super().__setstate__(state)
        if saved is not None:
            made, data, values = saved
            self.learner_ = _learner(*made)
            self.learner_.load(safetensors.torch.load(data), values)


def _learner(
    name: str, classes: int, image_shape: tuple[int, int, int], settings: LearnerSettings, seed: int
) -> Learner:
    fabric = make_fabric(MachineSettings())
    shift = OWN.shift(image_shape[1])
    return Learner(method(name), classes, image_shape, settings, seed=seed, translate=shift, fabric=fabric)


def _labels(y: Any) -> np.ndarray:
    """Labels as an array of texts or whole numbers; what means unlabelled is −1, or "" among texts."""
    if isinstance(y, list | tuple | np.ndarray) and np.asarray(y).dtype == object:
        texts = any(isinstance(label, str) for label in y)
        y = np.array([("" if texts else UNLABELED) if label is None or label == UNLABELED else label for label in y])
    array: np.ndarray = column_or_1d(y, warn=True)
    assert_all_finite(array, input_name="y")
    check_classification_targets(array)
    if array.dtype.kind == "f":
        array = array.astype(np.int64)  # whole numbers: the check above has seen to it
    if array.dtype.kind in "US":
        array = np.where(np.isin(array, TEXT_UNLABELED), "", array)
    return array


def _known(labels: np.ndarray) -> np.ndarray:
    """The labels that are given, sorted."""
    given: np.ndarray = np.unique(labels[labels != ("" if labels.dtype.kind in "US" else UNLABELED)])
    return given


def _as_images(rows: np.ndarray, image_shape: tuple[int, ...] | None) -> np.ndarray:
    """Flat rows as images."""
    count, features = rows.shape
    if image_shape is not None:
        if math.prod(image_shape) != features or len(image_shape) not in (2, 3):
            raise ValueError(f"image_shape = {image_shape} does not fit rows of {features} features")
        return rows.reshape(count, *image_shape)
    side = math.isqrt(features)
    third = math.isqrt(features // 3)
    if side * side < features and third >= 8 and 3 * third * third == features:
        raise ValueError(
            f"{features} features may be colour images: give image_shape=({third}, {third}, 3) or (3, {third}, {third})"
        )
    side += side * side < features
    filled = np.full((count, side * side), rows.min(initial=0), dtype=rows.dtype)
    filled[:, :features] = rows
    return filled.reshape(count, side, side)


def _shape_of(images: np.ndarray) -> tuple[int, int, int]:
    """The shape that the networks see: channels, side, side."""
    first = images.ndim == 4 and images.shape[1] in (1, 3)
    channels = 1 if images.ndim == 3 else images.shape[1 if first else 3]
    side = side_for([min(images.shape[2:4] if first else images.shape[1:3])])
    return channels, side, side


def _range(array: np.ndarray) -> tuple[float, float]:
    return (0.0, 255.0) if array.dtype == np.uint8 else (float(array.min()), float(array.max()))
