"""Answers are on the disk, whole, and read as a delivery."""

from pathlib import Path

import pytest

from ordisco.data.own import list_images
from ordisco.errors import OrdiscoError
from ordisco.label.answers import Answer, AnswerFile, can_be_listed, read_answers


def test_every_answer_is_in_the_file_at_once(tmp_path: Path):
    path = tmp_path / "labels.csv"
    file = AnswerFile(path)
    said = [Answer("a, b.png", "shoe"), Answer("c.png", None), Answer('d".png', "ü, 靴")]
    for count, answer in enumerate(said, start=1):
        file.add(answer)
        assert read_answers(path) == said[:count]
    assert file.take_back() == said.pop()
    assert read_answers(path) == said
    file.add(Answer("e.png", "boot"))
    file.close(["f.png", "d.png"])
    file.close([])  # does nothing
    assert path.read_text().splitlines()[-2:] == ["f.png,,none", "d.png,,none"]
    listed = list_images(path)
    assert [(image.path.name, image.label) for image in listed] == [
        ("a, b.png", "shoe"),
        ("c.png", None),
        ("e.png", "boot"),
        ("f.png", None),
        ("d.png", None),
    ]


def test_what_a_crash_left_of_half_a_line_is_cut_off(tmp_path: Path):
    path = tmp_path / "labels.csv"
    file = AnswerFile(path)
    file.add(Answer("a.png", "shoe"))
    whole = path.read_bytes()
    for cut in range(len("path,label,answer\n"), len(whole) + 1):
        path.write_bytes(whole + b"b.png,boo"[: cut % 9])
        again = AnswerFile(path)
        assert path.read_bytes() == whole
        again.add(Answer("b.png", "boot"))
        assert path.read_bytes() == whole + b"b.png,boot,given\n"
        again.close([])


def test_images_without_an_answer_come_again(tmp_path: Path):
    path = tmp_path / "labels.csv"
    file = AnswerFile(path)
    file.add(Answer("a.png", "shoe"))
    file.close(["b.png", "c.png"])
    again = AnswerFile(path)
    assert again.answers == [Answer("a.png", "shoe")]
    assert again.take_back() == Answer("a.png", "shoe")
    assert path.read_text() == "path,label,answer\n"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = AnswerFile(tmp_path / "labels.csv")
    file.add(Answer("a.png", "shoe"))
    before = file.path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OrdiscoError, match=r"cannot write .*No space left"):
            file.add(Answer("b.png", "boot"))
    assert file.path.read_bytes() == before
    assert len(file.answers) == 1
    file.add(Answer("b.png", "boot"))
    assert read_answers(file.path) == [Answer("a.png", "shoe"), Answer("b.png", "boot")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("path,label\na,b\n", "first line"),
        ("path,label,answer\na,b\n", "line 2"),
        ("path,label,answer\na,,given\n", "line 2"),
        ("path,label,answer\na,b,given\na,c,given\n", "a second answer for a"),
        ('path,label,answer\n"a"b,c,given\n', "cannot be read as CSV"),
    ],
)
def test_another_file_is_never_overwritten(text: str, words: str, tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(OrdiscoError, match=words):
        AnswerFile(path)
    assert path.read_text() == text


def test_names_that_no_list_can_hold():
    assert [can_be_listed(name) for name in ("a b.png", " a.png", "a\n.png", "ü.png", "\udcff.png")] == [
        True,
        False,
        False,
        True,
        False,
    ]
