"""Channels-last memory, in which convolutions run fastest, for images of any number of channels."""

from __future__ import annotations

from torch import Tensor


def channels_last(x: Tensor) -> Tensor:
    """The same images (n, c, h, w) with the channels of a pixel side by side.

    With one channel both layouts hold the same bytes, and torch would take the tensor, and all that is computed
    from it, for channels-first; the strides have to say it.
    """
    n, c, h, w = x.shape
    if c == 1:
        return x.reshape(n, h, w, 1).permute(0, 3, 1, 2)
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # as .contiguous(channels_last), but for vmap too


def pixels_first(x: Tensor) -> Tensor:
    """(n, c, h, w) → (n, h, w, c): for channels-last images a view, in the order of their memory."""
    return x.permute(0, 2, 3, 1)


def first_map(features: Tensor, channels: int, side: int) -> Tensor:
    """Rows of features as maps (n, channels, side, side) that are channels-last without a copy."""
    return features.view(-1, side, side, channels).permute(0, 3, 1, 2)
