"""Which images are worth a label? Typical ones of what has no label yet and C′ is unsure of.

TypiClust (Hacohen, Dekel & Weinshall 2022, arXiv 2202.02794): k-means in the features of C′ finds as many clusters as
there are labels so far and labels wanted. Of the clusters without a label the largest come first, and the image of each
that is nearest to its neighbours is asked about. Here an image counts by its uncertainty when clusters are compared.
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

NEIGHBOURS = 20  # whose mean distance tells how typical an image is
CLUSTERS = 500  # at most
LOOKED_AT = 10_000  # images, and labelled images, at most; of more as many are drawn
SMALLEST = 1e-6  # distance and doubt, so that neither decides alone
CHUNK = 1024  # images that are looked at at once


def ask(learner: Learner, images: Tensor, count: int, seed: int = 0) -> Tensor:
    """The numbers of `count` uint8 images worth a label, most wanted first; all of them where there are fewer."""
    parts = [uncertainty(learner.predict_proba(part)).cpu() for part in images.split(CHUNK)]
    doubts = torch.cat([torch.zeros(0), *parts])
    return worth_a_label(doubts, lambda places: learner.features(images[places]), labelled(learner, seed), count, seed)


def worth_a_label(
    doubts: Tensor, features_of: Callable[[Tensor], Tensor], known: Tensor, count: int, seed: int = 0
) -> Tensor:
    """The same from the uncertainty of every image, features of some images, and those of the labelled ones."""
    if count < 1:
        raise OrdiscoError(f"count = {count} is not allowed: 1 or more")
    places = drawn(len(doubts), max(LOOKED_AT, count), seed)
    if len(places) <= count:
        return places
    return places[typical(features_of(places).cpu(), doubts[places], known, count, seed)]


def labelled(learner: Learner, seed: int = 0) -> Tensor:
    """The features of the labelled images that a learner keeps."""
    memory = learner.state.memories.data
    if memory is None:
        return torch.zeros(0)
    (places,) = torch.where(memory.labels.cpu() >= 0)
    places = places[drawn(len(places), LOOKED_AT, seed)]
    return learner.features(memory.images[places.to(memory.images.device)]).cpu() if len(places) else torch.zeros(0)


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


def typical(features: Tensor, doubts: Tensor, known: Tensor, count: int, seed: int = 0) -> Tensor:
    """`count` different images: the most typical one of each cluster in turn, then the second of each, …

    Clusters with the fewest labelled images come first; of these, the one whose doubts sum to most.
    """
    points = directions(features)
    together = torch.cat([points, directions(known.reshape(-1, features.shape[1]))])
    clusters = clustered(together, min(len(known) + count, CLUSTERS), seed)
    mine, theirs = clusters[: len(points)], clusters[len(points) :]
    most = int(clusters.max()) + 1
    labels = torch.bincount(theirs, minlength=most)
    weight = torch.bincount(mine, weights=doubts.double().clamp_min(SMALLEST), minlength=most)
    rank = torch.zeros(len(points), dtype=torch.int64)
    for cluster in mine.unique().tolist():
        (members,) = torch.where(mine == cluster)
        best = typicality(points[members]).argsort(descending=True, stable=True)
        rank[members[best]] = torch.arange(len(members))
    order = np.lexsort((mine.numpy(), -weight[mine].numpy(), labels[mine].numpy(), rank.numpy()))
    return torch.from_numpy(order[:count])


def directions(features: Tensor) -> Tensor:
    """Features of length 1."""
    return torch.nn.functional.normalize(features.double(), dim=-1)


def clustered(points: Tensor, count: int, seed: int = 0) -> Tensor:
    """The cluster of each point, by k-means."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    means = KMeans(min(count, len(points)), n_init=1, random_state=derive_seed(seed, "ask") % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different points than clusters
        return torch.from_numpy(means.fit_predict(points.numpy()).astype(np.int64))


def typicality(points: Tensor) -> Tensor:
    """One over the mean distance to the nearest neighbours.

    >>> typicality(torch.tensor([[0.0], [1.0], [3.0]])).argmax()
    tensor(1)
    """
    near = min(NEIGHBOURS, len(points) - 1)
    if near < 1:
        return torch.ones(len(points), dtype=points.dtype)
    exact = "donot_use_mm_for_euclid_dist"  # equal images are equally typical
    apart = (torch.cdist(part, points, compute_mode=exact) for part in points.split(CHUNK))
    parts = [distances.topk(near + 1, largest=False).values.sum(1) for distances in apart]
    return 1 / (torch.cat(parts) / near).clamp_min(SMALLEST)  # an image's distance to itself is 0
