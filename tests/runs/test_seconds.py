"""What a run has taken so far, and looks at C′ that change nothing."""

import json
import time

import pytest
import torch

from conftest import assert_same, make_learner, weights
from ordisco.cli import main
from ordisco.evaluation.record import IncrementRecord
from ordisco.machine.group import ALONE
from ordisco.runs.checkpoint import load_latest
from ordisco.runs.clock import Clock
from ordisco.runs.looks import look, statistics_of_now
from tiny import STEPS, arguments, call, outcome, records, without_figures

CPU = torch.device("cpu")


@pytest.fixture
def hands(monkeypatch):
    """The hands of the clock and of the processor, to be set."""
    at = {"monotonic": 100.0, "process_time": 10.0}
    for name in at:
        monkeypatch.setattr(time, name, lambda name=name: at[name])
    return at


def test_sessions_add_up_and_what_is_stopped_does_not_count(hands):
    clock = Clock()
    hands.update(monotonic=104.0, process_time=17.0)
    assert (clock.seconds(), clock.cpu_seconds(ALONE, CPU)) == (4.0, 7.0)
    with clock.stopped():
        hands.update(monotonic=110.0, process_time=20.0)
    assert (clock.seconds(), clock.cpu_seconds(ALONE, CPU)) == (4.0, 7.0)
    later = Clock()
    later.go_on({"seconds": 4.0, "cpu_seconds": 7.0})
    hands.update(monotonic=111.0, process_time=22.0)
    assert (later.seconds(), later.cpu_seconds(ALONE, CPU)) == (5.0, 9.0)
    later.go_on({"seconds": 4.0})  # by a version that did not count them
    assert later.cpu_seconds(ALONE, CPU) is None


def test_a_resumed_run_adds_to_the_seconds_of_its_checkpoint(tmp_path, monkeypatch):
    without_figures(monkeypatch)
    run = tmp_path / "run"
    assert main(arguments(run, "--method", "smb", "--max-steps", str(STEPS + 2))) == 0
    before = load_latest(run / "checkpoints").state["cpu_seconds"]
    now = time.process_time()
    monkeypatch.setattr(time, "process_time", lambda: now)  # no more is spent
    assert main(["resume", str(run)]) == 0
    first, second = (record["total_cpu_seconds"] for record in records(run))
    assert 0 < first < second == before
    assert json.loads((run / "summary.json").read_text())["cpu_seconds"] == second


def test_looking_changes_no_number(tmp_path, monkeypatch, capsys):
    without_figures(monkeypatch)
    plain, watched = tmp_path / "plain", tmp_path / "watched"
    assert main(arguments(plain)) == 0
    assert main(arguments(watched, "--evaluate-every", "2")) == 0
    looks = records(watched, "look")
    assert [(look["increment"], look["step"]) for look in looks] == [(1, 2), (1, 4), (2, 2), (2, 4)]
    ends = [record["total_cpu_seconds"] for record in records(watched)]
    assert 0 < looks[0]["total_cpu_seconds"] < looks[1]["total_cpu_seconds"] < ends[0] < looks[2]["total_cpu_seconds"]
    mine, its = outcome(watched), outcome(plain)
    mine["metrics"] = [line for line in mine["metrics"] if line["kind"] != "look"]
    assert [key for key in its if key != "settings" and mine[key] != its[key]] == []
    code, out, _ = call(capsys, *arguments(tmp_path / "short", "--max-steps", "4"))  # the same look, told in words
    assert code == 0
    assert f"accuracy {100 * looks[1]['accuracy']:.1f} %" in out


def test_a_look_leaves_the_learner_as_it_was(tasks):
    learner = make_learner()
    learner.begin(tasks[0])
    learner.step()
    before, state = weights(learner), torch.get_rng_state()
    with statistics_of_now(learner):
        assert not torch.equal(weights(learner)["teacher.buffers"], before["teacher.buffers"])
    assert look(learner, tasks.dataset.test, tasks.test_rows(0)) is not None
    assert_same(weights(learner), before)
    assert torch.equal(torch.get_rng_state(), state)


def test_records_of_before_are_read():
    line = {"kind": "increment", "increment": 1} | dict.fromkeys(IncrementRecord.__dataclass_fields__, 1)
    del line["total_cpu_seconds"]
    assert IncrementRecord.from_dict(line).total_cpu_seconds is None
