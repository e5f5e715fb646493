"""32 bits unless asked otherwise; bf16 on a CPU is tried by a child first, and a child that dies is one line."""

import io
import itertools
import json
import os
import resource
import signal
import sys
import tomllib
from types import SimpleNamespace

import pytest
import torch

from conftest import FABRIC
from conftest import TINY as SETTINGS
from ordisco.cli import main
from ordisco.errors import UsageError
from ordisco.launchers.base import Ends
from ordisco.launchers.local import Local
from ordisco.machine import cores as machine
from ordisco.machine.processes import make_fabric
from ordisco.runs import precision
from ordisco.runs.launch import load_learner, read_config
from ordisco.runs.precision import TRIED, check_precision, try_bf16
from ordisco.runs.signals import signal_name
from ordisco.settings.machine import MachineSettings
from ordisco.studies import engine
from tiny import TINY, arguments, call, one_line

SHAPE = (1, 8, 8)
BF16 = ("--precision", "bf16-mixed")
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"


def python(code: str) -> tuple[str, ...]:
    """The command of a child that does this."""
    return (sys.executable, "-c", f"import sys\nsys.stdin.read()\n{code}")


@pytest.fixture(autouse=True)
def nothing_tried(monkeypatch):
    """What one test has tried is not known to the next."""
    monkeypatch.setenv(TRIED, "")


@pytest.fixture
def trials(monkeypatch, tmp_path):
    """Makes every trial well or fatal; tells how many there were, those of child processes included."""
    log = tmp_path / "trials"
    log.touch()

    def go(code: str = "") -> None:
        monkeypatch.setattr(precision, "COMMAND", python(f"open({str(log)!r}, 'a').write('+')\n{code}"))

    go.count = lambda: len(log.read_text())
    return go


def assert_refused(code: int, err: str, happened: str = "ended by SIGILL") -> None:
    assert code == 2
    line = one_line(err)
    assert line.startswith("ordisco: error: ")
    assert "precision = 'bf16-mixed' is not allowed on this processor" in line
    assert machine.processor() in line
    assert f": a trial of C, G and D {happened}; use --precision 32-true" in line


# ---------------------------------------------------------------------- the default


def test_32_bits_are_the_default_everywhere(trials, tmp_path, capsys):
    assert MachineSettings().precision == "32-true"
    with make_fabric(MachineSettings(accelerator="cpu")).autocast():
        assert not torch.is_autocast_enabled("cpu")
    code, out, _ = call(capsys, "run", *TINY, "--method", "st", "--dry-run")
    assert code == 0
    assert tomllib.loads(out)["machine"]["precision"] == "32-true"
    assert call(capsys, *arguments(tmp_path / "run", "--method", "st", "--max-steps", "1"))[0] == 0
    assert read_config(tmp_path / "run").machine.precision == "32-true"
    assert trials.count() == 0


def test_auto_is_no_choice(tmp_path, capsys):
    code, out, err = call(capsys, *arguments(tmp_path / "run", "--precision", "auto"))
    assert (code, out) == (2, "")
    assert "invalid choice: 'auto'" in one_line(err)


# ---------------------------------------------------------------------- a trial


@pytest.mark.parametrize(
    ("code", "happened"),
    [
        (DIES, "ended by SIGILL"),
        ("os = __import__('os'); os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("os = __import__('os'); os.kill(os.getpid(), 36)", "ended by signal 36"),
        ("sys.exit(1)", "failed (exit code 1)"),
        ("1 / 0", "failed (ZeroDivisionError: division by zero)"),
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
    ],
)
def test_a_child_that_dies_or_hangs_is_one_line(monkeypatch, code, happened):
    monkeypatch.setattr(precision, "processor", lambda: "A Processor")
    monkeypatch.setattr(precision, "bf16_flags", lambda: ["avx512_bf16", "amx_bf16"])
    with pytest.raises(UsageError) as caught:
        try_bf16(SETTINGS, SHAPE, python(code), 0.5 if "sleep" in code else 60)
    assert str(caught.value) == (
        "precision = 'bf16-mixed' is not allowed on this processor, A Processor, which names avx512_bf16, amx_bf16: "
        f"a trial of C, G and D {happened}; use --precision 32-true"
    )
    assert os.environ[TRIED] == ""


def test_a_child_that_cannot_be_started(tmp_path):
    with pytest.raises(UsageError, match=r"could not be started \(No such file or directory\); use --precision 32"):
        try_bf16(SETTINGS, SHAPE, (str(tmp_path / "nothing"),))


def test_a_trial_that_went_well_is_not_repeated_but_for_other_networks():
    well, dies = python(""), python(DIES)
    try_bf16(SETTINGS, SHAPE, well)
    try_bf16(SETTINGS, SHAPE, dies)  # is not called
    for settings, shape in ((SETTINGS.replace(c_width=5), SHAPE), (SETTINGS, (3, 8, 8))):
        with pytest.raises(UsageError, match="SIGILL"):
            try_bf16(settings, shape, dies)
        try_bf16(settings, shape, well)
    try_bf16(SETTINGS, SHAPE, dies)


def test_nothing_is_tried_in_32_bits_or_on_a_gpu(trials):
    class Gpu:
        device = torch.device("cuda")

    trials(DIES)
    check_precision("32-true", FABRIC, SETTINGS, SHAPE)
    check_precision("bf16-mixed", Gpu(), SETTINGS, SHAPE)
    assert trials.count() == 0
    with pytest.raises(UsageError, match="ended by SIGILL"):
        check_precision("bf16-mixed", FABRIC, SETTINGS, SHAPE)


@pytest.mark.parametrize(("gan_net", "c_net"), [("residual", "nine-conv"), ("dcgan", "wrn-28")])
def test_a_trial_goes_through_the_networks_forward_and_backward_in_bf16(monkeypatch, gan_net, c_net):
    """With the format's name alone replaced: this process must not meet an instruction that faults."""
    seen: dict[str, list[torch.Tensor]] = {}

    class Watched(precision.Networks):
        def __init__(self, *args):
            super().__init__(*args)
            for name, net in (("C", self.C), ("G", self.gan.G), ("D", self.gan.D)):
                seen[name] = [parameter for parameter in net.module.parameters() if parameter.requires_grad]

    formats = []

    class In32(precision.OneProcess):
        def __init__(self, device, precision):
            formats.append(precision)
            super().__init__(device, "32-true")

    monkeypatch.setattr(precision, "Networks", Watched)
    monkeypatch.setattr(precision, "OneProcess", In32)
    precision.trial(SETTINGS.replace(gan_net=gan_net, c_net=c_net), SHAPE)
    assert formats == ["bf16-mixed"]
    assert {name: any(bool(p.grad.any()) for p in parameters) for name, parameters in seen.items()} == dict.fromkeys(
        "CGD", True
    )


@pytest.mark.slow
def test_a_real_trial_ends_well_or_is_one_line(tmp_path, capsys):
    run = tmp_path / "run"
    code, out, err = call(capsys, *arguments(run, "--method", "smb", "--max-steps", "1", *BF16))
    if code:
        assert "precision = 'bf16-mixed' is not allowed on this processor" in one_line(err)
        assert (out, run.exists()) == ("", False)
        return
    assert read_config(run).machine.precision == "bf16-mixed"
    assert len(os.environ[TRIED].split()) == 1
    assert call(capsys, "resume", run, "--max-steps", "2")[0] == 0


def test_the_child_does_as_asked_and_leaves_no_file_of_its_memory(monkeypatch):
    before, asked = resource.getrlimit(resource.RLIMIT_CORE), []
    request = {"settings": SETTINGS.to_dict(), "image_shape": SHAPE, "threads": 1}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
    monkeypatch.setattr(
        precision, "trial", lambda *args: asked.append((*args, resource.getrlimit(resource.RLIMIT_CORE)[0]))
    )
    try:
        precision.main()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    assert asked == [(SETTINGS, SHAPE, 0)]


# ---------------------------------------------------------------------- wherever bf16 is asked for


def test_a_run_is_refused_before_anything_is_written(trials, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trials(DIES)
    commands = {
        "one": arguments(tmp_path / "run", *BF16),
        "compared": arguments(tmp_path / "run", *BF16, "--method", "smb", "--method", "st", "--jobs", "2"),
        "dry": ["run", *TINY, "--dry-run", *BF16],
        "bench": ["bench", "--preset", "demo", "--threads", "1", *BF16],
        "profile": ["bench", "--profile", "--preset", "demo", "--threads", "1", *BF16],
    }
    for number, command in enumerate(commands.values(), 1):
        code, _, err = call(capsys, *command)
        assert_refused(code, err)
        assert trials.count() == number
    assert [path.name for path in tmp_path.iterdir()] == ["trials"]


@pytest.fixture
def begun(trials, tmp_path, capsys, monkeypatch):
    """A run and a comparison that say bf16, made without any, as on another machine where it works."""
    trials()
    monkeypatch.setattr("torch.autocast.__enter__", lambda self: self)
    monkeypatch.setattr("torch.autocast.__exit__", lambda self, *args: None)
    run, both = tmp_path / "run", tmp_path / "both"
    assert call(capsys, *arguments(run, "--method", "st", "--max-steps", "7", *BF16))[0] == 0
    methods = ("--method", "st", "--method", "smb", "--max-steps", "1")
    assert call(capsys, *arguments(both, *methods, *BF16))[0] == 0
    assert trials.count() == 1  # the settings are the same
    monkeypatch.setenv(TRIED, "")
    return run, both


@pytest.mark.slow
def test_resuming_on_another_machine_tries_anew(trials, begun, capsys):
    trials(DIES)
    for path, jobs in itertools.product(begun, (1, 2)):
        before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if ".lock" not in file.name}
        code, _, err = call(capsys, "resume", path, "--jobs", jobs)
        assert_refused(code, err)
        after = {file: file.stat().st_mtime_ns for file in path.rglob("*") if ".lock" not in file.name}
        assert {file for file in before if file.is_file() and before[file] != after[file]} == set()
    trials()
    assert call(capsys, "resume", begun[0], "--max-steps", "8")[0] == 0


@pytest.mark.slow
def test_a_learner_or_a_judge_in_bf16_is_tried_too(trials, begun, tmp_path, capsys):
    run = begun[0]
    assert load_learner(run, "cpu").total_steps == 7
    os.environ[TRIED] = ""
    trials(DIES)
    with pytest.raises(UsageError, match="ended by SIGILL; use --precision 32-true"):
        load_learner(run, "cpu")
    code, _, err = call(capsys, *arguments(tmp_path / "judged", "--judge", str(run)))
    assert_refused(code, err)
    assert not (tmp_path / "judged").exists()


@pytest.mark.slow
def test_the_processes_of_a_comparison_do_not_try_again(trials, begun, monkeypatch, capsys):
    """Once in the parent; a child that finds the trial in its environment makes none, whatever it would give."""
    path, made = begun[1], []

    def run_jobs(launcher, jobs, at_once, board):
        trials(DIES)
        for job in jobs:
            made.append(job.name)
            assert main(list(job.words)) == 0
        return Ends()

    monkeypatch.setattr(Local, "run", run_jobs)
    monkeypatch.setattr(engine, "Parent", lambda: SimpleNamespace(stops=lambda stop: None))
    before, handler = trials.count(), signal.getsignal(signal.SIGINT)
    try:
        assert call(capsys, "resume", path, "--jobs", "2", "--max-steps", "2")[0] == 0
    finally:
        signal.signal(signal.SIGINT, handler)  # such a process leaves it to its parent
    assert made == ["st-seed0", "smb-seed0"]
    assert trials.count() == before + 1


# ---------------------------------------------------------------------- what the processor says


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("processor\t: 0\nflags\t\t: fpu avx2 avx512_bf16\n", ["avx512_bf16"]),
        ("flags : amx_bf16 amx_tile avx512_bf16", ["amx_bf16", "avx512_bf16"]),
        ("Features\t: fp asimd bf16", ["bf16"]),
        ("flags\t\t: fpu avx2 avx512f\nbugs : bf16\n", []),
        ("", []),
    ],
)
def test_the_processor_says_what_it_has_of_bf16(tmp_path, text, flags):
    (tmp_path / "cpuinfo").write_text(text)
    assert machine.bf16_flags(tmp_path / "cpuinfo") == flags
    assert machine.bf16_flags(tmp_path / "nothing") == []


@pytest.mark.parametrize(("number", "name"), [(4, "SIGILL"), (15, "SIGTERM"), (1_000, "signal 1000")])
def test_a_signal_without_a_name_has_its_number(number: int, name: str):
    assert signal_name(number) == name
