"""Wrong input at random, the same in every run of the suite; `make fuzz` is the long one."""

import faulthandler
import json
import os
import random
import shutil
import signal
import time

import pytest

import fuzz
from fuzzing import run_directories
from fuzzing.oracle import Answer, Failure, ask, check
from tiny import assert_same_outcome

SEED, SECONDS = 11, 4.0


@pytest.mark.parametrize("kind", fuzz.KINDS)
@pytest.mark.slow
def test_whatever_is_given_the_answer_is_in_order(kind):
    cases = 0
    for _ in range(10):  # on a slow machine one case, or what it needs, may take all the seconds
        counts = fuzz.fuzz(kind, SEED, SECONDS, cases, most=400)
        print(counts)
        assert not counts.failures, "\n".join(counts.failures[:5])
        cases += counts.cases
        if cases > 3:
            break
    assert cases > 3


def test_a_case_depends_on_its_number_only():
    lines = [fuzz.command_lines.command_line(random.Random("x 1")) for _ in range(2)]
    assert lines[0] == lines[1]
    assert lines[0] != fuzz.command_lines.command_line(random.Random("x 2"))


def test_checksums_that_are_put_right_are_right(tmp_path):
    """Otherwise the damage behind them would never be reached."""
    interrupted, whole = run_directories.prepared()
    run = tmp_path / "run"
    shutil.copytree(interrupted, run)
    for path in run.glob("checkpoints/*/state.json"):
        run_directories.write_state(path, json.loads(path.read_bytes()))
    with run_directories.without_figures():
        answer = ask(["resume", str(run)])
    assert answer.code == 0
    assert "damaged" not in answer.out + answer.err
    assert_same_outcome(run, whole)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(3, "", "ordisco: error: x\n"),
        Answer(1, "", ""),
        Answer(1, "", "ordisco: error: x\nordisco: error: y\n"),
        Answer(0, "", "ordisco: error: x\n"),
        Answer(1, "", "Traceback (most recent call last):\n"),
        Answer(0, "", "something else\n"),
        Answer(2, "", f"ordisco: error: {'x' * 30_000}\n"),
    ],
    ids=lambda answer: answer.err[:20],
)
def test_the_oracle_sees_what_is_wrong(answer):
    with pytest.raises(Failure):
        check(answer)


@pytest.mark.slow
def test_a_crash_of_the_interpreter_and_an_endless_case_are_failed_cases(monkeypatch):
    def crash(rng, folder):
        if rng.random() < 0.5:
            faulthandler.disable()  # or it would print where
            os.kill(os.getpid(), signal.SIGSEGV)
        return Answer(0, "", "")

    monkeypatch.setitem(fuzz.KINDS, "command-lines", crash)
    counts = fuzz.fuzz("command-lines", 1, 60, most=10)
    assert counts.cases == 10
    assert 0 < len(counts.failures) < 10
    assert "-11" in counts.failures[0]
    monkeypatch.setitem(fuzz.KINDS, "command-lines", lambda rng, folder: time.sleep(60))
    monkeypatch.setattr(fuzz, "PATIENCE", 0.5)
    counts = fuzz.fuzz("command-lines", 1, 60, most=1)
    assert [text.splitlines()[0] for text in counts.failures] == ["no end"]
