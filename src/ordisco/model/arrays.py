"""Images and labels that are in memory already: arrays of any usual layout to uint8 (n, channels, side, side)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ordisco.data.dataset import UNLABELED, natural_order
from ordisco.data.pixels import resize
from ordisco.errors import OrdiscoError, shown
from ordisco.model.about import Labels


class Named(NamedTuple):
    """Labels as positions in a list of names, −1 where there is none."""

    names: tuple[str, ...]
    labels: Tensor
    kind: Labels | None  # None where nothing is labelled


def images_of(images: Any) -> Tensor:
    """Images as uint8 (n, 1 or 3, height, width), whatever of the usual layouts they come in.

    >>> images_of(np.zeros((5, 8, 8), np.uint8)).shape, images_of(np.ones((5, 8, 8, 3))).max().item()
    (torch.Size([5, 1, 8, 8]), 255)
    """
    try:
        array = images.detach().cpu() if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
    except (TypeError, ValueError) as error:
        raise OrdiscoError(f"these are no images of one size: {error}") from error
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and array.shape[1] not in (1, 3) and array.shape[3] in (1, 3):
        array = array.permute(0, 3, 1, 2)
    if array.ndim != 4 or array.shape[1] not in (1, 3) or not all(array.shape[2:]):
        raise OrdiscoError(
            f"images of shape {tuple(array.shape)} are not allowed: (n, height, width), (n, height, width, 1 or 3) or "
            "(n, 1 or 3, height, width)"
        )
    if array.is_floating_point() and len(array):
        if not 0 <= float(array.min()) <= float(array.max()) <= 1:
            raise OrdiscoError("images of floating-point numbers are not allowed outside 0 to 1: give uint8 or scale")
        array = array.mul(255).round().to(torch.uint8)
    if array.dtype != torch.uint8 and len(array):
        raise OrdiscoError(f"images of {array.dtype} are not allowed: uint8, or floating-point numbers from 0 to 1")
    return array.to(torch.uint8).contiguous()


def fitted(images: Any, image_shape: tuple[int, int, int]) -> Tensor:
    """The same, as a model takes them: cut to the middle square and resized, grey ones also as colour."""
    pixels = images_of(images)
    channels, side, _ = image_shape
    if pixels.shape[1] > channels:
        raise OrdiscoError("these are colour images, the model takes grey ones: convert them, or make a new model")
    return resize(pixels, side).expand(-1, channels, -1, -1).contiguous()


def named_labels(labels: Any, count: int) -> Named:
    """Labels as texts or whole numbers; None, NaN, −1 and an empty text mean unlabelled.

    >>> named_labels(["shoe", None, "boot"], 3)
    Named(names=('boot', 'shoe'), labels=tensor([ 1, -1,  0]), kind='text')
    """
    if labels is None:
        return Named((), torch.full((count,), UNLABELED), None)
    plain = labels.tolist() if isinstance(labels, Tensor | np.ndarray) else list(labels)
    if len(plain) != count:
        raise OrdiscoError(f"{count:,} images have {len(plain):,} labels: give one an image, None where it is unknown")
    known = [_name(label) for label in plain]
    kinds = {type(label) for label in known if label is not None}
    if len(kinds) > 1:
        raise OrdiscoError("labels are texts and whole numbers mixed: use one kind")
    names = tuple(natural_order(sorted({str(label) for label in known if label is not None})))
    position = {name: index for index, name in enumerate(names)}
    numbers = [UNLABELED if label is None else position[str(label)] for label in known]
    kind: Labels | None = "text" if str in kinds else "number" if kinds else None
    return Named(names, torch.tensor(numbers, dtype=torch.int64), kind)


def _name(label: Any) -> str | int | None:
    if label is None or label == UNLABELED or label == "" or label != label:
        return None
    if isinstance(label, str):
        return label
    if isinstance(label, int) and not isinstance(label, bool) and label >= 0:
        return label
    raise OrdiscoError(f"the label {shown(label)} is not allowed: a text, a whole number from 0, or None (unlabelled)")


def typed(names: Sequence[str], kind: Labels) -> np.ndarray:
    """Names of classes as the user gave them: texts, or whole numbers."""
    return np.array([int(name) for name in names] if kind == "number" else list(names))
