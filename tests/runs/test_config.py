"""A configuration is resolved in one place, whoever asks: the command line, a study, a program."""

import collections
import dataclasses
from pathlib import Path

import pytest

from ordisco.cli import parser
from ordisco.cli.run import configuration
from ordisco.errors import UsageError
from ordisco.runs.config import FIELDS, RunConfig
from ordisco.settings.learner import GROUPS
from ordisco.settings.machine import MachineSettings
from ordisco.streams.settings import StreamSettings


def test_a_name_is_of_one_setting_only() -> None:
    groups = (StreamSettings, *GROUPS, MachineSettings)
    names = collections.Counter(field.name for group in groups for field in dataclasses.fields(group))
    assert {name for name, count in names.items() if count > 1} == set()
    assert names.keys() == FIELDS.keys()
    assert not FIELDS.keys() & {"stream", "method", "preset", "seed", "runs_at_once"}


@pytest.mark.parametrize(
    ("words", "stream", "more"),
    [
        ([], "digits-5-new-class", {}),
        (["svhn-1", "--seed", "3", "--steps", "7"], "svhn-1", {"seed": 3, "steps": 7}),
        (["svhn-1", "--increments", "5", "--no-grey"], "svhn-1", {"increments": 5, "grey": False}),
        (["cifar10-5", "--preset", "paper", "--threads", "2"], "cifar10-5", {"preset": "paper", "threads": 2}),
        (["digits-1", "--method", "smb", "--dataset", "svhn"], "digits-1", {"method": "smb", "dataset": "svhn"}),
    ],
)
def test_the_command_line_gives_what_resolve_gives(words: list[str], stream: str, more: dict[str, object]) -> None:
    config, _, _ = configuration(parser().parse_args(["run", *words]))
    assert config == RunConfig.resolve(stream, **more)  # type: ignore[arg-type]


def test_the_preset_follows_the_data_and_the_stream_follows_the_preset() -> None:
    assert RunConfig.resolve("digits-1").preset == "demo"
    small = RunConfig.resolve("svhn-1")
    assert (small.preset, small.stream.size, small.stream.grey, small.machine.threads) == ("small", 16, True, 1)
    assert small.learner.step.steps == 1500 // 30
    assert RunConfig.resolve("svhn-1", increments=5).learner.step.steps == 300
    assert RunConfig.resolve("svhn-1", preset="paper").stream.size is None


def test_threads_are_shared_by_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordisco.runs.presets.cores", lambda: 8)
    assert RunConfig.resolve("svhn-1", preset="paper").machine.threads is None
    assert RunConfig.resolve("svhn-1", preset="paper", runs_at_once=2).machine.threads == 4
    assert RunConfig.resolve("svhn-1", preset="paper", runs_at_once=2, threads=3).machine.threads == 3


def test_paths_are_absolute_and_a_stream_of_own_data_has_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    config = RunConfig.resolve("./mine", data_dir="d", judge="j")
    assert (config.stream_name, config.stream.dataset) == ("mine", str(tmp_path / "mine"))
    assert (config.machine.data_dir, config.machine.judge) == (str(tmp_path / "d"), str(tmp_path / "j"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"stepz": 1}, "'stepz' is no setting of a run"),
        ({"steps": None}, "steps = None is not allowed"),
        ({"steps": 0}, "steps = 0 is not allowed"),
        ({"preset": "big"}, "preset = 'big' is not allowed"),
        ({"method": "gan"}, "method = 'gan' is not allowed"),
        ({"stream": "nowhere"}, "stream 'nowhere' is not allowed"),
        ({"dataset": "nowhere"}, "data set 'nowhere' is not allowed"),
        ({"seed": -1}, "seed = -1 is not allowed"),
        ({"precision": "8"}, "precision = '8' is not allowed"),
    ],
)
def test_what_is_not_allowed_is_one_line(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RunConfig.resolve(**changes)  # type: ignore[arg-type]
