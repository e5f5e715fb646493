"""Other ways to choose images worth a label, for `ask_study.py --arms`: what `ordisco ask` was chosen among."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn.functional import normalize

from ordisco.evaluation.ask import spread, uncertainty
from ordisco.learner.learner import Learner

NEIGHBOURS = 20


def zhdanov(learner: Learner, images: Tensor, count: int, seed: int) -> Tensor:
    """Amid clusters of weighted k-means, of the 10 · `count` images with the smallest margin alone (Zhdanov 2019)."""
    doubts = uncertainty(learner.predict_proba(images))
    best = doubts.argsort(descending=True, stable=True)[: 10 * count]
    return best[spread(learner.features(images[best]), doubts[best], count, seed)]


def badge(learner: Learner, images: Tensor, count: int, seed: int) -> Tensor:
    """k-means++ among the gradients of the head for the guessed label (Ash et al. 2020)."""
    draws = torch.Generator().manual_seed(seed)
    errors = learner.predict_proba(images)
    errors = errors - torch.nn.functional.one_hot(errors.argmax(1), errors.shape[1])
    points = (errors[:, :, None] * learner.features(images)[:, None]).flatten(1).double()
    chosen = [int(points.norm(dim=1).argmax())]
    apart = (points - points[chosen[0]]).square().sum(1)
    while len(chosen) < count:
        chosen.append(int(torch.multinomial(apart.clamp_min(1e-12), 1, generator=draws)))
        apart = torch.minimum(apart, (points - points[chosen[-1]]).square().sum(1))
    return torch.tensor(chosen)


def typiclust(learner: Learner, images: Tensor, count: int, seed: int) -> Tensor:
    """The most typical images of the largest clusters without a label (Hacohen et al. 2022)."""
    return by_clusters(learner, images, count, seed, doubt=False)


def typiclust_doubt(learner: Learner, images: Tensor, count: int, seed: int) -> Tensor:
    """The same with the clusters first whose doubts sum to most."""
    return by_clusters(learner, images, count, seed, doubt=True)


def by_clusters(learner: Learner, images: Tensor, count: int, seed: int, doubt: bool) -> Tensor:
    """As many clusters as labels so far and labels wanted; the image nearest to its neighbours of each."""
    memory = learner.state.memories.data
    assert memory is not None, "the method keeps no labelled images"
    points = normalize(learner.features(images))
    known = normalize(learner.features(memory.images))
    clusters = len(known) + count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer different points than clusters
        means = KMeans(clusters, n_init=1, random_state=seed).fit(torch.cat([points, known]).double().numpy())
    labels = torch.from_numpy(means.labels_.astype(np.int64))
    mine, theirs = labels[: len(points)], labels[len(points) :]
    weight = uncertainty(learner.predict_proba(images)) if doubt else torch.ones(len(points))
    size = torch.bincount(mine, weights=weight, minlength=clusters).tolist()
    taken = torch.bincount(theirs, minlength=clusters).tolist()
    chosen: list[int] = []
    for cluster in sorted(range(clusters), key=lambda each: (taken[each] > 0, -size[each])):
        (members,) = torch.where(mine == cluster)
        if len(members) and len(chosen) < count:
            near = torch.cdist(points[members], points[members]).sort(1).values[:, 1 : NEIGHBOURS + 1]
            chosen.append(int(members[near.mean(1).argmin()] if len(members) > 1 else members[0]))
    return torch.tensor(chosen)


CANDIDATES: dict[str, Callable[[Learner, Tensor, int, int], Tensor]] = {
    "zhdanov": zhdanov,
    "badge": badge,
    "typiclust": typiclust,
    "typiclust-doubt": typiclust_doubt,
}
