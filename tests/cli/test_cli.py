"""The command line: help without torch, and one line for every mistake."""

import json
import re
import resource
import subprocess
import sys

import pytest
import torch

from ordisco import __version__
from ordisco.cli import main, parser
from ordisco.settings.methods import METHODS
from ordisco.streams.catalogue import STREAMS
from tiny import DATA, STREAM, TINY, arguments, call, one_line

COMMANDS = ("run", "resume", "study", "judge", "stream", "data", "methods", "nets", "bench")


def test_help_needs_neither_torch_nor_half_a_second():
    code = """
import sys
from ordisco.cli import main
try:
    main(sys.argv[1:])
finally:
    heavy = {"torch", "numpy", "matplotlib", "lightning_fabric", "PIL", "sklearn", "scipy", "rich"} & sys.modules.keys()
    print("LOADED", sorted(heavy))
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for options in (["--help"], ["run", "--help"], ["study", "--help"]):
        done = subprocess.run([sys.executable, "-c", code, *options], capture_output=True, text=True, check=True)
        assert done.stdout.endswith("LOADED []\n")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3 * 0.5  # seconds of CPU for three


def test_python_dash_m():
    done = subprocess.run([sys.executable, "-m", "ordisco", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{__version__}\n", "")
    done = subprocess.run([sys.executable, "-m", "ordisco", "run", "--stepz"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unrecognized arguments: --stepz" in one_line(done.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: ordisco {command}" in out
    assert len(out.splitlines()) > 5


def test_the_commands_are_these(capsys):
    code, out, err = call(capsys)
    assert (code, err) == (0, "")
    for command in COMMANDS:
        assert re.search(rf"^    {command} +\w", out, re.MULTILINE)
    assert call(capsys, "--version")[1] == f"{__version__}\n"
    assert parser().prog == "ordisco"


def test_help_names_every_setting_with_its_range(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    out = capsys.readouterr().out
    for line in (
        "--alpha FLOAT         α of Eq. 4: generated against pseudo-labelled pairs (from 0.0 to 1.0; paper: 0.5)",
        "--max-images INT      use at most so many training images (from 1 to 100000000)",
        "--adversarial {logistic,hinge}",
        "--checkpoint-seconds FLOAT",
        "--tensorboard, --no-tensorboard",
    ):
        assert line in out


WRONG = [
    (["run", "nowhere"], r"stream 'nowhere' is not allowed: one of svhn-1, .* existing folder or CSV file"),
    (["run", STREAM, "--dataset", "/nowhere"], r"data set '/nowhere' is not allowed: one of digits, svhn"),
    (["run", "--method", "gan"], r"method = 'gan' is not allowed: .*ordisco"),
    (["run", "--preset", "big"], r"argument --preset: invalid choice: 'big' \(choose from '?demo"),
    (["run", "--seed", "-1"], r"seed = -1 is not allowed: from 0 to 4294967295"),
    (["run", "--seed", "4294967295", "--seeds", "2"], r"seed = 4294967296 is not allowed"),
    (["run", "--seed", "x"], r"argument --seed: invalid int value: 'x'"),
    (["run", "--seeds", "0"], r"seeds = 0 is not allowed: from 1 to 10000"),
    (["run", "--max-steps", "0"], r"max_steps = 0 is not allowed: from 1 to 10"),
    (["run", "--steps", "0"], r"steps = 0 is not allowed: from 1 to 1000000000"),
    (["run", "--threads", "0"], r"threads = 0 is not allowed: from 1 to 1024"),
    (["run", "--devices", "0"], r"devices = 0 is not allowed: from 1 to 1024"),
    (["run", "--alpha", "1.5"], r"alpha = 1.5 is not allowed: from 0.0 to 1.0"),
    (["run", "--c-lr", "nan"], r"c_lr = nan is not allowed: from 0.0 to 1000000.0"),
    (["run", "--c-lr", "fast"], r"argument --c-lr: invalid float value: 'fast'"),
    (["run", "--checkpoint-seconds", "-1"], r"checkpoint_seconds = -1.0 is not allowed: from 0.0 to 1000000000.0"),
    (["run", "--adversarial", "wasserstein"], r"argument --adversarial: invalid choice: 'wasserstein' \(choose from"),
    (["run", "--precision", "8"], r"argument --precision: invalid choice: '8' \(choose from '?32-true"),
    (["run", "--size", "big"], r"argument --size: invalid int value: 'big'"),
    (["run", "--size", "3"], r"size = 3 is not allowed: from 4 to 512"),
    (["run", "--size", "12"], r"size = 12 is not allowed: the networks take 8, 16, 32, 64"),
    (["run", STREAM, "--class-order", "1,2"], r"class_order = '1,2' is not allowed: 0,1,2"),
    (["run", STREAM, "--drift"], r"drift is only for the scenario new-instance"),
    (["run", "digits-1", "--class-order", "1,2"], r"class_order is only for the scenario new-class"),
    (["run", STREAM, "--classes", "0,cat"], r"cat"),
    (["run", STREAM, "--classes-per-task", "11"], r"classes_per_task = 11 is not allowed: from 1 to 10"),
    (["run", STREAM, "--judge", "/nowhere"], r"judge = '/nowhere' is not allowed: .*no run directory at /nowhere"),
    (["run", "--frobnicate"], r"unrecognized arguments: --frobnicate"),
    (["frobnicate"], r"invalid choice: 'frobnicate' \(choose from '?learn"),
    (["resume"], r"the following arguments are required: RUN"),
    (["nets", "--side", "12"], r"argument --side: invalid choice: 12 \(choose from 8, 16, 32, 64\)"),
    (["nets", "--g-width", "0"], r"g_width = 0 is not allowed: from 1 to 4096"),
]


def name_of(part):
    return " ".join(part) if isinstance(part, list) else ""


WRONG_DRY = [([*argv, "--dry-run"], message) for argv, message in WRONG if argv[0] == "run"]


@pytest.mark.parametrize(
    ("argv", "message"), [*WRONG, *WRONG_DRY], ids=lambda part: " ".join(part) if isinstance(part, list) else ""
)
def test_a_wrong_option_is_one_line_and_exit_code_2(argv, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, *argv)
    assert code == 2
    line = one_line(err)
    assert line.startswith("ordisco: error: ")
    assert re.search(message, line)
    assert "Traceback" not in out + err
    assert list(tmp_path.iterdir()) == []  # nothing was begun


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
@pytest.mark.parametrize("accelerator", ["cuda", "mps"])
@pytest.mark.parametrize("methods", [["--method", "smb"], []], ids=["one", "compared"])
def test_a_device_that_is_not_there(accelerator, methods, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "run", *methods, "--accelerator", accelerator)
    assert (code, out) == (2, "")
    start = f"ordisco: error: accelerator = '{accelerator}' with devices = 1 is not allowed on this machine, which has"
    assert one_line(err).startswith(f"{start} auto, cpu")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options", [("--c-width", "2048"), ("--batch-labeled", "65536"), ("--d-tail", "60", "--d-width", "512")]
)
@pytest.mark.slow
def test_what_is_larger_than_memory_is_one_line_before_it_is_built(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ordisco.learner.fits.memory", lambda: 300_000_000)
    monkeypatch.setattr("ordisco.learner.learner.Networks", None)  # nothing is built
    code, out, err = call(capsys, *arguments(tmp_path / "run", "--precision", "32-true", *options))
    assert (code, out) == (2, "")
    assert re.search(
        r"need about [\d.]+ [GM]B of memory, this machine has 300 MB: lower the widths or the", one_line(err)
    )
    assert not (tmp_path / "run").exists()


def test_no_memory_left_is_one_line(tmp_path, capsys, monkeypatch):
    def full(*args):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")

    monkeypatch.setattr("ordisco.learner.learner.Networks", full)
    code, out, err = call(capsys, *arguments(tmp_path / "run", "--precision", "32-true"))
    assert (code, out) == (1, "")
    assert one_line(err) == "ordisco: error: not enough memory: lower the widths or the batch sizes"


def test_a_bug_is_not_hidden(monkeypatch):
    def broken(args):
        raise RuntimeError("a bug")

    monkeypatch.setattr("ordisco.cli.methods.run", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["methods"])


def test_a_comparison_that_cannot_begin_leaves_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for wrong in (["--size", "12"], ["--judge", "nowhere"], ["--labels-per-class", "1000"]):
        code, out, err = call(capsys, "run", *wrong)
        assert code in (1, 2)
        assert out == ""
        one_line(err)
        assert list(tmp_path.iterdir()) == []


def test_a_judge_must_know_the_classes_and_see_the_same_images(tmp_path, capsys):
    young, other = tmp_path / "young", tmp_path / "other"
    assert call(capsys, *arguments(young, "--method", "st", "--max-steps", "1"))[0] == 0
    large = ["--size", "16", "--steps", "1"]
    assert call(capsys, *arguments(other, "--method", "st", "--max-steps", "1", *large))[0] == 0
    for options, message in (
        ([*arguments(tmp_path / "new"), "--judge", young], "it has not learned 2, 3; finish that run first"),
        ([*arguments(tmp_path / "new"), "--judge", other], "it takes 1×16×16 images, the stream has 1×8×8"),
        (arguments(tmp_path / "new", "--classes", "4,5,6,7", "--judge", str(young)), "its classes is 0,1,2,3, that of"),
    ):
        code, _, err = call(capsys, *options)
        assert code == 2
        assert "judge = " in one_line(err)
        assert message in err
        assert not (tmp_path / "new").exists()


def test_names_of_streams_are_in_the_help(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    out = capsys.readouterr().out.replace("\n", " ")
    for name in STREAMS:
        assert name in out.replace("- ", "-")


def test_methods_and_nets_answer_in_json(capsys):
    code, out, _ = call(capsys, "methods", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(out)] == list(METHODS)
    out = call(capsys, "methods")[1]
    for name in METHODS:
        assert re.search(rf"│ {re.escape(name)} +│", out)  # no name is cut
    code, out, _ = call(capsys, "nets", "--preset", "demo", "--json")
    assert code == 0
    assert [(row["preset"], row["net"]) for row in json.loads(out)] == [("demo", net) for net in "CGD"]
    code, out, _ = call(capsys, "stream", STREAM, *DATA, "--json")
    assert code == 0
    assert [row["classes"] for row in json.loads(out)["increments"]] == [["0", "1"], ["2", "3"]]


def test_without_out_runs_are_numbered_below_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (f"{STREAM}-st-seed3", f"{STREAM}-st-seed3-2"):
        code, out, _ = call(capsys, "run", *TINY, "--steps", "1", "--method", "st", "--seed", "3", "--max-steps", "1")
        assert code == 0
        assert out.endswith(f"go on with: ordisco resume runs/{name}\n")
        assert (tmp_path / "runs" / name / "settings.toml").exists()
