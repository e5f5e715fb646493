"""Values: every number has an upper end, every text a length, every option is given once; nothing is built before."""

import dataclasses
import json
import re

import pytest
import torch

from ordisco.cli import main
from ordisco.cli.run import configuration
from ordisco.errors import UsageError, one_line, readable, shown
from ordisco.machine.cores import memory
from ordisco.nets.count import memory_of_a_step, preset_sizes
from ordisco.runs.config import RunConfig
from ordisco.runs.presets import PRESET_IMAGES, PRESETS
from ordisco.settings.fields import value_type
from ordisco.settings.learner import GROUPS
from ordisco.settings.machine import MachineSettings
from ordisco.streams.settings import StreamSettings
from tiny import STREAM, TINY, call
from tiny import one_line as only_line

EVERY = (*GROUPS, MachineSettings, StreamSettings)
NUMBERS = [
    (group, field.name, value_type(group, field.name)[0])
    for group in EVERY
    for field in dataclasses.fields(group)
    if value_type(group, field.name)[0] in (int, float)
]
TEXTS = [(StreamSettings, name) for name in ("dataset", "classes", "class_order")]
TEXTS += [(MachineSettings, name) for name in ("data_dir", "judge")]
LONG = "n" * 5_000


@pytest.mark.parametrize(("group", "name", "kind"), NUMBERS, ids=[name for _, name, _ in NUMBERS])
def test_every_number_has_two_ends(group, name, kind):
    field = next(field for field in dataclasses.fields(group) if field.name == name)
    low, high = field.metadata["low"], field.metadata["high"]
    assert low is not None
    assert high is not None
    group(**{name: kind(high)})
    for wrong in (kind(high) * 2 + 1, -1, 10**400, float("inf"), float("nan"), True, "1"):
        with pytest.raises(UsageError, match=rf"^{name} = .*is not allowed: .*from {low} to {re.escape(str(high))}$"):
            group(**{name: wrong})


@pytest.mark.parametrize(("group", "name"), TEXTS, ids=[name for _, name in TEXTS])
@pytest.mark.parametrize(
    ("text", "told"), [("a\0b", "control"), ("a\nb", "control"), ("\x1b[2J", "control"), ("\udcff", "UTF-8")]
)
def test_a_text_has_no_control_characters_and_can_be_written_down(group, name, text, told):
    with pytest.raises(UsageError, match=rf"^{name} = '.*' is not allowed: a text .*{told}"):
        group(**{name: text})
    with pytest.raises(UsageError, match=r"at most [0-9,]+ characters"):
        group(**{name: "x" * 100_000})


def test_a_long_value_is_not_repeated_whole():
    assert shown("x" * 5_000) == f"'{'x' * 80}'… (5,000 characters)"
    assert len(shown(10**400)) < 100
    assert shown("x") == "'x'"
    assert one_line("a\nb\x1b[31m\0") == "a\\nb\\x1b[31m\\x00"
    assert len(readable("x" * 10**6)) < 20_000


WRONG = [
    *(["run", *words] for words in (["--threads", "100000"], ["--d-tail", "100000"], ["--seeds", "1000000000"])),
    *(["run", flag, "1000000000"] for flag in ("--batch-labeled", "--batch-unlabeled", "--c-width", "--z-dim")),
    *(
        ["run", flag, value]
        for flag in ("--c-lr", "--d-penalty", "--replay-weight")
        for value in ("inf", "nan", "1e99")
    ),
    ["run", "--method", "all", "--method", "nope"],
    ["run", "--method", "all", "--seeds", "9999"],
    ["run", "--max-steps", "9" * 30],
    ["run", "--seed", "9" * 5_000],
    ["run", "--jobs", "100000"],
    ["run", "--devices", "1000", "--accelerator", "cpu", "--precision", "32-true"],
    ["run", "--devices", "1000", "--accelerator", "cpu", "--precision", "32-true", "--dry-run"],
    ["run", "--steps", "3", "--steps", "4"],
    ["run", "--steps=3", "--steps=3"],
    ["run", "--grey", "--no-grey"],
    ["run", "--dry-run", "--dry-run"],
    ["run", "--step", "3"],
    ["run", LONG],
    ["run", "/" + LONG],
    ["run", "~nobody-of-that-name/x"],
    ["run", "a\0b"],
    ["run", "\udcff\udcfe"],
    ["run", ""],
    *(
        ["run", flag, LONG]
        for flag in ("--method", "--preset", "--out", "--judge", "--classes", "--scenario", "--steps")
    ),
    *(["run", flag, "a\0b"] for flag in ("--method", "--preset", "--out", "--judge", "--classes", "--data-dir")),
    ["run", "--out", ""],
    ["run", "--out=--"],
    ["run", "--judge", LONG[:300]],
    ["run", "--data-dir", LONG[:300]],
    ["resume", LONG[:300]],
    ["stream", "digits-1", "--save", "a/" * 1_000 + "x"],
    ["run", "--classes", " , "],
    ["stream", "digits-1", "--classes", ""],
    ["run", "--" + LONG],
    ["run", "digits-1", LONG],
    ["resume", "x\0"],
    ["resume", ""],
    ["resume", LONG],
    ["resume", "x", "--max-steps", "9" * 30],
    ["stream", LONG],
    ["stream", "digits-1", "--seed", "-1"],
    ["stream", "digits-1", "--seed", "1", "--seed", "1"],
    ["stream", "digits-1", "--labels-per-class", "9" * 30],
    ["stream", "digits-1", "--save", "\0"],
    ["data", "check", LONG],
    ["data", "check", "\0"],
    ["data", "list", "--json", "--json"],
    ["nets", "--num-classes", "0"],
    ["nets", "--num-classes", "9" * 30],
    ["nets", "--g-width", "100000"],
    ["bench", "--rounds", "9" * 30],
    ["bench", "--threads", "100000"],
    ["frobnicate" + LONG],
]


@pytest.mark.parametrize("argv", WRONG, ids=lambda argv: " ".join(argv)[:60].encode("ascii", "replace").decode())
def test_a_wrong_value_is_one_short_line_before_anything_is_built(argv, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ordisco.learner.learner.Networks", None)
    code, out, err = call(capsys, *argv)
    assert (code, out) == (2, "")
    line = only_line(err)
    assert line.startswith("ordisco: error: ")
    assert len(line) < 1_000
    assert list(tmp_path.iterdir()) == []


def test_an_out_that_the_file_system_refuses_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--precision", "32-true", "--steps", "1", "--max-steps", "1", "--method", "st")
    code, _, err = call(capsys, "run", *TINY, *options, "--out", LONG[:300])
    assert code == 2
    assert only_line(err).endswith("at most 4,096 characters, 255 for a name, 200 names (see ordisco run --help)")
    assert list(tmp_path.iterdir()) == []


def test_a_stream_with_a_long_name_has_a_run_directory_with_a_short_one(tmp_path, capsys, monkeypatch):
    from ordisco.cli import parser

    monkeypatch.chdir(tmp_path)
    (tmp_path / LONG[:250]).mkdir()
    config, _, _ = configuration(parser().parse_args(["run", LONG[:250]]))
    assert config.stream_name == LONG[:100]
    assert config.stream.dataset == str(tmp_path / LONG[:250])


def test_a_repeated_option_is_refused_and_a_repeated_method_is_not(capsys):
    code, _, err = call(capsys, "run", STREAM, "--method", "st", "--method", "smb", "--seed", "1", "--seed", "2")
    assert (code, only_line(err)) == (
        2,
        "ordisco: error: argument --seed: given more than once (see ordisco run --help)",
    )
    code, _, err = call(capsys, "nets", "--preset", "demo", "--preset", "small")
    assert (code, err) == (0, "")
    assert call(capsys, "nets", "--preset", "demo")[0] == 0  # what was given before is forgotten


def test_a_dry_run_of_several_processes_measures_one_and_says_so(capsys):
    options = ("--precision", "32-true", "--devices", "2", "--method", "st", "--dry-run", "--steps", "2")
    code, out, err = call(capsys, "run", *TINY, *options)
    assert (code, err) == (0, "")
    assert "devices = 2" in out
    assert "# measured with one process instead of 2" in out


def test_counting_needs_no_memory_and_no_random_numbers(capsys):
    state, widths = torch.get_rng_state(), ("--c-width", "4096", "--g-width", "4096", "--d-width", "4096")
    code, out, _ = call(capsys, "nets", *widths, "--side", "64", "--preset", "small", "--json")
    assert code == 0
    assert all(row["parameters"] > 10**9 for row in json.loads(out))  # as many as no test could build
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", PRESETS)
def test_the_memory_of_a_step_counts_weights_and_activations(name):
    settings, shape = PRESETS[name], PRESET_IMAGES[name]
    sizes = preset_sizes(settings, shape, 10)
    assert all(size.activations > 10 * shape[1] ** 2 for size in sizes.values())
    alone, gan = (memory_of_a_step(settings, shape, 10, has_gan, 4) for has_gan in (False, True))
    weights = 24 * sizes["C"].parameters
    step = settings.step
    assert alone == weights + 4 * (step.batch_labeled + step.batch_unlabeled) * sizes["C"].activations
    assert gan > alone + 16 * sizes["G"].parameters
    assert memory_of_a_step(settings, shape, 10, False, 2) == weights + (alone - weights) // 2


def test_the_memory_of_a_container_counts(tmp_path):
    limit, unlimited, absent = tmp_path / "limit", tmp_path / "max", tmp_path / "absent"
    limit.write_text("1000000\n")
    unlimited.write_text("max\n")
    assert memory((limit, unlimited, absent)) == 1_000_000
    assert memory((unlimited, absent)) == memory(()) != 1_000_000


def test_a_run_has_a_seed_and_a_method_of_the_right_type():
    for wrong in (
        {"seed": 1.5},
        {"seed": True},
        {"seed": "1"},
        {"method": ["st"]},
        {"preset": 3},
        {"stream_name": "\0"},
    ):
        values = {"stream_name": "x", "method": "st", "preset": "demo", "seed": 0} | wrong
        with pytest.raises(UsageError, match=f"^{next(iter(wrong))} = .* is not allowed"):
            RunConfig(stream=StreamSettings(), **values)


def test_abbreviations_are_not_taken(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    code, _, err = call(capsys, "run", "--dry")
    assert code == 2
    assert "unrecognized arguments: --dry" in err
