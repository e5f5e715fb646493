"""The display of training: what a pipe and a terminal are told."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from conftest import record_of
from ordisco.report.terminal import LiveDisplay, Pace, PlainDisplay, make_display


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_plain_lines(clock):
    out = io.StringIO()
    display = PlainDisplay(out, clock)
    display.start("ORDisCo on digits", 5, 400)
    for step in range(0, 401, 40):  # 1 s for 40 steps
        display.step(1, step, {"C": 0.51234, "D": 1234.5}, 1234.4)
        clock.now += 1
    display.increment_done(record_of(1, 0.99, seconds=11.0, pseudo_label_accuracy=0.9))
    clock.now += 9
    display.step(2, 40, {}, 1000)
    clock.now += 1
    display.step(2, 80, {}, 1000)
    display.message("checkpoint saved")
    display.close()
    assert out.getvalue().splitlines() == [
        "ORDisCo on digits: 5 increments of 400 steps",
        "increment 1/5  step 400/400  C 0.512  D 1.23e+03  1,234 images/s  40 s left",
        "increment 1/5  accuracy 99.0 %  pseudo-labels 90.0 %  11 s",
        "increment 2/5  step 80/400  1,000 images/s  1 min 06 s left",
        "checkpoint saved",
    ]


def test_time_left_counts_the_whole_run_and_only_the_steps_since_a_resume(clock):
    pace = Pace(4, 100, done=150, clock=clock)
    assert pace.left() == ""
    clock.now += 10
    pace.move(2, 100)  # 50 steps in 10 s, 200 to go
    assert (pace.done, pace.left()) == (200, "40 s left")
    pace.move(4, 100)
    assert pace.left() == "0 s left"


def test_methods_in_sequence_and_resumed(clock):
    out = io.StringIO()
    display = PlainDisplay(out, clock)
    display.start("ORDisCo", 2, 10)
    clock.now += 20
    display.start("SMB", 2, 10, done_steps=15)
    clock.now += 10
    display.step(2, 10, {}, 5)
    lines = out.getvalue().splitlines()
    assert lines[1] == "SMB: 2 increments of 10 steps, going on after step 15 of 20"
    assert lines[2] == "increment 2/2  step 10/10  5 images/s  0 s left"


def test_a_pipe_gets_plain_lines():
    assert isinstance(make_display(io.StringIO()), PlainDisplay)
    code = "from ordisco.report.terminal import make_display; d = make_display(); d.start('x', 1, 2); d.close()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "x: 2 steps\n"


@pytest.mark.parametrize(("term", "kind"), [("xterm", LiveDisplay), ("dumb", PlainDisplay)])
def test_a_terminal_gets_the_live_display(monkeypatch, term, kind):
    monkeypatch.setenv("TERM", term)
    stream = io.StringIO()
    stream.isatty = lambda: True
    assert isinstance(make_display(stream), kind)


def test_live_display_fits_80_columns_and_leaves_the_results(clock):
    out = io.StringIO()
    console = Console(
        file=out,
        force_terminal=True,
        width=80,
        color_system=None,
        highlight=False,
        _environ={"TERM": "xterm"},
    )
    display = LiveDisplay(console, clock)
    display.start("ORDisCo [digits]", 5, 400)
    clock.now += 10
    display.increment_done(record_of(1, 0.99, seconds=9.0))
    losses = dict.fromkeys(("sl", "ul", "G→C sl", "G→C ul", "D real", "D fake", "D unlabelled", "G"), 0.5)
    display.step(2, 100, losses, 1234)
    frame = out.getvalue()
    display.message("a [bold] message")
    display.start("SMB", 5, 400)  # the first bar goes
    display.close()
    display.close()
    assert "ORDisCo [digits]: 5 increments of 400 steps" in frame
    assert "increment 1/5  accuracy 99.0 %  9.0 s" in frame
    assert "increment 2/5  step 100/400  1,234 images/s  accuracy so far 99.0 %" in frame
    assert "25 %" in frame
    assert "30 s left" in frame
    bar, status, *shown = frame.splitlines()[-4:]
    assert max(map(len, (status, *shown))) <= 80
    assert "━" in bar
    assert shown[0].startswith("sl 0.500")
    assert "".join(shown).count("0.500") == len(losses)
    assert "a [bold] message" in out.getvalue()
    assert out.getvalue().count("\x1b[?25h") == 2  # the cursor comes back each time


def test_steps_after_the_close_of_a_live_display_are_harmless(clock):
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "xterm"})
    display = LiveDisplay(console, clock)
    display.start("x", 1, 1)
    display.close()
    display.step(1, 1, {}, 1.0)
