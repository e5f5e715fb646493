"""Images in a file: read as they are drawn, never copied as a whole."""

from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import TINY, blobs
from deliveries import CPU, new_model
from ordisco.data.own import Listed
from ordisco.learner.pools import lay_out
from ordisco.model import pictures
from ordisco.model.delivery import from_arrays
from ordisco.model.mapped import MappedImages
from ordisco.model.model import Model
from ordisco.model.work import Work
from ordisco.streams.stream import Increment


@pytest.fixture
def file(tmp_path):
    images = blobs([0, 1, 2, 3, 4, 5], seed=0)
    (tmp_path / "images").write_bytes(images.numpy().tobytes())
    return tmp_path / "images", images


def test_the_tensor_is_the_file_also_after_a_rest(file):
    path, images = file
    mapped = MappedImages(path, tuple(images.shape))
    assert torch.equal(mapped.tensor, images)
    mapped.rest()
    assert torch.equal(mapped.tensor, images)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_rest_gives_memory_back(tmp_path):
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    count = 1 << 19
    (tmp_path / "images").write_bytes(bytes(count * 64))
    mapped = MappedImages(tmp_path / "images", (count, 1, 8, 8))
    assert int(mapped.tensor.max()) == 0
    before = resident()
    mapped.rest()
    assert before - resident() > count * 64 // 2


def test_a_file_of_another_length_is_refused(file):
    path, images = file
    with pytest.raises(ValueError, match="has 384 bytes, not 448"):
        MappedImages(path, (7, *images.shape[1:]))


def test_an_empty_file_is_no_images(tmp_path):
    (tmp_path / "empty").touch()
    assert len(MappedImages(tmp_path / "empty", (0, 1, 8, 8)).tensor) == 0


def test_pools_hold_the_unlabelled_images_without_a_copy(file):
    path, images = file
    mapped = MappedImages(path, tuple(images.shape)).tensor
    model = new_model(None)
    model.learn(blobs([0, 1], seed=3)[:, 0].numpy(), ["a", "b"], steps=1)
    learner = model.learner
    increment = Increment(mapped, torch.tensor([0, 1, -1, -1, -1, -1]))
    pools = lay_out(learner.setup, learner.state, increment)
    assert pools.unlabeled.data_ptr() == mapped[2:].data_ptr()
    assert len(pools.images) == 4  # two of them remembered
    assert increment.unlabeled.data_ptr() == mapped[2:].data_ptr()


def test_a_delivery_comes_back_from_the_work_folder(tmp_path):
    images = blobs([0, 1, 2, 3, 4, 5], seed=0)
    delivery = from_arrays(images, ["x", None, "y", "x", None, "y"], (1, 8, 8), 0.4, 3)
    work = Work(tmp_path / "work")
    work.begin()
    work.write_images(delivery.images)
    back = work.describe(delivery, "key", tuple(images.shape))
    assert torch.equal(back.images, delivery.images)
    assert torch.equal(back.labels, delivery.labels)
    assert (back.names, back.held, back.fingerprint) == (("x", "y"), delivery.held, delivery.fingerprint)


def test_pictures_are_read_a_batch_at_a_time(tmp_path, monkeypatch):
    """However many images there are: here they never end."""
    monkeypatch.setattr(pictures, "decode", lambda path, side: (np.zeros((3, side, side), np.uint8), True))
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield Listed(tmp_path / "x.png", None)

    parts = pictures.read(endless(), (1, 8, 8), batch=5)
    assert next(parts).images.shape == next(parts).images.shape == (5, 1, 8, 8)
    assert len(taken) == 10


def test_importances_of_a_huge_delivery_are_measured_on_a_part_of_it(monkeypatch):
    monkeypatch.setattr("ordisco.model.training.IMPORTANCE_IMAGES", 4)
    seen = []
    from ordisco.maths.stabilize import Stabilizer

    original = Stabilizer.importance
    monkeypatch.setattr(Stabilizer, "importance", lambda self, e: (seen.append(len(e.images)), original(self, e))[1])
    model = Model.create(None, side=8, settings=TINY, machine=CPU)
    labels = [0, 1] + [None] * 20
    model.learn(blobs([0, 1] * 11, seed=0), labels, steps=1)
    assert seen == [4]
    assert model.history[0]["unlabeled"] == 20
    assert model.history[0]["kept_images"] == 2
