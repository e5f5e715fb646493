"""`ordisco ask`, `label` and `export` on a tiny model."""

import csv
import io
import json
from pathlib import Path

import pytest
from PIL import Image

from conftest import blobs
from deliveries import QUICK
from ordisco.data.own import stream_images, walk
from ordisco.label import serve as serving
from ordisco.label.answers import locked
from ordisco.label.session import Session
from ordisco.model import onnx_file
from ordisco.model.model import Model
from tiny import call, one_line


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "shop"
    made = Model.create(path, side=8, settings=QUICK)
    made.learn(blobs([0, 1, 2] * 4, seed=0).numpy(), ["boot", "shoe", "clog"] * 2 + [None] * 6, steps=3)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve images at two depths, one broken file and one text."""
    folder = tmp_path / "tuesday"
    (folder / "camera 2").mkdir(parents=True)
    for index, image in enumerate(blobs([0, 1, 2, 3] * 3, seed=5)):
        Image.fromarray(image[0].numpy()).save(folder / ("camera 2" if index % 2 else "") / f"{index}.png")
    (folder / "broken.png").write_text("no image")
    (folder / "notes.txt").write_text("no image")
    return folder


def test_ask_prints_a_table_json_or_csv(model: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    code, out, err = call(capsys, "ask", model, folder, "-n", 5)
    assert code == 0
    lines = [line.split(maxsplit=3) for line in out.splitlines()]
    assert len(lines) == 5
    assert all(guess in ("boot", "shoe", "clog") and path.startswith(str(folder)) for _, _, guess, path in lines)
    assert "1 unreadable image left out" in one_line(err)
    code, out, _ = call(capsys, "ask", model, folder, "-n", 5, "--json")
    listed = json.loads(out)
    assert len({row["path"] for row in listed}) == 5
    assert all(Path(row["path"]).is_file() and row["guess"] in ("boot", "shoe", "clog") for row in listed)
    code, out, _ = call(capsys, "ask", model, folder, "-n", 5, "--csv", "-")
    assert [row["path"] for row in csv.DictReader(io.StringIO(out))] == [row["path"] for row in listed]


def test_the_csv_with_labels_filled_in_is_a_delivery(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "lists").mkdir()
    assert call(capsys, "ask", model, "tuesday", "-n", 4, "--csv", "lists/ask.csv")[0] == 0
    file = folder.parent / "lists/ask.csv"
    file.write_text(file.read_text().replace(",,", ",boot,"))
    listed = list(stream_images(file))
    assert len(listed) == 4
    assert all(image.path.resolve().is_file() and image.label == "boot" for image in listed)


def test_only_images_without_a_label_are_asked_about(model: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    inner = folder / "unlabeled"
    inner.mkdir()
    (folder / "camera 2/1.png").rename(inner / "1.png")
    _, out, _ = call(capsys, "ask", model, folder, "--json")
    assert [row["path"] for row in json.loads(out)] == [str(inner / "1.png")]
    (folder / "list.csv").write_text("path,label\n0.png,boot\n2.png,\n")
    _, out, _ = call(capsys, "ask", model, folder / "list.csv", "--json")
    assert [row["path"] for row in json.loads(out)] == [str(folder / "2.png")]


def test_from_python_it_is_the_same(model: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "broken.png").unlink()
    _, out, _ = call(capsys, "ask", model, folder, "-n", 3, "--json")
    opened = Model.open(model)
    paths = sorted(folder.rglob("*.png"))
    assert len(set(opened.ask(paths, 3).tolist())) == 3
    listed = [str(image.path) for image in walk(folder)]
    assert [row["path"] for row in json.loads(out)] == [listed[place] for place in opened.ask(folder, 3)]
    arrays = blobs([0, 1, 2, 3] * 3, seed=5).numpy()[:, 0]
    assert len(set(opened.ask(arrays, 4).tolist())) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["{empty}"], "no images without a label"),
        (["{folder}/broken.png"], "none of 1 images can be decoded"),
        (["{folder}", "-n", "0"], "count = 0 is not allowed"),
        (["{folder}", "--json", "--csv", "-"], "not allowed with"),
    ],
)
def test_ask_tells_a_mistake_in_one_line(
    options: list[str], words: str, model: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "empty").mkdir()
    given = [option.format(folder=folder, empty=tmp_path / "empty") for option in options]
    code, _, err = call(capsys, "ask", model, *given)
    assert code in (1, 2)
    assert words in one_line(err)


def test_label_shows_the_asked_images_first_and_says_how_to_learn(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    shown: list[str] = []

    def person(session: Session, where: Path, port: int, ready: object) -> None:
        """Says "sandal" of three images, as the server would hand it on."""
        for _ in range(3):
            number = session.current
            assert number is not None
            assert (where / session.paths[number]).is_file()
            shown.append(str(where / session.paths[number]))
            session.say(number, "sandal")
        session.close()

    monkeypatch.setattr(serving, "serve", person)
    _, out, _ = call(capsys, "ask", model, folder, "-n", 3, "--json")
    wanted = [row["path"] for row in json.loads(out)]
    code, out, _ = call(capsys, "label", model, folder, "-n", 3)
    assert code == 0
    assert shown == wanted
    file = folder / "labels.csv"
    assert out.splitlines() == [f"3 labels: {file}", f"learn them with: ordisco learn {model} {file}"]
    listed = list(stream_images(file))
    assert [image.label for image in listed] == ["sandal"] * 3 + [None] * 9
    with locked(file):
        code, _, err = call(capsys, "label", model, folder)
    assert code == 1
    assert "being written by another" in one_line(err)


def test_export_says_what_the_file_is(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(onnx_file, "onnx_bytes", lambda *args: (b"0" * 2000, 3e-8))
    code, out, _ = call(capsys, "export", model, tmp_path / "shop.onnx")
    assert code == 0
    assert one_line(out) == (
        f"{tmp_path / 'shop.onnx'}: 2.0 kB, uint8 (batch, 1, 8, 8) to probabilities of 3 classes; "
        "within 3e-08 of the model at batch sizes 1 and 7"
    )
    assert (tmp_path / "shop.onnx").stat().st_size == 2000


def test_export_of_samples_and_mistakes(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, _, _ = call(capsys, "export", model, tmp_path / "drawn", "--samples", 2)
    assert code == 0
    assert len(list(stream_images(tmp_path / "drawn"))) == 6
    for given, words in (
        ([tmp_path / "drawn", "--samples", 2], "exists already"),
        ([tmp_path / "shop.pt"], "ends in .onnx"),
        ([tmp_path / "x.onnx", "--samples", 0], "samples = 0"),
    ):
        code, _, err = call(capsys, "export", model, *given)
        assert code in (1, 2)
        assert words in one_line(err)
