"""What G has learned, by a judge: do its images show their class (Table 4), do they cover the data (Fig. 2)?

Coverage is measured in the judge's features, next to that of a UMB of G's bytes. It grows with the number of points:
- G gives any number: as many as there are reference points, and, for an even fight, as many as the UMB holds;
- the UMB gives what it holds, a uniform sample of the unlabelled images seen;
- other real images, as many as there are reference points, show what a perfect generator would reach.
Reference points are test images, new to everyone, or training images as in the paper, where the UMB has the advantage
that it covers its own images by definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.errors import OrdiscoError
from ordisco.evaluation.accuracy import Evaluation, evenly
from ordisco.evaluation.coverage import K, in_balls, nearest_radii
from ordisco.learner.buffers import Reservoir
from ordisco.learner.learner import Learner
from ordisco.learner.memories import images_of_G
from ordisco.learner.seeding import derive_seed
from ordisco.streams.stream import Stream

SAMPLES_PER_CLASS = 200
POINTS = 5_000


@dataclass(frozen=True)
class Covering:
    """How well one set of points covers the reference."""

    reference: str  # test or train
    reference_points: int
    points_of: str  # generated, generated as many as UMB, UMB, real
    points: int
    density: float
    coverage: float


@dataclass(frozen=True)
class Images:
    """What is compared: uint8 images of the classes that the learner has seen."""

    train: Tensor
    test: Tensor
    umb: Tensor


def check_generator(learner: Learner) -> None:
    """Refuse a learner from which there is nothing to judge."""
    if not learner.has_generator:
        raise OrdiscoError(f"the method {learner.method.name} has no generator: give runs of ordisco, cgan+smb, …")
    if not learner.increments:
        raise OrdiscoError("the run has not finished its first increment: go on with `ordisco resume` first")


def sample_accuracy(learner: Learner, judge: Learner, per_class: int = SAMPLES_PER_CLASS, seed: int = 0) -> Evaluation:
    """The class that was asked of G down, the class that the judge sees across."""
    check_generator(learner)
    classes = 1 + max(*learner.classes, *judge.classes)
    asked = torch.tensor(sorted(learner.classes)).repeat_interleave(per_class)
    return Evaluation.of(asked, judge.predict(learner.sample(asked, seed)), classes)


def seen_images(stream: Stream, learner: Learner, seed: int = 0, umb_images: int | None = None) -> Images:
    """Training and test images of what was learned, and a UMB of so many images, or of G's bytes, filled on the way."""
    check_generator(learner)
    room = umb_images or images_of_G(learner.settings, stream.image_shape, learner.capacity)
    umb = Reservoir(room, stream.image_shape)
    draws = torch.Generator().manual_seed(derive_seed(seed, "umb"))
    train = []
    for index in range(learner.increments):
        train.append(stream[index].images)
        umb.add(stream[index].unlabeled, index, draws)
    return Images(torch.cat(train), stream.test_after(learner.increments - 1).images, umb.images)


def coverings(
    learner: Learner, judge: Learner, images: Images, points: int = POINTS, k: int = K, seed: int = 0
) -> list[Covering]:
    """Coverage of test and of training images by G, by the UMB and by other real images."""
    found = []
    umb = judge.features(images.umb)
    for name, reference, others in (("test", images.test, images.train), ("train", images.train, images.test)):
        real = judge.features(some(reference, points, seed))
        radii = nearest_radii(real, k)
        generated = judge.features(generate(learner, len(real), seed))
        few = judge.features(generate(learner, len(umb), seed))
        fresh = judge.features(some(others, len(real), seed))
        sets = {"generated": generated, "generated as many as UMB": few, "UMB": umb, "real": fresh}
        for points_of, features in sets.items():
            if len(features):
                got = in_balls(real, radii, features, k)
                found.append(Covering(name, len(real), points_of, len(features), got.density, got.coverage))
    return found


def generate(learner: Learner, count: int, seed: int = 0) -> Tensor:
    """Images of G, the same number (but one) of every class seen."""
    return learner.sample(evenly(sorted(learner.classes), count), seed)


def some(images: Tensor, count: int, seed: int = 0) -> Tensor:
    """At most so many of the images, drawn without replacement."""
    draws = torch.Generator().manual_seed(derive_seed(seed, "some"))
    return images[torch.randperm(len(images), generator=draws)[:count]]
