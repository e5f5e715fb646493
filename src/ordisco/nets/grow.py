"""Rows for new classes: what was learned of the old ones stays as it is."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def grow_rows(old: Tensor, new: Tensor) -> nn.Parameter:
    """`new`, freshly initialised and larger in its first dimension, with the rows of `old` copied in."""
    grown = new.to(old.device)
    with torch.no_grad():
        grown[: len(old)] = old
    return nn.Parameter(grown)


def grow_linear(layer: nn.Linear, rows: int) -> None:
    """Add output rows to a linear layer."""
    fresh = nn.Linear(layer.in_features, rows, bias=layer.bias is not None)
    layer.weight = grow_rows(layer.weight, fresh.weight.detach())
    if layer.bias is not None:
        layer.bias = grow_rows(layer.bias, fresh.bias.detach())
    layer.out_features = rows
