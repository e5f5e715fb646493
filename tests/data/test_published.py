"""The publishers' layouts, made small by the test itself: decoding, caching and damage."""

import io
import os
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from ordisco.data import picture, pixels, svhn
from ordisco.data.load import load
from ordisco.errors import OrdiscoError, OrdiscoWarning

RNG = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synthetic files are not the publishers'; their warning has its own test."""
    monkeypatch.setattr("ordisco.data.load.differences", lambda name, root: ())


def write_svhn(root: Path, train: int = 20, test: int = 10, labels: list[int] | None = None) -> np.ndarray:
    kept = None
    for name, count in (("train", train), ("test", test)):
        images = RNG.randint(0, 256, (32, 32, 3, count)).astype(np.uint8)
        given = labels if labels and name == "train" else [1 + i % 10 for i in range(count)]
        content = {"X": images, "y": np.array(given, dtype=np.uint8)[:, None]}
        savemat(root / f"{name}_32x32.mat", content, do_compression=True)
        kept = images if kept is None else kept
    assert kept is not None
    return kept


def write_cifar10(root: Path, records: int = 4, label: int | None = None, extra: str | None = None) -> np.ndarray:
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    parts = []
    with tarfile.open(root / "cifar-10-binary.tar.gz", "w:gz") as tar:
        for number, name in enumerate(names):
            content = RNG.randint(0, 256, (records, 3073)).astype(np.uint8)
            content[:, 0] = (np.arange(records) + number) % 10 if label is None else label
            parts.append(content)
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = content.size
            tar.addfile(info, io.BytesIO(content.tobytes()))
        if extra:
            tar.addfile(tarfile.TarInfo(extra))
    return np.stack(parts)


def jpeg(colour: tuple[int, int, int] | int) -> bytes:
    stream = io.BytesIO()
    Image.new("L" if isinstance(colour, int) else "RGB", (64, 64), colour).save(stream, "JPEG")
    return stream.getvalue()


def write_tiny(
    root: Path, classes: int = 4, *, broken: bytes | None = None, extra: str | None = None, without: str = "-"
) -> None:
    wnids = [f"n{index:08d}" for index in range(classes)]
    top = "tiny-imagenet-200/"
    with zipfile.ZipFile(root / "tiny-imagenet-200.zip", "w") as zipped:
        files: dict[str, bytes | str] = {
            "wnids.txt": "\n".join(reversed(wnids)),
            "words.txt": "".join(f"{wnid}\tthing {i}, other name\n" for i, wnid in enumerate(wnids)),
            "val/val_annotations.txt": "".join(f"val_{i}.JPEG\t{wnid}\t0\t0\t9\t9\n" for i, wnid in enumerate(wnids)),
        }
        for index, wnid in enumerate(wnids):
            files[f"train/{wnid}/{wnid}_boxes.txt"] = "boxes"
            files[f"val/images/val_{index}.JPEG"] = jpeg((10 * index, 100, 200))
            for number in range(2):
                files[f"train/{wnid}/images/{wnid}_{number}.JPEG"] = jpeg(50 * index)
        if broken is not None:
            files[f"train/{wnids[0]}/images/{wnids[0]}_1.JPEG"] = broken
        for name, content in files.items():
            if not name.startswith(without):
                zipped.writestr(top + name, content)
        if extra:
            zipped.writestr(extra, "x")


def test_svhn(tmp_path: Path) -> None:
    images = write_svhn(tmp_path)
    dataset = load("svhn", tmp_path)
    assert dataset.image_shape == (3, 32, 32)
    assert (len(dataset.train), len(dataset.test)) == (20, 10)
    assert (dataset.flip, dataset.translate) == (False, 2)
    assert dataset.train.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0] * 2
    assert int(dataset.train.images[7, 2, 5, 11]) == images[5, 11, 2, 7]
    assert torch.equal(dataset.train.images, torch.from_numpy(images.transpose(3, 2, 0, 1).copy()))


def test_svhn_at_16_pixels_is_the_rounded_mean(tmp_path: Path) -> None:
    images = write_svhn(tmp_path)
    dataset = load("svhn", tmp_path, size=16)
    assert dataset.image_shape == (3, 16, 16)
    assert dataset.translate == 1
    block = images[6:8, 10:12, 1, 3].astype(int)
    assert int(dataset.train.images[3, 1, 3, 5]) == (block.sum() + 2) // 4
    assert dataset.checksum() == load("svhn", tmp_path, size=16).checksum()


def test_resize_agrees_with_the_decoder_of_single_images(tmp_path: Path) -> None:
    array = RNG.randint(0, 256, (2, 3, 32, 32)).astype(np.uint8)
    for size in (8, 16, 20, 32, 48):
        stream = io.BytesIO()
        Image.fromarray(array[1].transpose(1, 2, 0)).save(stream, "PNG")
        one, grey = picture.decode(stream.getvalue(), size)
        assert not grey
        assert np.array_equal(pixels.resize(torch.from_numpy(array), size)[1].numpy(), one)


def test_cifar10(tmp_path: Path) -> None:
    parts = write_cifar10(tmp_path)
    dataset = load("cifar10", tmp_path)
    assert (len(dataset.train), len(dataset.test)) == (20, 4)
    assert (dataset.flip, dataset.translate) == (True, 4)
    assert dataset.classes[3] == "cat"
    assert dataset.train.labels.tolist() == parts[:5, :, 0].ravel().tolist()
    assert torch.equal(dataset.train.images[5], torch.from_numpy(parts[1, 1, 1:].reshape(3, 32, 32).copy()))
    assert torch.equal(dataset.test.images[2], torch.from_numpy(parts[5, 2, 1:].reshape(3, 32, 32).copy()))


def test_tiny_imagenet(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    whole = load("tiny-imagenet", tmp_path)
    assert whole.classes == ("thing 0", "thing 1", "thing 2", "thing 3")
    assert whole.image_shape == (3, 64, 64)
    assert (len(whole.train), len(whole.test)) == (8, 4)
    part = load("tiny-imagenet", tmp_path, classes=("Thing 3", "n00000001"), size=32)
    assert part.classes == ("thing 3", "thing 1")
    assert part.image_shape == (3, 32, 32)
    train = part.train
    by_label = {label: int(train.images[train.labels == label].float().mean()) for label in (0, 1)}
    assert by_label == {0: 150, 1: 50}
    assert part.test.images[part.test.labels == 0][0, :, 0, 0].tolist() == pytest.approx([30, 100, 200], abs=3)
    drawn = load("tiny-imagenet", tmp_path, num_classes=2, size=32, seed=1)
    assert drawn.num_classes == 2
    assert len(drawn.train) == 4


def test_second_load_reads_the_cache_and_a_changed_file_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_svhn(tmp_path)
    first = load("svhn", tmp_path)
    calls: list[Path] = []
    real = svhn.read
    monkeypatch.setattr(svhn, "read", lambda *paths: calls.extend(paths) or real(*paths))
    assert load("svhn", tmp_path).checksum() == first.checksum()
    assert not calls
    assert load("svhn", tmp_path, fresh=True).checksum() == first.checksum()
    assert calls
    calls.clear()
    write_svhn(tmp_path)
    os.utime(tmp_path / "train_32x32.mat", ns=(1, 1))
    assert load("svhn", tmp_path).checksum() != first.checksum()
    assert calls


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1000])


def _flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-5000] ^= 1
    path.write_bytes(bytes(content))


def _garbage(path: Path) -> None:
    path.write_bytes(b"not a cache")


@pytest.mark.parametrize("harm", [_truncate, _flip_a_bit, _garbage])
def test_damaged_cache_is_rebuilt(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    write_svhn(tmp_path)
    first = load("svhn", tmp_path)
    [cache] = (tmp_path / "cache").iterdir()
    whole = cache.read_bytes()
    harm(cache)
    assert load("svhn", tmp_path).checksum() == first.checksum()
    assert cache.stat().st_size == len(whole)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [cache.name]


def test_cache_that_cannot_be_written_is_told_and_the_data_used(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(OrdiscoWarning, match="cannot keep the decoded images"):
        assert len(load("svhn", tmp_path).train) == 20


@pytest.mark.parametrize("name", ["svhn", "cifar10"])
@pytest.mark.slow
def test_peak_memory_is_under_three_times_the_decoded_size(tmp_path: Path, name: str) -> None:
    write_svhn(tmp_path, 3000, 1000) if name == "svhn" else write_cifar10(tmp_path, 600)
    load("digits")
    tracemalloc.start()
    try:
        dataset = load(name, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * (dataset.train.images.nbytes + dataset.test.images.nbytes)


@pytest.mark.parametrize("keep", [0.0, 0.02, 0.5, 0.97])
@pytest.mark.parametrize(
    ("name", "filename", "write"),
    [
        ("svhn", "train_32x32.mat", write_svhn),
        ("cifar10", "cifar-10-binary.tar.gz", write_cifar10),
        ("tiny-imagenet", "tiny-imagenet-200.zip", write_tiny),
    ],
)
def test_truncated_files_are_named(
    tmp_path: Path, name: str, filename: str, write: Callable[[Path], object], keep: float
) -> None:
    write(tmp_path)
    path = tmp_path / filename
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    with pytest.raises(OrdiscoError, match=filename) as caught:
        load(name, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("filename", "write"), [("cifar-10-binary.tar.gz", write_cifar10), ("tiny-imagenet-200.zip", write_tiny)]
)
def test_corrupt_bytes_in_the_middle(tmp_path: Path, filename: str, write: Callable[[Path], object]) -> None:
    write(tmp_path)
    path = tmp_path / filename
    content = bytearray(path.read_bytes())
    for position in range(len(content) // 4, len(content) // 2, 7):
        content[position] ^= 0xA5
    path.write_bytes(bytes(content))
    with pytest.raises(OrdiscoError, match=filename):
        load("cifar10" if "cifar" in filename else "tiny-imagenet", tmp_path)


@pytest.mark.parametrize("name", ["../evil.txt", "/etc/evil", "a/../../evil", "..\\evil", "C:\\evil"])
def test_member_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    write_tiny(tmp_path, extra=name)
    write_cifar10(tmp_path, extra=name)
    for dataset in ("tiny-imagenet", "cifar10"):
        with pytest.raises(OrdiscoError, match="points outside the archive"):
            load(dataset, tmp_path)
    assert not list(tmp_path.parent.glob("evil*"))


def test_labels_out_of_range(tmp_path: Path) -> None:
    write_svhn(tmp_path, 3, labels=[1, 11, 2])
    with pytest.raises(OrdiscoError, match=r"train_32x32.mat: label 11 is not from 1 to 10"):
        load("svhn", tmp_path)
    write_svhn(tmp_path, 3, labels=[1, 0, 2])
    with pytest.raises(OrdiscoError, match=r"label 0 is not"):
        load("svhn", tmp_path)
    write_cifar10(tmp_path, label=10)
    with pytest.raises(OrdiscoError, match=r"data_batch_1.bin has label 10, not from 0 to 9"):
        load("cifar10", tmp_path)


def test_svhn_with_other_content(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"X": np.zeros((8, 8, 3, 2), np.uint8), "y": np.ones((2, 1), np.uint8)})
    with pytest.raises(OrdiscoError, match="expected X of 32×32×3×n"):
        load("svhn", tmp_path)
    savemat(tmp_path / "train_32x32.mat", {"Z": np.zeros(3)})
    with pytest.raises(OrdiscoError, match=r"train_32x32.mat: damaged"):
        load("svhn", tmp_path)


def test_cifar10_with_a_missing_or_uneven_member(tmp_path: Path) -> None:
    path = tmp_path / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(tarfile.TarInfo("cifar-10-batches-bin/readme.html"))
    with pytest.raises(OrdiscoError, match=r"data_batch_1.bin, .*test_batch.bin missing"):
        load("cifar10", tmp_path)
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
        info.size = 3000
        tar.addfile(info, io.BytesIO(bytes(3000)))
    with pytest.raises(OrdiscoError, match=r"data_batch_1.bin has 3000 bytes, not a multiple of 3073"):
        load("cifar10", tmp_path)


def test_tiny_imagenet_with_a_broken_image_or_missing_parts(tmp_path: Path) -> None:
    for broken in (b"", b"not a picture", jpeg((9, 9, 9))[:200]):
        write_tiny(tmp_path, broken=broken)
        with pytest.raises(OrdiscoError, match=r"cannot decode .*n00000000_1.JPEG"):
            load("tiny-imagenet", tmp_path)
    write_tiny(tmp_path, without="val/images/val_2")
    with pytest.raises(OrdiscoError, match=r"val_2.JPEG missing"):
        load("tiny-imagenet", tmp_path)
    write_tiny(tmp_path, without="train/n00000003/images")
    with pytest.raises(OrdiscoError, match="class n00000003 has no training images"):
        load("tiny-imagenet", tmp_path)
