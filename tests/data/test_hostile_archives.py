"""Published archives that are not what they claim: links, bombs, encryption, labels that are none. One line each."""

import gzip
import io
import struct
import tarfile
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat
from test_published import write_svhn, write_tiny

from ordisco.data import cifar10, svhn
from ordisco.data.load import load
from ordisco.errors import OrdiscoError

MAT, TAR, ZIP = "train_32x32.mat", "cifar-10-binary.tar.gz", "tiny-imagenet-200.zip"


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The synthetic files are not the publishers'; their warning has its own test."""
    monkeypatch.setattr("ordisco.data.load.differences", lambda name, root: ())


def refused(name: str, root: Path, message: str) -> None:
    """One line with this message, and little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(OrdiscoError, match=message) as caught:
            load(name, root)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert not (root / "cache").exists()


def tar_of(root: Path, *members: tarfile.TarInfo) -> None:
    with tarfile.open(root / TAR, "w:gz", compresslevel=1) as tar:
        for member in members:
            if member.size < 1 << 30:
                tar.addfile(member, io.BytesIO(bytes(member.size)))
            else:  # only the header that claims so much
                tar.fileobj.write(member.tobuf())


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_cifar10(tmp_path: Path, kind: bytes) -> None:
    tar_of(tmp_path, member("cifar-10-batches-bin/data_batch_1.bin", kind, link="/etc/passwd"))
    refused("cifar10", tmp_path, r"data_batch_1\.bin' is a link or a device")


def test_a_link_to_an_earlier_member_of_cifar10(tmp_path: Path) -> None:
    first = member("data_batch_1.bin", size=cifar10.RECORD)
    tar_of(tmp_path, first, member("data_batch_2.bin", tarfile.LNKTYPE, link="data_batch_1.bin"))
    refused("cifar10", tmp_path, "is a link or a device")


@pytest.mark.parametrize("name", ["data_batch_1.bin", "readme.html"])
def test_a_huge_member_of_cifar10(tmp_path: Path, name: str) -> None:
    tar_of(tmp_path, member(name, size=6 << 30))
    refused("cifar10", tmp_path, r"claims 6,442,450,944 bytes, more than 30,730,000")


def test_a_member_of_cifar10_with_one_record_too_many(tmp_path: Path) -> None:
    tar_of(tmp_path, member("data_batch_1.bin", size=cifar10.LARGEST_MEMBER + cifar10.RECORD))
    refused("cifar10", tmp_path, "claims 30,733,073 bytes")


def test_a_member_of_cifar10_twice(tmp_path: Path) -> None:
    tar_of(tmp_path, *(member(f"{folder}/data_batch_1.bin", size=cifar10.RECORD) for folder in "ab"))
    refused("cifar10", tmp_path, r"data_batch_1\.bin is in it twice")


@pytest.mark.slow
def test_a_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long name of 80 MB, which tarfile itself would read, and as many small members."""
    monkeypatch.setattr(cifar10, "LARGEST_ARCHIVE", 1 << 20)
    head = member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=80_000_000).tobuf(tarfile.GNU_FORMAT)
    with gzip.open(tmp_path / TAR, "wb", compresslevel=1) as packed:
        packed.write(head)
        for _ in range(80):
            packed.write(bytes(1_000_000))
    refused("cifar10", tmp_path, r"cifar-10-binary\.tar\.gz: holds more than 1,048,576 bytes")
    tar_of(tmp_path, *(member(f"{number}.txt") for number in range(3000)))
    refused("cifar10", tmp_path, "holds more than 1,048,576 bytes")


@pytest.mark.slow
def test_the_limit_of_cifar10_is_above_the_real_archive(tmp_path: Path) -> None:
    tar_of(
        tmp_path, *(member(f"cifar-10-batches-bin/{name}", size=30_730_000) for name in (*cifar10.TRAIN, cifar10.TEST))
    )
    train, test = cifar10.read([tmp_path / TAR], cifar10.CLASSES, None)
    assert (len(train), len(test)) == (50_000, 10_000)


def patched(path: Path, *changes: tuple[int, str, int]) -> None:
    """Change fields of every entry in the zip's directory, at an offset within the entry."""
    content = bytearray(path.read_bytes())
    position = content.find(b"PK\1\2")
    while position >= 0:
        for offset, form, value in changes:
            struct.pack_into(form, content, position + offset, value)
        position = content.find(b"PK\1\2", position + 4)
    path.write_bytes(bytes(content))


def test_an_encrypted_zip(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    patched(tmp_path / ZIP, (8, "<H", 1))
    refused("tiny-imagenet", tmp_path, r"wnids\.txt is encrypted, the publisher's is not")


def test_a_zip_packed_by_another_method(tmp_path: Path) -> None:
    write_tiny(tmp_path)
    patched(tmp_path / ZIP, (10, "<H", zipfile.ZIP_LZMA))
    refused("tiny-imagenet", tmp_path, "is packed in another way")
    patched(tmp_path / ZIP, (10, "<H", 99))
    refused("tiny-imagenet", tmp_path, "is packed in another way")


@pytest.mark.parametrize("honest", [True, False])
@pytest.mark.slow
def test_a_zip_bomb(tmp_path: Path, honest: bool) -> None:
    with zipfile.ZipFile(tmp_path / ZIP, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("tiny-imagenet-200/wnids.txt", bytes(80_000_000))
    if honest:
        refused("tiny-imagenet", tmp_path, "claims 80,000,000 bytes, more than 67,108,864")
    else:
        patched(tmp_path / ZIP, (24, "<I", 100))
        refused("tiny-imagenet", tmp_path, "damaged archive")


def test_an_image_in_the_zip_that_is_too_large(tmp_path: Path) -> None:
    write_tiny(tmp_path, broken=bytes(2_000_000))
    refused("tiny-imagenet", tmp_path, r"n00000000_1\.JPEG claims 2,000,000 bytes, more than 1,048,576")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_a_member_twice(tmp_path: Path) -> None:
    write_tiny(tmp_path, extra="tiny-imagenet-200/wnids.txt")
    refused("tiny-imagenet", tmp_path, "a member is in it twice")


IMAGES = np.zeros((32, 32, 3, 2), np.uint8)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES, np.array([["1"], ["2"]]), "labels y must be numbers, found 2×1 char"),
        (IMAGES, np.array([[1, "x"]], dtype=object), "labels y must be numbers, found 1×2 cell"),
        (IMAGES, np.array([[True], [True]]), "labels y must be numbers, found 2×1 logical"),
        (IMAGES, np.array([[1.0], [np.nan]]), "label nan is not from 1 to 10"),
        (IMAGES, np.array([[1.0], [np.inf]]), "label inf is not from 1 to 10"),
        (IMAGES, np.array([[1.0], [2.5]]), "label 2.5 is not from 1 to 10"),
        (IMAGES, np.array([[1.0], [2 + 1j]]), r"label \(2\+1j\) is not from 1 to 10"),
        (IMAGES, np.array([[1], [-3]], np.int16), "label -3 is not from 1 to 10"),
        (IMAGES, np.ones((3, 1)), "found X of 32×32×3×2 uint8 and y of 3×1 double"),
        (IMAGES[..., 0], np.ones((1, 1)), "found X of 32×32×3 uint8"),
        (IMAGES.astype(float), np.ones((2, 1)), "found X of 32×32×3×2 double"),
        (IMAGES.astype(object), np.ones((2, 1)), "found X of 32×32×3×2 cell"),
        (np.array(["text"]), np.ones((2, 1)), "found X of 1 char"),
        (IMAGES[..., :0], np.ones((0, 1)), "found X of 32×32×3×0 uint8"),
    ],
)
def test_svhn_with_wrong_kinds(tmp_path: Path, images: Any, labels: Any, message: str) -> None:
    write_svhn(tmp_path)
    savemat(tmp_path / MAT, {"X": images, "y": labels})
    refused("svhn", tmp_path, message)


def test_svhn_with_labels_as_floats_is_read(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    savemat(tmp_path / MAT, {"X": IMAGES, "y": np.array([[1.0], [10.0]])})
    assert load("svhn", tmp_path).train.labels.tolist() == [1, 0]


def test_svhn_that_claims_more_images_than_there_may_be(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    savemat(tmp_path / MAT, {"X": IMAGES, "y": np.ones((2, 1), np.uint8)})
    content = (tmp_path / MAT).read_bytes()
    for many in (svhn.MOST_IMAGES + 1, 2**31 - 1):
        shapes = content.replace(struct.pack("<4i", 32, 32, 3, 2), struct.pack("<4i", 32, 32, 3, many))
        shapes = shapes.replace(struct.pack("<2i", 2, 1), struct.pack("<2i", many, 1))
        (tmp_path / MAT).write_bytes(shapes)
        refused("svhn", tmp_path, f"found X of 32×32×3×{many} uint8")


def test_svhn_in_matlabs_newer_format(tmp_path: Path) -> None:
    write_svhn(tmp_path)
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    (tmp_path / MAT).write_bytes(header.ljust(512, b"\0") + b"\x89HDF\r\n\x1a\n")
    refused("svhn", tmp_path, r"saved as MATLAB 7\.3 \(HDF5\)")


@pytest.mark.parametrize(("name", "file"), [("svhn", MAT), ("cifar10", TAR), ("tiny-imagenet", ZIP)])
def test_a_folder_where_the_file_should_be(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / file).mkdir()
    refused(name, tmp_path, f"{file} is there but is no file; remove it")
