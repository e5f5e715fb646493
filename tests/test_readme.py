"""What the README tells a newcomer is true."""

import dataclasses
import re
from pathlib import Path

import pytest

from conftest import TINY
from ordisco import METHODS
from ordisco.cli import parser
from ordisco.runs import presets
from ordisco.settings.learner import GROUPS
from ordisco.streams.catalogue import STREAMS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.slow
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
            named = getattr(args, "method", None) or ()  # several of `run`, one of `learn`
            for name in [named] if isinstance(named, str) else named:
                assert name in METHODS
            if command.startswith("stream"):
                assert args.name in STREAMS


def test_the_pictures_are_there():
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", README)
    assert len(pictures) == 5
    for picture in pictures:
        assert (Path(__file__).parents[1] / picture).is_file()


def test_every_setting_of_a_learner_has_its_line_in_the_paper_page() -> None:
    page = (ROOT / "docs" / "paper.md").read_text()
    missing = [f.name for group in GROUPS for f in dataclasses.fields(group) if f"`{f.name}`" not in page]
    assert missing == []
