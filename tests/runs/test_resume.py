"""A run that is killed, stopped or damaged goes on as if nothing had happened."""

import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
import torch

from ordisco import files
from ordisco.cli import main
from ordisco.learner import learner as learner_module
from ordisco.learner.learner import Learner
from ordisco.runs.checkpoint import load_latest
from ordisco.runs.directory import RunDirectory
from tiny import arguments, assert_same_outcome, call, one_line, records, without_figures

EVERY_STEP = ("--checkpoint-seconds", "0")


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A run that was never interrupted and saved only after each increment."""
    path = tmp_path_factory.mktemp("reference") / "run"
    assert main(arguments(path)) == 0
    return path


# ---------------------------------------------------------------------- SIGKILL

KILLER = """
import json, os, random, signal, sys, time

from ordisco.cli import main
from ordisco.learner.state import Setup

start, out, seed = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdout = open(os.devnull, "w")
main([*start, "--out", out + "-first"])  # imports are paid for once: all other processes are forks of this one
sys.stdout = sys.__stdout__
rng = random.Random(seed)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in(owner, name, nth, where="", after=False):
    '''Die in the nth call of a function on a file like `where`: half done, before it, or after it.'''
    real, calls = getattr(owner, name), 0

    def deadly(*args, **options):
        nonlocal calls
        target = os.readlink(f"/proc/self/fd/{args[0]}") if name in ("write", "fsync") else str(args[-1])
        if where not in target or target.endswith(".lock"):
            return real(*args, **options)
        calls += 1
        if calls == nth:
            if name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            elif after:
                real(*args, **options)
            die()
        return real(*args, **options)

    setattr(owner, name, deadly)


def session(prepare, seconds=None):
    '''One process; it is killed at the place that `prepare` sets, or after some seconds.'''
    begun = os.path.exists(os.path.join(out, "settings.toml"))
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        prepare()
        os._exit(main(["resume", out] if begun else start))
    if seconds is not None:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


places = {
    "a new run's settings, half written": lambda: kill_in(os, "write", 1, ".settings.toml"),
    "the first checkpoint, before it has its name": lambda: kill_in(os, "replace", 1, "checkpoints/step-"),
    "between D's and C's update": lambda: kill_in(Setup, "reduce", rng.randint(2, 9)),
    "the tensors of a checkpoint, half written": lambda: kill_in(os, "write", rng.randint(1, 3), "tensors"),
    "a metrics line, half written": lambda: kill_in(os, "write", rng.randint(1, 2), "metrics.jsonl"),
    "the samples, half written": lambda: kill_in(os, "write", 1, "increment-0"),
    "an old checkpoint, on its way out": lambda: kill_in(os, "rename", rng.randint(1, 3), ".step-"),
    "a checkpoint's state, unsynced": lambda: kill_in(os, "fsync", rng.randint(1, 3), "state.json"),
    "a new checkpoint, just named": lambda: kill_in(os, "replace", 1, "checkpoints/step-", after=True),
}
endings = {
    "the confusion matrix, half written": lambda: kill_in(os, "write", 1, "confusion.png"),
    "the summary, before it has its name": lambda: kill_in(os, "replace", 1, "summary.json"),
}
killed, lengths = [], []
for place, prepare in places.items():
    began = time.monotonic()
    if session(prepare):
        killed.append(place)
    lengths.append(time.monotonic() - began)
for _ in range(3):
    seconds = rng.uniform(0.5, 1.5) * min(lengths[1:])  # about a step or two, too short to finish
    if session(lambda: None, seconds):
        killed.append(f"after {seconds:.2f} s")
killed += [place for place, prepare in endings.items() if session(prepare)]
assert not session(lambda: None)
print(json.dumps([killed, [*places, *endings]]))
"""


@pytest.mark.parametrize("seed", [0])
@pytest.mark.slow
def test_a_run_killed_again_and_again_is_the_run_never_interrupted(tmp_path, reference, seed):
    """SIGKILL at eleven places, most of them in the middle of a file, and at three random moments."""
    run = tmp_path / "run"
    command = [sys.executable, "-c", KILLER, json.dumps(arguments(run, *EVERY_STEP)), str(run), str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    killed, meant = json.loads(done.stdout)
    assert set(meant) <= set(killed), killed
    assert_same_outcome(run, reference)
    assert not list(run.rglob("*.partial"))


# ---------------------------------------------------------------------- signals


@pytest.fixture
def quick(monkeypatch):
    without_figures(monkeypatch)


def at_step(monkeypatch, number, action):
    """Do something in the middle of a step of the run."""
    step = Learner.step

    def with_action(learner):
        if learner.total_steps == number:
            action()
        step(learner)

    monkeypatch.setattr(Learner, "step", with_action)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("name", "word"), [("SIGINT", "Ctrl-C"), ("SIGTERM", "SIGTERM")])
@pytest.mark.slow
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, capsys, monkeypatch, reference, name, word):
    run = tmp_path / "my run"  # the space wants quotes in the shell
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        at_step(patch, 8, lambda: os.kill(os.getpid(), getattr(signal, name)))
        code, out, err = call(capsys, *arguments(run))
    assert code == 130
    assert one_line(err) == f"ordisco: stopped by {word}, all is saved; go on with: ordisco resume '{run}'"
    assert "everything is in" not in out
    assert load_latest(run / "checkpoints").state["learner"]["total_steps"] == 9
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert "going on after step 9 of 12" in out
    assert_same_outcome(run, reference)


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_a_second_signal_stops_at_once_and_loses_only_the_steps_since_the_last_checkpoint(
    tmp_path, capsys, monkeypatch, reference
):
    def twice():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        at_step(patch, 8, twice)
        code, _, err = call(capsys, *arguments(tmp_path / "run"))
    assert code == 130
    assert "stopped at once" in one_line(err)
    assert f"ordisco resume {tmp_path / 'run'}" in err
    assert load_latest(tmp_path / "run" / "checkpoints").state["learner"]["total_steps"] == 6
    assert call(capsys, "resume", tmp_path / "run")[0] == 0
    assert_same_outcome(tmp_path / "run", reference)


def test_a_signal_that_was_switched_off_stays_off(tmp_path, capsys, monkeypatch):
    at_step(monkeypatch, 2, lambda: os.kill(os.getpid(), signal.SIGINT))
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        code, out, _ = call(capsys, *arguments(tmp_path / "run", "--max-steps", "3"))
    finally:
        signal.signal(signal.SIGINT, old)
    assert code == 0
    assert "stopped after 3 steps as asked" in out


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_a_signal_after_the_last_step_lets_the_run_end(tmp_path, capsys, monkeypatch, reference):
    finish = Learner.finish

    def with_signal(learner):
        if learner.increments == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        finish(learner)

    monkeypatch.setattr(Learner, "finish", with_signal)
    code, out, err = call(capsys, *arguments(tmp_path / "run"))
    assert (code, err) == (0, "")
    assert "everything is in" in out
    assert_same_outcome(tmp_path / "run", reference)


# ---------------------------------------------------------------------- damage


def damage(checkpoint):
    file = checkpoint / "tensors.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


@pytest.mark.slow
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, capsys, reference):
    run = tmp_path / "run"
    assert call(capsys, *arguments(run, *EVERY_STEP, "--max-steps", "6"))[0] == 0
    older, newer = sorted((run / "checkpoints").iterdir())
    assert (older.name, newer.name) == ("step-0000000005", "step-0000000006")
    assert len(records(run)) == 1  # recorded after the older checkpoint
    damage(newer)
    both = tmp_path / "both"
    shutil.copytree(run, both)
    damage(both / "checkpoints" / older.name)

    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert f"checkpoint {newer} is damaged and was skipped: the checksum of tensors.safetensors is wrong\n" in out
    assert "going on after step 5 of 12" in out
    assert_same_outcome(run, reference)

    code, out, err = call(capsys, "resume", both)
    assert (code, out) == (1, "")
    assert one_line(err).startswith(f"ordisco: error: no whole checkpoint in {both / 'checkpoints'}: ")


def test_changed_settings_are_one_line_that_names_the_field(tmp_path, capsys):
    run = tmp_path / "run"
    assert call(capsys, *arguments(run, "--max-steps", "2"))[0] == 0
    settings = run / "settings.toml"
    good = settings.read_text()
    for old, new, message in (
        ("c_width = 4", "c_width = 5", rf"{settings} was changed: learner.classifier.c_width is 5, it was 4; put it"),
        ("c_width = 4", "c_width = 0", r"learner.classifier.c_width is 0, it was 4"),
        ("c_width = 4", "c_depth = 4", r"learner.classifier.c_depth is 4, it was not set"),
        ("c_lr = ", "# c_lr = ", r"learner.classifier.c_lr is missing, it was 0\."),
        ('method = "ordisco"', 'method = "smb"', r"method is 'smb', it was 'ordisco'"),
        ("threads = 1", "threads = 2", r"machine.threads is 2, it was 1"),
        ("seed = 0\nstream_name", "seed = 1\nstream_name", r"seed is 1, it was 0"),
        ("[machine]", "[engine]", r"engine.accelerator is 'cpu', it was not set"),
        ("[machine]", "[machine", r"settings.toml is not valid TOML"),
    ):
        assert old in good
        settings.write_text(good.replace(old, new))
        code, _, err = call(capsys, "resume", run)
        assert code == 1
        assert re.search(message, one_line(err))


def test_a_run_of_a_version_that_had_fewer_settings_goes_on_again_and_again(tmp_path, capsys, reference):
    run = tmp_path / "run"
    assert call(capsys, *arguments(run, "--max-steps", "2"))[0] == 0
    settings = run / "settings.toml"
    whole = settings.read_text()
    assert "c_decay = 0.0\n" in whole
    settings.write_text(whole.replace("c_decay = 0.0\n", ""))
    for more in (("--max-steps", "2"), ("--max-steps", "2"), ()):  # the checkpoints of now have the setting
        code, _, err = call(capsys, "resume", run, *more)
        assert (code, err) == (0, "")
    settings.write_text(whole)
    assert_same_outcome(run, reference)


def test_what_cannot_be_resumed_is_one_line(tmp_path, capsys, reference):
    (tmp_path / "empty").mkdir()
    for path, message in (
        (tmp_path / "nowhere", f"no run directory at {tmp_path / 'nowhere'}"),
        (tmp_path / "empty", f"{tmp_path / 'empty'} is not a run directory: it has no settings.toml"),
    ):
        code, out, err = call(capsys, "resume", path)
        assert (code, out, one_line(err)) == (1, "", f"ordisco: error: {message}")
    before = {file: file.stat().st_mtime_ns for file in reference.rglob("*")}
    code, out, err = call(capsys, "resume", reference)
    assert (code, err) == (0, "")
    assert one_line(out) == f"{reference} is finished: see {reference / 'summary.md'}"
    assert {file: file.stat().st_mtime_ns for file in reference.rglob("*")} == before


# ---------------------------------------------------------------------- losses, disks, other runs


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, capsys, monkeypatch):
    def infinite_at(step):  # where a rate that is too large ends depends on the processor
        def train_step(setup, state, pools):
            terms = step_of_now(setup, state, pools)
            return terms | {"supervised": torch.tensor(math.inf)} if state.total_steps + 1 == step else terms

        monkeypatch.setattr(learner_module, "train_step", train_step)

    step_of_now, run = learner_module.train_step, tmp_path / "run"
    infinite_at(4)
    code, _, err = call(capsys, *arguments(run, *EVERY_STEP))
    assert code == 1
    assert re.fullmatch(
        r"ordisco: error: the supervised loss is inf at step 4 of increment 1: lower the learning rate.*; "
        rf"the last good checkpoint is {run}/checkpoints/step-0000000003",
        one_line(err),
    )
    for checkpoint in sorted((run / "checkpoints").iterdir(), reverse=True):
        tensors = load_latest(run / "checkpoints").tensors.values()
        assert all(bool(torch.isfinite(tensor).all()) for tensor in tensors if tensor.is_floating_point())
        shutil.rmtree(checkpoint)
    assert not (run / "metrics.jsonl").exists()

    infinite_at(1)
    code, _, err = call(capsys, *arguments(tmp_path / "at once"))
    assert code == 1
    assert one_line(err).endswith("; there was no checkpoint yet")


def test_weights_that_are_not_finite_are_never_saved(tmp_path, capsys, monkeypatch):
    def poison(learner):
        step(learner)
        if learner.total_steps == 3:
            learner.state.nets.C.flat.theta[0] = float("nan")

    step = Learner.step
    monkeypatch.setattr(Learner, "step", poison)
    run = tmp_path / "run"
    code, _, err = call(capsys, *arguments(run, *EVERY_STEP))
    assert code == 1
    assert "C.theta is not finite after step 3 of increment 1" in one_line(err)
    assert err.endswith(f"the last good checkpoint is {run / 'checkpoints' / 'step-0000000002'}\n")
    assert bool(torch.isfinite(load_latest(run / "checkpoints").tensors["C.theta"]).all())


@pytest.mark.parametrize("file", ["tensors.safetensors", "metrics.jsonl", "increment-02.png", "accuracy.png"])
@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_last_good_state_stays(tmp_path, capsys, monkeypatch, reference, file):
    run, write = tmp_path / "run", os.write
    if file != "accuracy.png":
        without_figures(monkeypatch)

    def full(descriptor, data):
        begun = (run / "checkpoints" / "step-0000000006").exists()
        if begun and file in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        code, _, err = call(capsys, *arguments(run))
    assert code == 1
    assert one_line(err).startswith("ordisco: error: cannot write ")
    assert "No space left on device; " in err
    assert err.endswith(f"when that is put right, go on with: ordisco resume {run}\n")
    assert call(capsys, "resume", run)[0] == 0
    assert_same_outcome(run, reference)


def test_a_directory_that_cannot_be_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    code, _, err = call(capsys, *arguments(tmp_path / "file" / "run"))
    assert code == 1
    assert "Not a directory" in one_line(err)

    def refused(path, data):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(files, "write_durably", refused)
    code, _, err = call(capsys, *arguments(tmp_path / "run"))
    assert code == 1
    assert "cannot write" in one_line(err)
    assert "Permission denied" in err


def test_two_runs_cannot_write_into_one_directory(tmp_path, capsys, reference):
    run = tmp_path / "run"
    assert call(capsys, *arguments(run, "--max-steps", "1"))[0] == 0
    with RunDirectory.resume(run):
        code, _, err = call(capsys, "resume", run)
        assert code == 1
        assert "another run is writing into" in one_line(err)
    metrics = (reference / "metrics.jsonl").read_bytes()
    code, out, err = call(capsys, *arguments(reference))
    assert (code, out) == (1, "")
    assert f"already holds a run: continue it with `ordisco resume {reference}`" in one_line(err)
    assert (reference / "metrics.jsonl").read_bytes() == metrics


@pytest.mark.usefixtures("quick")
@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_begins_anew(tmp_path, capsys, monkeypatch, reference):
    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        at_step(patch, 3, lambda: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            call(capsys, *arguments(run))
    with (run / "metrics.jsonl").open("w") as file:
        file.write('{"kind": "st')
    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert "going on" not in out
    assert_same_outcome(run, reference)
    assert [record["step"] for record in records(run, "step")] == [6, 6]
