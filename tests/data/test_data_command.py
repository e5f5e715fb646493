import argparse
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_own import make_folder
from test_published import write_cifar10, write_svhn

from ordisco.cli import data as data_command
from ordisco.cli import stream as stream_command
from ordisco.cli.options import Parser
from ordisco.data import sources
from ordisco.data.catalogue import CATALOGUE
from ordisco.errors import OrdiscoError, UsageError


def ordisco(*words: str) -> int | None:
    parser = Parser(prog="ordisco")
    subparsers = parser.add_subparsers(required=True)
    data_command.add_parser(subparsers)
    stream_command.add_parser(subparsers)
    args: argparse.Namespace = parser.parse_args(words)
    return args.command(args)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    monkeypatch.setenv("ORDISCO_DATA", str(root))
    return root


def test_list(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_svhn(data_dir)
    (data_dir / "test_32x32.mat").unlink()
    write_cifar10(data_dir)
    assert ordisco("data", "--json") == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    there = {"digits": "embedded", "svhn": "incomplete", "cifar10": "present"}
    assert {name: row["state"] for name, row in rows.items()} == dict.fromkeys(CATALOGUE, "missing") | there
    assert rows["svhn"]["files"][1]["bytes"] is None
    assert ordisco("data") == 0
    text = capsys.readouterr().out
    assert "test_32x32.mat  (not there)" in text
    assert "embedded" in text


def test_check(data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    write_svhn(data_dir)
    assert ordisco("data", "check", "svhn", "digits", "--json") == 0
    differs, embedded = json.loads(capsys.readouterr().out)
    assert (differs["state"], differs["train"], differs["image_shape"]) == ("differs", 20, [3, 32, 32])
    assert "not the publisher's file" in differs["notes"][0]
    assert embedded["state"] == "embedded"
    assert not (data_dir / "cache").exists()
    right = tuple(
        dataclasses.replace(source, md5=sources.digest_of(data_dir / source.filename))
        for source in CATALOGUE["svhn"].sources
    )
    monkeypatch.setitem(CATALOGUE, "svhn", dataclasses.replace(CATALOGUE["svhn"], sources=right))
    assert ordisco("data", "check", "svhn", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["state"] == "verified"
    (data_dir / "test_32x32.mat").write_bytes(b"broken")
    assert ordisco("data", "check", "svhn", "cifar10") == 1
    text = capsys.readouterr().out
    assert "damaged" in text
    assert "test_32x32.mat: damaged or not SVHN" in text
    assert "missing" in text


def test_check_of_own_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_folder(tmp_path)
    (folder / "dog" / "bad.png").write_bytes(b"")
    assert ordisco("data", "check", str(folder), "--json") == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["state"] == "readable"
    assert "1 unreadable images skipped" in row["notes"][0]
    assert ordisco("data", "check", str(folder), "--strict") == 1


def test_wrong_names_are_usage_errors() -> None:
    for words in (["fetch", "mnist"], ["check", "mnist"], ["list", "mnist"], ["fetch"], ["check"], ["mnist"]):
        with pytest.raises(UsageError):
            ordisco("data", *words)


def test_fetch_of_what_is_there_does_nothing(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cifar10(data_dir)
    assert ordisco("data", "fetch", "cifar10", "digits") == 0
    assert capsys.readouterr().err == ""


def test_stream_json_and_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    ordisco("stream", "digits-1", "--json", "--seed", "3", "--increments", "4", "--max-images", "100")
    summary = json.loads(capsys.readouterr().out)
    assert list(summary) == ["name", "scenario", "seed", "test_images", "increments"]
    assert (summary["name"], summary["seed"], len(summary["increments"])) == ("digits-1", 3, 4)
    assert sum(row["images"] for row in summary["increments"]) == 100
    assert list(summary["increments"][0]) == ["images", "labeled", "labels_per_class", "classes"]


def test_stream_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ordisco("stream", "digits-5-new-class")
    text = capsys.readouterr().out
    assert "digits-5-new-class · New Class · seed 0" in text
    assert "8, 9" in text
    assert "1,438" in text
    assert "359 test images" in text


def test_stream_of_own_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ordisco("stream", str(make_folder(tmp_path)), "--increments", "2", "--json")
    summary = json.loads(capsys.readouterr().out)
    assert summary["name"] == "pets"
    assert [row["labels_per_class"] for row in summary["increments"]] == [{"cat": 1, "dog": 1}] * 2


def test_save_and_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "m.json")
    ordisco("stream", "digits-1", "--save", file)
    ordisco("stream", "digits-1", "--check", file)
    with pytest.raises(OrdiscoError, match="another stream than digits-1"):
        ordisco("stream", "digits-1", "--seed", "1", "--check", file)
    with pytest.raises(OrdiscoError, match="made from other data"):
        ordisco("stream", "digits-1", "--size", "4", "--check", file)


@pytest.mark.parametrize(
    "words",
    [
        ["svhn-2"],
        ["digits-1", "--increments", "x"],
        ["digits-1", "--size", "3"],
        ["digits-1", "--scenario", "x"],
    ],
)
def test_stream_usage_errors(words: list[str]) -> None:
    with pytest.raises(UsageError):
        ordisco("stream", *words)


def test_declaring_the_commands_does_not_import_torch() -> None:
    code = (
        "import sys; from ordisco.cli import data, stream; from ordisco.cli.options import Parser;"
        "s = Parser().add_subparsers(); data.add_parser(s); stream.add_parser(s);"
        "assert not {'torch', 'numpy', 'rich'} & set(sys.modules), 'slow import'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
