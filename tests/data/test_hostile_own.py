"""One's own data that is not what it should be: one clear line each, and names of any kind."""

import os
import unicodedata
from pathlib import Path

import pytest
from PIL import Image
from test_own import make_folder, save

from ordisco.cli import main
from ordisco.data import own
from ordisco.data.load import load
from ordisco.errors import OrdiscoError, OrdiscoWarning


def table_of(root: Path, *rows: str) -> Path:
    """A CSV of cats and dogs that is right, followed by the given rows."""
    make_folder(root)
    lines = [f"pets/{name}/{number}.png,{name}" for name in ("cat", "dog") for number in range(3)]
    table = root / "t.csv"
    table.write_text("\n".join(["path,label", *lines, *rows]) + "\n", encoding="utf-8")
    return table


def refused(source: Path, message: str) -> None:
    with pytest.raises(OrdiscoError, match=message) as caught:
        load(str(source), source.parent / "data", size=8)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2100


def test_a_table_is_right_without_the_rows_below(tmp_path: Path) -> None:
    assert len(load(str(table_of(tmp_path)), tmp_path / "data", size=8).train) == 4


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("pets/cat/0.png,cat", r"0\.png is listed twice, as 'cat'; list it once"),
        ("pets/cat/0.png,dog", r"0\.png is listed twice, as 'cat' and 'dog'"),
        ("pets/cat/0.png,", "is listed twice, as 'cat' and unlabelled"),
        ("pets/../pets/cat/0.png,cat", r"\(also .*pets/cat/0\.png\) is listed twice"),
        ("./pets/dog/../cat/./0.png,dog", "is listed twice, as 'cat' and 'dog'"),
        ("pets/cat/4.png,c\0at", "line 8: a NUL byte"),
        ("pets/cat/4\0.png,cat", "line 8: a NUL byte"),
        ("a" * 200_000 + ",cat", "cannot be read as CSV .*field larger than field limit"),
        ("a," * 600_000, "line 8: longer than 1,048,576 characters"),
        ("pets/cat/4.png,cat,test", "line 8: more fields than the first line; quote commas"),
        ("pets/cat/4.png,CAT", "the classes 'CAT' and 'cat' differ only in case"),
        ("pets/cat/4.png,Dog", "the classes 'Dog' and 'dog' differ only in case"),
    ],
)
def test_wrong_rows(tmp_path: Path, row: str, message: str) -> None:
    refused(table_of(tmp_path, row), message)


def test_the_same_image_in_training_and_test(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    table.write_text(table.read_text().replace("label\n", "label,split\n") + "pets/cat/0.png,cat,test\n")
    refused(table, "is listed twice, as 'cat' and 'cat' in test")


def test_labels_that_differ_by_unicode_form_only(tmp_path: Path) -> None:
    composed = unicodedata.normalize("NFC", "café")
    rows = [
        f"pets/unlabeled/{n}.png,{name}" for n, name in enumerate([composed, unicodedata.normalize("NFD", composed)])
    ]
    refused(table_of(tmp_path, *rows), r"the classes 'cafe\\u0301' and 'caf\\xe9' differ only")


@pytest.mark.parametrize("head", ["path,label,label", "path,path,label"])
def test_a_column_twice(tmp_path: Path, head: str) -> None:
    table = table_of(tmp_path)
    table.write_text(table.read_text().replace("path,label", head))
    refused(table, "the first line must be path,label")


def test_a_table_in_another_encoding(tmp_path: Path) -> None:
    table = table_of(tmp_path, "pets/cat/4.png,Kätzchen")
    text = table.read_text(encoding="utf-8")
    table.write_text(text, encoding="latin-1")
    refused(table, "cannot be read as CSV in UTF-8")
    table.write_text(text, encoding="utf-16")
    refused(table, "cannot be read as CSV in UTF-8")
    table.write_text(text.replace("ä", "a"), encoding="utf-16-le")
    refused(table, "line 1: a NUL byte")


def test_links_that_show_an_image_twice(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "dog" / "linked.png").symlink_to(folder / "cat" / "0.png")
    refused(folder, r"linked\.png \(also .*cat/0\.png\) is listed twice, as 'cat' and 'dog'")
    (folder / "dog" / "linked.png").unlink()
    (folder / "fox").symlink_to(folder / "cat")
    refused(folder, "is listed twice, as 'cat' and 'fox'")
    (folder / "fox").unlink()
    (folder / "wolf").symlink_to(folder)
    refused(folder, "is listed twice")


def test_links_that_lead_nowhere_are_unreadable_images(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "dog" / "gone.png").symlink_to(folder / "nowhere.png")
    (folder / "dog" / "loop.png").symlink_to(folder / "dog" / "loop.png")
    (folder / "dog" / "inner").symlink_to(folder / "dog")
    with pytest.warns(OrdiscoWarning, match=r"2 unreadable images skipped: .*gone\.png, .*loop\.png$"):
        load(str(folder), tmp_path / "data", size=8)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_or_a_device_is_never_opened(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    os.mkfifo(folder / "dog" / "pipe.png")
    with pytest.warns(OrdiscoWarning, match=r"1 unreadable images skipped: .*pipe\.png$"):
        load(str(folder), tmp_path / "data", size=8)
    table = table_of(tmp_path / "other", "../pets/dog/pipe.png,dog", "/dev/zero,cat", "pets/cat,dog")
    with pytest.warns(OrdiscoWarning, match=r"3 unreadable images skipped: .*pipe\.png, /dev/zero, .*pets/cat$"):
        load(str(table), tmp_path / "data", size=8)
    with pytest.raises(OrdiscoError, match=r"pipe\.png \(not a regular file\); mend or remove it"):
        load(str(table), tmp_path / "data", size=8, strict=True)


def test_a_folder_with_an_images_name_is_a_folder(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    save(folder / "dog" / "more.png" / "5.png", (1, 2, 3))
    assert len(load(str(folder), tmp_path / "data", size=8).train) == 15


def test_a_sub_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, scandir = make_folder(tmp_path), os.scandir

    def refuse(place: object) -> object:
        if Path(str(place)) == folder:  # which Python 3.13 lists by scandir too
            return scandir(folder)
        raise PermissionError(13, "Permission denied", str(place))

    monkeypatch.setattr(own.os, "scandir", refuse)
    refused(folder, r"cannot read .*cat: Permission denied")


@pytest.mark.slow
def test_an_image_that_swells_beyond_measure_is_skipped(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    Image.new("1", (20_000, 9_000)).save(folder / "dog" / "huge.gif")
    with pytest.warns(OrdiscoWarning, match=r"1 unreadable images skipped: .*huge\.gif$"):
        load(str(folder), tmp_path / "data", size=8)


@pytest.mark.parametrize("name", [" ", "\u3000"])
def test_a_blank_class(tmp_path: Path, name: str) -> None:
    folder = make_folder(tmp_path)
    save(folder / name / "1.png")
    refused(folder, "a class has the blank name")


@pytest.mark.filterwarnings("always::ordisco.errors.OrdiscoWarning")
@pytest.mark.slow
def test_names_of_any_kind_are_shown_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    folder = make_folder(tmp_path)
    for name in ("[bold]", "a\nb", "\x1b[31m", "$x^", "²", "9" * 250, "\udcff"):
        for number in range(3):
            save(folder / name / f"{number}.png", (1, 2, number))
    (folder / "cat" / "bad\nname [red].png").write_bytes(b"")
    odd = folder.rename(tmp_path / "pe[t] s")
    words = ["stream", str(odd), "--increments", "2", "--size", "8", "--data-dir", str(tmp_path / "data")]
    assert main(words) == 0
    out, err = capsys.readouterr()
    for shown in ("pe[t] s", "[bold]", r"a\nb", r"\x1b[31m", "²", r"\xff"):
        assert shown in out
    assert "\x1b[31m" not in out
    assert err.count("\n") == 1
    assert r"bad\nname [red].png" in err
    assert main([*words, "--classes", "cat,lion"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 2  # the image that is skipped, and the class that is not there
    assert r"a\nb, cat, dog, ²" in said
    assert main(["data", "check", str(odd), "--data-dir", str(tmp_path / "data")]) == 0
    out, err = capsys.readouterr()
    assert r"bad\nname [red].png" in out
    assert main(["data", "check", str(odd), "--strict"]) == 1
    assert r"cannot decode" in capsys.readouterr().out


def test_a_label_with_markup_from_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    long = "long" * 1250
    rows = [f"pets/unlabeled/{n}.png,{label}" for n, label in enumerate(["[/y]"] * 3 + [long] * 3)]
    table = table_of(tmp_path, *rows)
    assert main(["stream", str(table), "--increments", "2", "--data-dir", str(tmp_path / "data")]) == 0
    shown = capsys.readouterr().out
    assert "[/y]" in shown
    assert "longlong" in shown
    assert long[:100] not in shown.replace("\n", "")
    few = ["stream", str(table), "--increments", "9", "--data-dir", str(tmp_path / "data")]
    for classes in (f"{long},cat", f"{long}x,cat"):
        assert main([*few, "--classes", classes]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert len(said) < 2100


def test_names_of_5000_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["stream", "x" * 5000], ["data", "check", "y/" * 2500], ["data", "check", "z" * 5000 + ".csv"]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert len(said) < 1500
    table = table_of(tmp_path, "p" * 5000 + ".png,cat")
    with pytest.warns(OrdiscoWarning, match="1 unreadable images skipped") as told:
        load(str(table), tmp_path / "data", size=8)
    assert len(str(told[0].message)) < 1500
