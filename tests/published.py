"""Noise in the shape of the published data sets, without their files."""

import pytest
import torch

from conftest import blobs
from ordisco.data.dataset import Split
from ordisco.data.unread import Part, Unread, whole


def published(name: str, *_: object, size: int | None = None, num_classes: int | None = None, **__: object) -> Unread:
    """Noise in the shape of a published data set, enough for every label of the paper's streams."""
    classes, side = num_classes or 10, size or 32
    per_class = {"svhn": 120, "cifar10": 400, "tiny-imagenet": 60}[name]

    def part(count: int, seed: int) -> Part:
        labels = torch.arange(classes).repeat(count)
        images = blobs([0], seed, 3, side).repeat(len(labels), 1, 1, 1)
        return whole(Split(images + labels[:, None, None, None].to(torch.uint8), labels))

    return Unread(name, tuple(f"class {n}" for n in range(classes)), part(per_class, 0), part(2, 1), False, 2)


@pytest.fixture
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordisco.data.load.find", published)
    monkeypatch.setattr("ordisco.paper.make.check_data", lambda *args: None)
