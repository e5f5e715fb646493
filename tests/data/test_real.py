"""The real files, where `ORDISCO_DATA` points to them; the figures are those of the paper's streams."""

import os
import time
from pathlib import Path

import pytest

from ordisco.data.catalogue import CATALOGUE
from ordisco.streams.build import build_stream
from ordisco.streams.catalogue import STREAMS
from ordisco.streams.stream import Stream

ROOT = Path(os.environ.get("ORDISCO_DATA", "/nonexistent"))

pytestmark = pytest.mark.filterwarnings("ignore::ordisco.errors.OrdiscoWarning")


def stream(name: str) -> Stream:
    for source in CATALOGUE[STREAMS[name].dataset].sources:
        if not (ROOT / source.filename).is_file():
            pytest.skip(f"needs {source.filename} in ORDISCO_DATA")
    return build_stream(STREAMS[name], name, 0, ROOT)


@pytest.mark.parametrize(
    ("name", "increments", "labeled", "images", "test"),
    [
        ("svhn-1", 30, 10, 73_257, 26_032),
        ("svhn-3", 30, 30, 73_257, 26_032),
        ("cifar10-5", 30, 50, 50_000, 10_000),
        ("cifar10-13", 30, 130, 50_000, 10_000),
        ("tiny-imagenet-5-10c-32", 10, 50, 5_000, 500),
        ("tiny-imagenet-5-20c-32", 10, 100, 10_000, 1_000),
        ("svhn-1-new-class", 5, 60, 73_257, 26_032),
        ("cifar10-5-new-class", 5, 300, 50_000, 10_000),
        ("tiny-imagenet-5-10c-32-new-class", 5, 100, 5_000, 500),
    ],
)
def test_figures_of_the_papers_streams(name: str, increments: int, labeled: int, images: int, test: int) -> None:
    summary = stream(name).summary()
    rows = summary["increments"]
    assert len(rows) == increments
    assert {row["labeled"] for row in rows} == {labeled}
    assert sum(row["images"] for row in rows) == images
    assert summary["test_images"] == test


def test_cached_cifar10_loads_within_a_second() -> None:
    dataset = stream("cifar10-5").dataset
    start = time.perf_counter()
    stream("cifar10-5")
    assert time.perf_counter() - start < 1.5  # with the drawing of the stream
    assert dataset.train.images.float().mean() == pytest.approx(120.7, abs=0.5)
