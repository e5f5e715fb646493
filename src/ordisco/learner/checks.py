"""Images that a learner cannot take are refused before anything is changed."""

from __future__ import annotations

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.streams.stream import Increment

SIDES = (8, 16, 32, 64)


def check_image_shape(image_shape: tuple[int, int, int]) -> None:
    """Refuse images that the networks cannot take."""
    if image_shape[0] not in (1, 3) or image_shape[1] != image_shape[2] or image_shape[1] not in SIDES:
        raise OrdiscoError(
            f"images of shape {tuple(image_shape)} do not fit: 1 or 3 channels, square, side {SIDES}; give --size"
        )


def check_images(images: Tensor, image_shape: tuple[int, int, int]) -> None:
    """Refuse images of another shape or type."""
    if images.dtype != torch.uint8 or tuple(images.shape[1:]) != tuple(image_shape):
        raise OrdiscoError(
            f"these are {images.dtype} images of shape {tuple(images.shape[1:])}; "
            f"this learner takes torch.uint8 of shape {tuple(image_shape)}"
        )


def check_increment(increment: Increment, image_shape: tuple[int, int, int]) -> None:
    """Refuse what cannot be learned before anything is changed."""
    check_images(increment.images, image_shape)
    if not len(increment.images) and not increment.num_unlabeled:
        raise OrdiscoError("an increment has no images: leave it out of the stream")
    labels = increment.labels
    if labels.dtype != torch.int64 or labels.shape != increment.images.shape[:1] or bool((labels < -1).any()):
        raise OrdiscoError(
            f"an increment of {len(increment.images)} images has {labels.dtype} labels of shape {tuple(labels.shape)}; "
            "give one torch.int64 label an image, -1 where it is unknown"
        )
