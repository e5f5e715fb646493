"""Data-parallel training in two CPU processes: one result, one writer, one voice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ordisco.runs.checkpoint import load_latest
from tiny import STREAM, TINY, assert_same_outcome, records

pytestmark = pytest.mark.slow  # processes that start torch several times

STEPS = 4  # an increment, of which there are two
TWO = ("--devices", "2", "--align", "all", "--statistics", "4")

# Fabric starts the second process by running this file again; both then call the same commands in turn.
SCRIPT = """
import atexit, json, os, signal, sys
from pathlib import Path

import torch
from safetensors.torch import save_file

import ordisco.learner.learner
import ordisco.runs.summary
from ordisco.cli import main
from ordisco.learner.learner import Learner
from ordisco.learner.state import Setup

out, start = Path(sys.argv[1]), json.loads(sys.argv[2])
rank = int(os.environ.get("LOCAL_RANK", 0))
for descriptor, name in ((1, "out"), (2, "err")):
    os.dup2(os.open(out / f"{name}{rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
codes = {}
joined = torch.distributed.is_initialized
atexit.register(lambda: (out / f"joined{rank}.txt").write_text(f"{joined()}"))  # called after what is registered later
ordisco.runs.summary.accuracy_curves = ordisco.runs.summary.confusion_matrix = lambda *args: None  # to save time


def run(name, *argv):
    print(f"[{name}]", flush=True)
    print(f"[{name}]", file=sys.stderr, flush=True)
    try:
        codes[name] = main([*argv])
    except SystemExit as end:
        codes[name] = end.code
    (out / f"codes{rank}.json").write_text(json.dumps(codes))


def new(name, *options):
    pairs = zip(start[1::2], start[2::2], strict=True)
    usual = [word for pair in pairs if pair[0] not in options for word in pair]
    return ["run", start[0], *usual, "--out", str(out / name), *options]


# what the first averages were made of, and what this process has in the end
average, finish, noted = Setup.reduce, Learner.finish, {}


def reduce(setup, network):
    mine = network.flat.grad.clone()
    average(setup, network)
    if len(noted) < 6:
        noted[f"{len(noted) // 2}.mine"] = mine
        noted[f"{len(noted) // 2}.mean"] = network.flat.grad.clone()


def finish_and_note(learner):
    finish(learner)
    if learner.increments == 2:
        tensors = {name: tensor.clone() for name, tensor in learner.saved()[0].items()}
        save_file(tensors, out / f"weights{rank}.safetensors")


Setup.reduce, Learner.finish = reduce, finish_and_note
run("whole", *new("whole"))
save_file(noted, out / f"gradients{rank}.safetensors")
Setup.reduce, Learner.finish = average, finish

run("taken", *new("whole"))
run("some steps", *new("parts", "--max-steps", "6"))
run("the others", "resume", str(out / "parts"))

step = Learner.step


def stopped_step(learner):
    if rank == 1 and learner.total_steps == 2:
        os.kill(os.getpid(), signal.SIGTERM)  # the second process only
    step(learner)


Learner.step = stopped_step
run("stopped", *new("stopped"))
Learner.step = step
run("after that", "resume", str(out / "stopped"))

train_step = ordisco.learner.learner.train_step


def bad_step(setup, state, pools):
    terms = train_step(setup, state, pools)
    if rank == 1 and state.total_steps == 2:
        terms["supervised"] = terms["supervised"] * float("inf")
    return terms


ordisco.learner.learner.train_step = bad_step
run("not finite", *new("bad", "--checkpoint-seconds", "0"))
ordisco.learner.learner.train_step = train_step

run("compared", *new("both", "--method", "st", "--method", "smb", "--steps", "1"))
run("compared again", "resume", str(out / "both"))
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    out = tmp_path_factory.mktemp("parallel")
    (out / "script.py").write_text(SCRIPT)
    options = [*TINY, "--steps", str(STEPS), *TWO]
    command = [sys.executable, str(out / "script.py"), str(out), json.dumps(options)]
    subprocess.run(command, check=True, timeout=240)
    return out


def told(out: Path, stream: str, rank: int) -> dict[str, str]:
    """What a process printed, by command."""
    pieces = (out / f"{stream}{rank}.txt").read_text().split("[")[1:]
    return dict(piece.split("]\n", 1) for piece in pieces)


def test_the_processes_end_with_the_same_weights(out):
    mine, its = (load_file(out / f"weights{rank}.safetensors") for rank in (0, 1))
    assert mine.keys() == its.keys()
    differing = [name for name in mine if not torch.equal(mine[name], its[name])]
    assert differing == []
    assert {
        "C.theta",
        "C.buffers",
        "teacher.theta",
        "G.theta",
        "G.buffers",
        "D.theta",
        "memories.penalty_on_D.importance",
        "trace",
    } < mine.keys()
    saved = load_latest(out / "whole" / "checkpoints").tensors
    assert torch.equal(saved["C.theta"], mine["C.theta"])


def test_gradients_are_averaged(out):
    first, second = (load_file(out / f"gradients{rank}.safetensors") for rank in (0, 1))
    for call in range(3):
        assert not torch.equal(first[f"{call}.mine"], second[f"{call}.mine"])  # each has its own images
        mean = (first[f"{call}.mine"] + second[f"{call}.mine"]) / 2
        torch.testing.assert_close(first[f"{call}.mean"], mean)
        assert torch.equal(first[f"{call}.mean"], second[f"{call}.mean"])


def test_only_the_first_process_speaks_and_fails(out):
    codes = [json.loads((out / f"codes{rank}.json").read_text()) for rank in (0, 1)]
    wrong = {"taken": 1, "stopped": 130, "not finite": 1}
    assert codes[0] == {name: wrong.get(name, 0) for name in codes[0]}
    assert codes[1] == dict.fromkeys(codes[0], 0)
    for stream in ("out", "err"):
        assert set(told(out, stream, 1).values()) == {""}
    errors = {name: text for name, text in told(out, "err", 0).items() if text}
    assert errors.keys() == wrong.keys()
    assert all(text.count("\n") == 1 for text in errors.values())
    whole = told(out, "out", 0)["whole"].splitlines()
    assert len(whole) == 4
    assert whole[-1].startswith("everything is in ")


def test_a_resumed_run_is_the_run_never_interrupted(out):
    assert_same_outcome(out / "parts", out / "whole")
    assert "going on after step 6 of 8" in told(out, "out", 0)["the others"]


def test_a_signal_to_one_process_stops_both(out):
    line = told(out, "err", 0)["stopped"]
    assert line == f"ordisco: stopped by a signal, all is saved; go on with: ordisco resume {out / 'stopped'}\n"
    assert "going on after step 3 of 8" in told(out, "out", 0)["after that"]
    assert_same_outcome(out / "stopped", out / "whole")


def test_a_loss_that_is_not_finite_in_one_process_ends_both(out):
    line = told(out, "err", 0)["not finite"]
    assert "the supervised loss is inf at step 3 of increment 1" in line
    assert line.endswith(f"the last good checkpoint is {out / 'bad' / 'checkpoints' / 'step-0000000002'}\n")


def test_all_leave_the_group_before_python_ends(out):
    """A thread of torch's may otherwise abort the process: `terminate called without an active exception`."""
    assert [(out / f"joined{rank}.txt").read_text() for rank in (0, 1)] == ["False", "False"]


def test_a_comparison(out):
    assert told(out, "out", 0)["compared again"].count("finished before, in") == 2
    assert [len(records(out / "both" / f"{name}-seed0")) for name in ("st", "smb")] == [2, 2]
    assert (out / "both" / "comparison.png").exists()


def test_the_command_itself_with_a_name_that_both_must_agree_on(tmp_path):
    taken = tmp_path / "runs" / f"{STREAM}-smb-seed0"
    taken.mkdir(parents=True)
    options = [*TINY, "--steps", "2", "--method", "smb", "--devices", "2", "--max-steps", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "ordisco", "run", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        env=os.environ | {"TERM": "dumb"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, *between, last = done.stdout.splitlines()
    assert first == f"SMB on {STREAM}, seed 0: 2 increments of 2 steps"
    assert last == f"go on with: ordisco resume runs/{taken.name}-2"
    assert done.stdout.count(first) == done.stdout.count(last) == 1  # one voice
    assert sum(line.startswith("increment 1/2  accuracy ") for line in between) == 1
    assert sorted(path.name for path in taken.parent.iterdir()) == [taken.name, f"{taken.name}-2"]
    assert not list(taken.iterdir())
