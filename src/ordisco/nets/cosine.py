"""The cosine head of the Unified Classifier (Hou et al. 2019)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CosineHead(nn.Module):
    """Class scores η · cos(weight, features): no class gains by a longer weight vector.

    η is learned. It starts at 10: from 1, softmax could not become confident within a short run.
    """

    def __init__(self, in_features: int, num_classes: int, scale: float = 10.0) -> None:
        super().__init__()
        self.in_features = in_features
        self.weight = nn.Parameter(F.normalize(torch.randn(num_classes, in_features), dim=1))
        self.scale = nn.Parameter(torch.tensor([scale]))

    def cosines(self, features: Tensor) -> Tensor:
        """The scores before η, in [−1, 1]: what `margin_ranking` compares."""
        return F.linear(F.normalize(features, dim=1), F.normalize(self.weight, dim=1))

    def forward(self, features: Tensor) -> Tensor:
        """Class scores of features (n, in_features)."""
        return self.scale * self.cosines(features)

    def grow(self, num_classes: int) -> None:
        """Add random rows for new classes; the old rows stay."""
        new = torch.randn(num_classes - len(self.weight), self.in_features).to(self.weight)
        self.weight = nn.Parameter(torch.cat([self.weight.detach(), F.normalize(new, dim=1)]))
