"""Images that stay in their file until they are wanted, and only those that are."""

import warnings
from pathlib import Path

import pytest
import torch
from test_own import make_folder
from torch import Tensor

from conftest import blobs, unread_blobs
from ordisco.data import cache, unread
from ordisco.data.cache import Decoded, InFile, cached
from ordisco.data.dataset import Split
from ordisco.data.load import find, load
from ordisco.data.unread import InMemory, Part, in_place, whole
from ordisco.errors import OrdiscoError
from ordisco.streams.build import build_stream
from ordisco.streams.settings import StreamSettings

IMAGES = torch.randint(0, 256, (23, 3, 4, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(23) % 5


def nothing() -> Decoded:
    raise AssertionError("decoded again")


def in_file(folder: Path, images: Tensor = IMAGES) -> Decoded:
    """The same images, kept in a file and not read yet; no test image."""
    labels = LABELS[: len(images)]
    decoded = Decoded(tuple("abcde"), whole(Split(images, labels)), whole(Split(images[:0], labels[:0])))
    path = folder / "kept.safetensors"
    cached(path, lambda: decoded)
    return cached(path, nothing)


@pytest.mark.parametrize("stretch", [1, 100, 4 << 20])
def test_rows_of_a_file_are_those_of_the_tensor(tmp_path: Path, stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "STRETCH", stretch)
    train, test = in_file(tmp_path).train, in_file(tmp_path).test
    assert isinstance(train.source, InFile)
    for rows in (torch.arange(23), torch.tensor([2, 3, 19]), torch.tensor([19, 2, 2, 22, 0]), torch.arange(0)):
        assert torch.equal(train.source.take(rows), IMAGES[rows])
        assert torch.equal(train[rows].read().images, IMAGES[rows])
        assert torch.equal(train[rows].read().labels, LABELS[rows])
    assert test.read().images.shape == (0, 3, 4, 4)


def test_the_checksum_of_a_file_does_not_depend_on_its_stretches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_file(tmp_path)
    monkeypatch.setattr(cache, "STRETCH", 1)
    cached(tmp_path / "kept.safetensors", nothing)


@pytest.mark.parametrize("block", [1, 4, 1_000])
def test_a_part_is_selected_changed_and_read(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread, "BLOCK", block)
    part = in_place(InMemory(IMAGES), LABELS)
    assert part.read().images is IMAGES  # without a copy
    backwards = part[torch.arange(22, -1, -1)].read()
    assert torch.equal(backwards.images, IMAGES.flip(0))
    assert torch.equal(backwards.labels, LABELS.flip(0))
    some = Part(InMemory(IMAGES), torch.arange(23), LABELS, (lambda x: x[:, :1], lambda x: 255 - x))[LABELS == 3]
    assert torch.equal(some.read().images, 255 - IMAGES[LABELS == 3, :1])
    assert some[torch.zeros(len(some), dtype=torch.bool)].read().images.shape == (0, 1, 4, 4)
    with pytest.raises(ValueError, match="labels of images"):
        Part(InMemory(IMAGES), torch.arange(23), LABELS[:3])


def test_only_these_training_images_and_all_test_images() -> None:
    data = unread_blobs()
    whole_data, rows = data.read(), torch.tensor([3, 9, 70])
    for some in (data.only(rows), whole_data.only(rows)):
        assert torch.equal(some.train.images, whole_data.train.images[rows])
        assert torch.equal(some.test.images, whole_data.test.images)
    assert whole_data.only(torch.arange(72)) is whole_data


def test_a_stream_reads_the_images_that_it_uses_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, taken = make_folder(tmp_path), []
    load(str(folder), tmp_path / "data", size=8)
    take = InFile.take
    monkeypatch.setattr(InFile, "take", lambda self, rows: taken.append((self.name, rows.tolist())) or take(self, rows))
    settings = StreamSettings(dataset=str(folder), increments=1, size=8, max_images=6, contrast=True)
    stream = build_stream(settings, "mine", 0, tmp_path / "data")
    read = [row for name, rows in taken if name == "train_images" for row in rows]
    assert read == stream.rows.tolist()
    assert len(read) == 6 < stream.available
    assert len(stream.dataset.train) == 6
    assert len(find(str(folder), tmp_path / "data", size=8).train) == stream.available


def test_a_file_that_is_gone_is_told_in_one_line(tmp_path: Path) -> None:
    train = in_file(tmp_path).train
    (tmp_path / "kept.safetensors").unlink()
    with pytest.raises(OrdiscoError, match=r"cannot read the decoded images at .*kept\.safetensors .*; start again"):
        train.read()


def test_a_damaged_file_is_decoded_again(tmp_path: Path) -> None:
    decoded = in_file(tmp_path, blobs(range(5), 0))
    path = tmp_path / "kept.safetensors"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = cached(path, lambda: Decoded(decoded.classes, whole(Split(IMAGES, LABELS)), decoded.test))
    assert len(again.train) == 23
