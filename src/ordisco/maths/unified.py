"""The Unified Classifier (Hou et al. 2019): losses that keep old feature directions."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor


def less_forget(features_old: Tensor, features_new: Tensor) -> Tensor:
    """The less-forget constraint (n,): 1 − cos of the features before and now, constant in the old ones."""
    return 1 - F.cosine_similarity(features_old.detach(), features_new, dim=1)


def less_forget_weight(base: float, num_old: int, num_new: int) -> float:
    """λ = λ_base · √(old classes / new classes); λ_base where no new class comes (New Instance)."""
    return base * math.sqrt(num_old / num_new) if num_new > 0 else base


def margin_ranking(cosines: Tensor, labels: Tensor, num_old: int, top_k: int = 2, margin: float = 0.5) -> Tensor:
    """The inter-class separation: Σ_k max(0, margin − cos(own class) + cos(k-th nearest new class)).

    The mean over the images of old classes (label < `num_old`); 0 where there is none, or no new class.
    """
    top_k = min(top_k, cosines.shape[1] - num_old)
    old = (labels >= 0) & (labels < num_old)
    own = cosines.gather(1, labels.clamp(min=0)[:, None])
    nearest = cosines[:, num_old:].topk(top_k, dim=1).values
    return ((margin - own + nearest).clamp(min=0).sum(1) * old).sum() / old.sum().clamp(min=1)


def imprinted(features: Tensor, old_embeddings: Tensor) -> Tensor:
    """The first embedding of a new class: the mean direction of its features (n, d), at the old ones' mean length."""
    direction = F.normalize(F.normalize(features, dim=1).mean(0), dim=0)
    length: Tensor = old_embeddings.norm(dim=1).mean()
    return direction * length
