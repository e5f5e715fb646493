"""What the README tells a newcomer is true."""

import re
from pathlib import Path

import pytest

from conftest import TINY
from ordisco import METHODS, presets
from ordisco.cli import parser
from ordisco.scenarios import STREAMS

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(presets.PRESETS, "demo", TINY)
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.split()) == 5  # an accuracy for each of the five increments


def test_the_commands_parse():
    commands = re.findall(r"^ordisco (.*?)(?:\s+#.*)?$", README, flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        if "--help" not in command:
            args = parser().parse_args(command.split())
            assert hasattr(args, "command")
            for name in getattr(args, "method", None) or ():
                assert name in METHODS
            if command.startswith("stream"):
                assert args.name in STREAMS


def test_the_pictures_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (Path(__file__).parents[1] / picture).is_file()
    assert f"{len(METHODS)} methods" in README
