"""Which images are worth a label? Uncertain ones that differ from each other.

Clustering uncertainty-weighted embeddings (CLUE, Prabhu et al. 2021, arXiv 2010.08666): k-means in the features of C′,
in which an image weighs as much as C′ is unsure of it, finds as many clusters as labels are wanted; the image nearest
to each centre is asked about. The weight comes from the margin (as Zhdanov 2019, arXiv 1901.05954), not from entropy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.learner.seeding import derive_seed

LOOKED_AT = 10_000  # images that are clustered at most; of more, as many are drawn
SURE = 1e-6  # the weight of an image of which C′ has no doubt
CHUNK = 4096  # images that are looked at at once


def ask(learner: Learner, images: Tensor, count: int, seed: int = 0) -> Tensor:
    """The numbers of `count` uint8 images worth a label, most uncertain first; all of them where there are fewer."""
    parts = [uncertainty(learner.predict_proba(part)).cpu() for part in images.split(CHUNK)]
    doubts = torch.cat([torch.zeros(0), *parts])
    return worth_a_label(doubts, lambda places: learner.features(images[places]), count, seed)


def worth_a_label(doubts: Tensor, features_of: Callable[[Tensor], Tensor], count: int, seed: int = 0) -> Tensor:
    """The same from the uncertainty of every image; features are wanted of those that are clustered."""
    if count < 1:
        raise OrdiscoError(f"count = {count} is not allowed: 1 or more")
    places = drawn(len(doubts), max(LOOKED_AT, count), seed)
    if len(places) > count:
        directions = torch.nn.functional.normalize(features_of(places).cpu())  # lengths tell little of what is shown
        places = places[spread(directions, doubts[places], count, seed)]
    return places[doubts[places].argsort(descending=True, stable=True)]


def uncertainty(probabilities: Tensor) -> Tensor:
    """One minus the margin between the two most likely classes; 1 where there is only one class.

    >>> uncertainty(torch.tensor([[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]))
    tensor([1.0000, 0.2000])
    """
    if probabilities.shape[1] < 2:
        return torch.ones(len(probabilities), device=probabilities.device)
    best = probabilities.topk(2, dim=1).values
    return 1 - (best[:, 0] - best[:, 1])


def drawn(total: int, most: int, seed: int) -> Tensor:
    """All numbers below `total`, or `most` of them, in order."""
    if total <= most:
        return torch.arange(total)
    draws = torch.Generator().manual_seed(derive_seed(seed, "ask"))
    return torch.randperm(total, generator=draws)[:most].sort().values


def spread(points: Tensor, weights: Tensor, count: int, seed: int = 0) -> Tensor:
    """`count` different points, each the nearest to the centre of a cluster of weighted k-means."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    where = points.double().numpy()
    means = KMeans(count, n_init=1, random_state=derive_seed(seed, "ask") % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
        means.fit(where, sample_weight=weights.double().clamp_min(SURE).numpy())
    free = np.ones(len(where), dtype=bool)
    chosen = []
    for centre in means.cluster_centers_:
        apart = np.where(free, np.square(where - centre).sum(1), np.inf)
        chosen.append(int(apart.argmin()))
        free[chosen[-1]] = False
    return torch.tensor(chosen)
