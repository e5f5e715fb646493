import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ordisco.data import picture
from ordisco.data.load import load
from ordisco.errors import OrdiscoError, OrdiscoWarning
from ordisco.streams.arrange import new_class, new_instance


def save(path: Path, value: object = 100, mode: str = "RGB", size: tuple[int, int] = (40, 40)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)  # type: ignore[arg-type]
    return path


def make_folder(root: Path, per_class: int = 5, unlabeled: int = 6) -> Path:
    folder = root / "pets"
    for index, name in enumerate(("cat", "dog")):
        for number in range(per_class):
            save(folder / name / f"{number}.png", (50 + 100 * index, number, 0))
    for number in range(unlabeled):
        save(folder / "unlabeled" / f"{number}.png", (200, number, 0))
    return folder


def test_folder_with_hold_out(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    dataset = load(str(folder), tmp_path / "data", size=8)
    assert dataset.name == "pets"
    assert dataset.classes == ("cat", "dog")
    assert dataset.image_shape == (3, 8, 8)
    assert not dataset.flip
    assert sorted(dataset.train.labels.tolist()) == [-1] * 6 + [0] * 4 + [1] * 4
    assert sorted(dataset.test.labels.tolist()) == [0, 1]
    red = dataset.train.images[:, 0, 0, 0]
    assert torch.equal(red, torch.tensor([200, 50, 150], dtype=torch.uint8)[dataset.train.labels + 1])
    assert load(str(folder), tmp_path / "data", size=8).checksum() == dataset.checksum()
    assert load(str(folder), tmp_path / "data").image_shape == (3, 32, 32)
    others = {load(str(folder), tmp_path / "data", size=8, seed=seed).checksum() for seed in range(5)}
    assert len(others) > 1


def test_folder_with_test_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    save(folder / "test" / "dog" / "x.png", (1, 2, 3))
    dataset = load(str(folder), tmp_path / "data")
    assert dataset.test.labels.tolist() == [1]
    assert len(dataset.train) == 16


def test_csv(tmp_path: Path) -> None:
    make_folder(tmp_path)
    lines = ["path,label,split"]
    lines += [f"pets/cat/{i}.png,10," for i in range(5)]
    lines += [f"pets/dog/{i}.png,2,train" for i in range(4)]
    lines += ["pets/dog/4.png,2,test", "pets/unlabeled/0.png,,"]
    table = tmp_path / "pets.csv"
    table.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-8")
    dataset = load(str(table), tmp_path / "data")
    assert dataset.classes == ("2", "10")
    assert dataset.train.labels.tolist() == [1] * 5 + [0] * 4 + [-1]
    assert dataset.test.labels.tolist() == [0]


def test_any_mix_of_sizes_and_modes(tmp_path: Path) -> None:
    folder = tmp_path / "mix"
    save(folder / "a" / "1.png", 128, "L", (10, 30))
    save(folder / "a" / "2.png", (128, 128, 128, 255), "RGBA", (50, 20))
    save(folder / "a" / "3.png", (0, 0, 0, 0), "RGBA", (5, 5))
    save(folder / "b" / "1.gif", 0, "P", (32, 32))
    save(folder / "b" / "2.jpg", (0, 0, 0, 127), "CMYK", (64, 33))
    save(folder / "b" / "3.png", 32896, "I;16", (64, 64))
    save(folder / "test" / "a" / "1.png", 1, "1")
    dataset = load(str(folder), tmp_path / "data", size=16)
    assert dataset.image_shape == (3, 16, 16)
    assert dataset.train.images.float().mean(dim=(1, 2, 3)).tolist() == pytest.approx(
        [128, 128, 255, 0, 128, 128], abs=2
    )
    assert dataset.test.images.unique().tolist() == [255]


def test_grey_images_stay_grey(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for number in range(3):
            save(tmp_path / "grey" / name / f"{number}.png", 10 * number, "L")
    dataset = load(str(tmp_path / "grey"), tmp_path / "data", size=8)
    assert dataset.image_shape == (1, 8, 8)
    save(tmp_path / "grey" / "b" / "9.png", (1, 2, 3))
    assert load(str(tmp_path / "grey"), tmp_path / "data", size=8).image_shape == (3, 8, 8)


def test_colour_after_grey_keeps_the_grey_pixels(tmp_path: Path) -> None:
    save(tmp_path / "x" / "a" / "0.png", 77, "L")
    save(tmp_path / "x" / "b" / "0.png", (1, 2, 3))
    save(tmp_path / "x" / "test" / "a" / "0.png", (5, 5, 5))
    images = load(str(tmp_path / "x"), tmp_path / "data", size=4).train.images
    assert images[:, :, 0, 0].tolist() == [[77, 77, 77], [1, 2, 3]]


def test_middle_square_and_orientation() -> None:
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = 200
    stream = io.BytesIO()
    Image.fromarray(wide).save(stream, "PNG")
    image, _ = picture.decode(stream.getvalue(), 5)
    assert (image == 200).all()
    top_red = np.zeros((8, 8, 3), dtype=np.uint8)
    top_red[:4, :, 0] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    stream = io.BytesIO()
    Image.fromarray(top_red).save(stream, "PNG", exif=exif)
    image, _ = picture.decode(stream.getvalue(), 8)
    assert image[0, 7, 0] == 255
    assert image[0, 0, 0] == 0


def test_unreadable_images_are_skipped_counted_and_named_every_time(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    whole = (folder / "cat" / "0.png").read_bytes()
    (folder / "cat" / "0.png").write_bytes(whole[: len(whole) // 2])
    (folder / "dog" / "nothing.jpg").write_bytes(b"")
    (folder / "dog" / "notes.txt").write_text("not an image, not counted")
    for _ in range(2):  # decoded, then from the cache
        with pytest.warns(OrdiscoWarning, match=r"2 unreadable images skipped: .*0\.png, .*nothing\.jpg$"):
            dataset = load(str(folder), tmp_path / "data")
        assert len(dataset.train) + len(dataset.test) == 15
    with pytest.raises(OrdiscoError, match=r"cannot decode .*0\.png"):
        load(str(folder), tmp_path / "data", strict=True)


def test_a_picture_of_absurd_size_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    save(folder / "dog" / "huge.png", (0, 0, 0), size=(50, 50))  # above the limit: a warning in Pillow
    save(folder / "dog" / "huger.png", (0, 0, 0), size=(99, 99))  # above twice the limit: an error
    with pytest.warns(OrdiscoWarning, match="2 unreadable images skipped"):
        load(str(folder), tmp_path / "data")


def test_missing_csv_image_is_skipped_or_an_error(tmp_path: Path) -> None:
    make_folder(tmp_path)
    table = tmp_path / "t.csv"
    rows = [f"pets/{name}/{i}.png,{name}" for name in ("cat", "dog") for i in range(3)]
    table.write_text("path,label\nnowhere.png,cat\n" + "\n".join(rows))
    with pytest.warns(OrdiscoWarning, match=r"1 unreadable images skipped: .*nowhere\.png"):
        load(str(table), tmp_path / "data")
    with pytest.raises(OrdiscoError, match=r"nowhere\.png"):
        load(str(table), tmp_path / "data", strict=True)


def test_empty_and_lopsided_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(OrdiscoError, match="empty: no images found"):
        load(str(tmp_path / "empty"), tmp_path)
    folder = make_folder(tmp_path)
    (folder / "fox").mkdir()
    with pytest.raises(OrdiscoError, match="fox: no images in this class"):
        load(str(folder), tmp_path)
    save(folder / "fox" / "1.png")
    with pytest.raises(OrdiscoError, match="class 'fox' has 1 readable labelled images, 2 needed"):
        load(str(folder), tmp_path)
    save(folder / "test" / "wolf" / "1.png")
    with pytest.raises(OrdiscoError, match=r"test image .* has the class 'wolf', unknown in training"):
        load(str(folder), tmp_path)
    save(tmp_path / "one" / "cat" / "1.png")
    with pytest.raises(OrdiscoError, match="1 labelled classes found in the training images, 2 or more"):
        load(str(tmp_path / "one"), tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "first line must be path,label"),
        (b"file,class\na,b\n", "first line must be path,label"),
        (b"path,label\n,cat\n", "line 2: no path"),
        (b"path,label,split\na.png,cat,valid\n", "line 2: split is 'valid'"),
        (b"path,label,split\na.png,,test\n", "line 2: a test image needs a label"),
        (b"path,label\n", "no images found"),
        (b'path,label\n"a.png,cat\n', "cannot be read as CSV"),
        (b"path,label\n\xff\xfe.png,cat\n", "cannot be read as CSV in UTF-8"),
    ],
)
def test_wrong_csv(tmp_path: Path, content: bytes, message: str) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(content)
    with pytest.raises(OrdiscoError, match=message):
        load(str(table), tmp_path)


def test_streams_of_own_data(tmp_path: Path) -> None:
    dataset = load(str(make_folder(tmp_path)), tmp_path / "data", size=8)
    stream = new_instance(dataset, increments=2, labels_per_class=1)
    assert [row["labeled"] for row in stream.summary()["increments"]] == [2, 2]
    assert sum(len(increment) for increment in stream) == 14
    unknown = sum(int((stream.truth(i) == -1).sum()) for i in range(2))
    assert unknown == 6
    with pytest.raises(OrdiscoError, match="New Class needs the class of every image"):
        new_class(dataset, 1, increments=2, labels_per_class=1)
    with pytest.raises(OrdiscoError, match="class 'cat' has 4 labelled training images, but 5 increments of 1"):
        new_instance(dataset, increments=5, labels_per_class=1)


def test_folder_that_cannot_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    folder = make_folder(tmp_path)
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(OrdiscoError, match=r"cannot read .*pets: Permission denied"):
        load(str(folder), tmp_path / "data")


def test_a_program_named_like_an_image_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_folder(tmp_path)
    Image.new("RGB", (8, 8)).save(folder / "cat" / "real.eps")
    (folder / "cat" / "real.eps").rename(folder / "cat" / "x.png")
    monkeypatch.setattr(
        "PIL.EpsImagePlugin.Ghostscript", lambda *args, **options: pytest.fail("Ghostscript was called")
    )
    with pytest.warns(OrdiscoWarning, match=r"1 unreadable images skipped: .*x\.png"):
        dataset = load(str(folder), tmp_path / "data", size=8)
    assert len(dataset.train) + len(dataset.test) == 16
    with pytest.raises(picture.Undecodable, match="of an unknown kind"):
        picture.decode(folder / "cat" / "x.png", 8)


@pytest.mark.parametrize("form", picture.known_formats())
def test_every_format_is_decoded(form: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (32, 32), (250, 250, 250)).save(file, format=form)
    decoded, _ = picture.decode(file.getvalue(), 8)
    assert decoded.shape == (3, 8, 8)
    assert decoded.min() > 240
