"""Runs side by side: processes that end well or badly, are stopped, and give what one after the other gives."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import ordisco
from conftest import record_of
from ordisco.cli import main
from ordisco.errors import UsageError
from ordisco.launchers import relay, worker
from ordisco.launchers.base import ATTEMPTS, Command, Ends, Job
from ordisco.launchers.local import Local
from ordisco.launchers.relay import Parent
from ordisco.launchers.worker import Maker
from ordisco.machine import cores as machine
from ordisco.machine.cores import usual_jobs
from ordisco.report.board import LiveBoard, NamedDisplay, PlainBoard
from ordisco.runs.directory import BUSY
from ordisco.runs.presets import preset_threads
from ordisco.runs.signals import StopRequest
from ordisco.settings.machine import MachineSettings
from ordisco.studies.engine import jobs_at_once
from tiny import arguments, assert_same_outcome, call, one_line, without_figures

PROGRAM = """
import json, sys


class Fail(Exception):
    pass


def tell(*a):
    print(json.dumps({"call": a[0], "arguments": a[1:]}), flush=True)


def fail(*end):
    raise Fail(*end)


if sys.argv[1:] != ["worker"]:
    exec(sys.argv[1])
for line in iter(sys.stdin.readline, ""):
    try:
        exec(json.loads(line)[0])
        tell("end", 0, "")
    except Fail as end:
        tell("end", *end.args)
"""


@pytest.mark.parametrize(
    ("runs", "threads", "cores", "gigabytes", "expected"),
    [
        (10, 1, 4, 64, 4),  # a core each
        (3, 1, 4, 64, 3),  # no more than there are runs
        (10, 2, 5, 64, 2),  # two cores each
        (10, 8, 4, 64, 1),
        (10, None, 4, 64, 1),  # a run takes all cores
        (10, 1, 8, 3, 3),  # 1 GiB each
        (0, 1, 4, 64, 1),
    ],
)
def test_as_many_jobs_as_cores_and_memory_allow(monkeypatch, runs, threads, cores, gigabytes, expected):
    monkeypatch.setattr(machine, "cores", lambda: cores)
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": gigabytes * 2**18, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert usual_jobs(runs, threads) == expected


def test_threads_are_shared_by_jobs_but_results_of_small_presets_do_not_depend_on_them(monkeypatch):
    monkeypatch.setattr("ordisco.runs.presets.cores", lambda: 8)
    assert [preset_threads("paper", count) for count in (1, 2, 3, 20)] == [None, 4, 2, 1]
    assert [preset_threads("small", count) for count in (1, 2)] == [preset_threads("demo", 3), 1] == [1, 1]


@pytest.fixture(autouse=True)
def program(tmp_path, monkeypatch):
    """A worker without torch: the words of a job are code that it runs."""
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.setattr(worker, "PROGRAM", (sys.executable, str(tmp_path / "program.py")))


def run_jobs(jobs: dict[str, str], at_once: int, board: PlainBoard) -> Ends:
    return Local().run([Job(name, (code,)) for name, code in jobs.items()], at_once, board)


def test_all_jobs_are_made_so_many_at_once_and_processes_are_kept(tmp_path):
    log = tmp_path / "log"

    def code(name: str) -> str:
        note = f"open({str(log)!r}, 'a').write"
        return (
            f"import time, os\n{note}('+')\ntell('start', 'ST on digits', 2, 4, 0)\ntell('step', 1, 2, {{}}, 9.0)\n"
            f"print('stray')\ntime.sleep(0.3)\ntell('increment_done', {record_of(1, 0.5).to_dict()})\n"
            f"tell('message', 'so {name}')\ntell('message', f'by {{os.getpid()}}')\n{note}('-')\n"
        )

    out = io.StringIO()
    ends = run_jobs({name: code(name) for name in "abcd"}, 2, PlainBoard(out))
    assert (ends.failures, ends.stopped_by) == ({}, None)
    depth, deepest = 0, 0
    for sign in log.read_text():
        depth += 1 if sign == "+" else -1
        deepest = max(deepest, depth)
    assert (depth, deepest) == (0, 2)
    lines = out.getvalue().splitlines()
    assert "stray" not in lines
    for name in "abcd":
        assert [line for line in lines if line.startswith(f"{name}: ") and "by" not in line] == [
            f"{name}: ST on digits: 2 increments of 4 steps",
            f"{name}: increment 1/2  accuracy 50.0 %  1.0 s",
            f"{name}: so {name}",
        ]
    assert len({line.split("by ")[1] for line in lines if "by " in line}) == 2  # four jobs


def test_a_job_that_fails_is_one_line_and_the_others_go_on(capsys):
    bad = {
        "told": "print('ordisco: warning: w', file=sys.stderr, flush=True); fail(1, 'no room')",
        "stopped": "fail(130, 'stopped by SIGTERM')",
        "fault": "fail(1, 'ZeroDivisionError: division by zero'); sys.exit(1)",
        "silent": "sys.exit(3)",
    }
    out = io.StringIO()
    ends = run_jobs({**bad, "good": "tell('message', 'm')"}, 3, PlainBoard(out))
    assert ends.failures == {
        "told": "no room",
        "stopped": "stopped by SIGTERM",
        "fault": "ZeroDivisionError: division by zero",
        "silent": "exit code 3",
    }
    assert sorted(out.getvalue().splitlines()) == sorted(
        ["good: m", *(f"{name}: failed: {reason}" for name, reason in ends.failures.items())]
    )
    assert capsys.readouterr().err == "ordisco: warning: w\n"


def test_a_job_whose_process_is_lost_is_made_again_but_not_for_ever(tmp_path):
    once, always = tmp_path / "once", tmp_path / "always"
    code = "import os\nfile = open({!r}, 'a')\nfile.write('x')\nfile.close()\n{}"
    kill = "os.kill(os.getpid(), 9)"
    jobs = {
        "once": code.format(str(once), f"if os.path.getsize({str(once)!r}) < 2: {kill}"),
        "always": code.format(str(always), kill),
        "good": "tell('message', 'm')",
    }
    out = io.StringIO()
    ends = run_jobs(jobs, 1, PlainBoard(out))
    assert ends.failures == {"always": "ended by SIGKILL"}
    assert (once.read_text(), always.read_text()) == ("xx", "x" * ATTEMPTS)
    lines = out.getvalue().splitlines()
    assert lines.count("once: lost (ended by SIGKILL), made again from its last checkpoint") == 1
    assert lines[-1] == "good: m"


def test_a_data_parallel_run_has_a_process_of_its_own():
    code = "tell('message', ' '.join(sys.argv[2:])); print('ordisco: error: no room', file=sys.stderr); sys.exit(1)"
    out = io.StringIO()
    ends = Local().run([Job("a", (code, "--job", "a"), processes=2)], 1, PlainBoard(out))
    assert ends.failures == {"a": "no room"}
    assert out.getvalue().splitlines()[0] == "a: --job a"


def test_a_lock_is_waited_for_where_a_machine_may_be_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "BUSY_SECONDS", 0.01)
    file = tmp_path / "tries"
    code = f"file = open({str(file)!r}, 'a+')\nfile.write('x')\nfile.flush()\nif file.tell() < 4: fail(1, '{BUSY} it')"
    assert Maker().surely(Job("a", (code,)), lambda *_: None, lambda: False).reason == f"{BUSY} it"
    maker = Maker(patience=30.0)
    assert maker.surely(Job("a", (code,)), lambda *_: None, lambda: False).kind == "done"
    maker.close()


WAITING = "tell('message', 'ready')\n"


class Signals(PlainBoard):
    """Sends signals to this process when a job says that it is ready."""

    def __init__(self, count: int) -> None:
        super().__init__(io.StringIO())
        self.count = count

    def row(self, name: str):
        for _ in range(self.count):
            self.count -= 1
            os.kill(os.getpid(), signal.SIGINT)
        return super().row(name)


def test_a_signal_ends_the_input_of_all_and_no_further_job_begins():
    code = WAITING + "sys.stdin.read()\nfail(130, 'stopped')"
    ends = run_jobs({"a": code, "b": "tell('message', 'never')"}, 1, Signals(1))
    assert (ends.failures, ends.stopped_by) == ({}, "Ctrl-C")


def test_a_job_that_cannot_save_when_asked_to_stop_is_a_failure():
    ends = run_jobs({"a": WAITING + "sys.stdin.read()\nfail(1, 'disk full')"}, 1, Signals(1))
    assert ends.failures == {"a": "disk full"}


def test_a_second_signal_ends_all_at_once():
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_jobs({"a": WAITING + "import time\ntime.sleep(60)"}, 1, Signals(2))
    assert time.monotonic() - start < 30


def test_a_run_stops_with_its_parent():
    reading, writing = os.pipe()
    first, second = StopRequest(), StopRequest()
    parent = Parent(reading)
    os.write(writing, b'["resume", "a"]\n["res')
    assert next(parent.jobs()) == ["resume", "a"]
    parent.stops(first)
    assert first.reason is None
    os.close(writing)
    wait_until(lambda: first.reason is not None)
    assert first.reason == "the program that started it"
    parent.stops(second)  # a run that begins afterwards
    assert second.reason == first.reason
    os.close(reading)


def test_a_relay_tells_what_a_board_repeats():
    pipe, out = io.StringIO(), io.StringIO()
    sender, row = relay.Relay(pipe), PlainBoard(out).row("a")
    sender.start("ST on digits", 2, [3, 6], 1)
    sender.step(1, 2, {"supervised": 0.5}, 100.0)
    sender.increment_done(record_of(1, 0.25, seconds=2.0))
    sender.message("zwölf")
    for line in pipe.getvalue().splitlines():
        event = json.loads(line)
        assert event["call"] in relay.CALLS
        relay.show(row, event["call"], event["arguments"])
    assert out.getvalue().splitlines() == [
        "a: ST on digits: 2 increments of 3 to 6 steps, going on after step 1 of 9",
        "a: increment 1/2  accuracy 25.0 %  2.0 s",
        "a: zwölf",
    ]


def test_what_is_left_goes_on_without_the_command(tmp_path):
    log = tmp_path / "runs" / "log.txt"
    told = Local().leave([], None, Command(("--version",), log))
    wait_until(lambda: log.exists() and log.read_text() == f"{ordisco.__version__}\n")
    assert f"writes to {log}; stop it with: kill " in told


def test_a_terminal_shows_a_bar_for_each_run():
    from rich.console import Console

    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    board = LiveBoard(console)
    for name in ("st-seed0", "smb-seed0"):
        board.row(name).start("x", 2, 10)
        board.row(name).step(1, 5, {}, 1234.0)
    text = console.file.getvalue()
    assert "st-seed0: x: 2 increments of 10 steps" in text
    last = text[text.rindex("st-seed0 ") :]
    assert last.count("25 %  increment 1/2  1,234 images/s") == 2
    board.row("st-seed0").increment_done(record_of(1, 0.5))
    assert "st-seed0: increment 1/2  accuracy 50.0 %" in console.file.getvalue()
    board.remove("st-seed0")
    before = len(console.file.getvalue())
    board.row("smb-seed0").step(2, 1, {}, 1.0)
    assert "st-seed0 " not in console.file.getvalue()[before:]
    board.close()


# ---------------------------------------------------------------------- the whole command


@pytest.mark.slow
def test_side_by_side_gives_what_one_after_the_other_gives(tmp_path, capsys, monkeypatch):
    """Stopped in the middle and resumed, every run is what it is alone."""
    monkeypatch.setattr(worker, "PROGRAM", (sys.executable, "-m", "ordisco"))
    both, alone = tmp_path / "both", tmp_path / "alone"
    options = ("--method", "ordisco", "--method", "smb")
    without_figures(monkeypatch)
    assert main(arguments(alone, *options, steps=30)) == 0
    with monkeypatch.context() as patch:
        interrupt_after_an_increment(patch)
        code, out, err = call(capsys, *arguments(both, *options, "--jobs", "2", steps=30))
    assert code == 130, out + err
    assert one_line(err) == f"ordisco: stopped by Ctrl-C, all is saved; go on with: ordisco resume {both}"
    assert out.startswith("2 runs, 2 at once\n")
    assert "ordisco-seed0: increment 1/2" in out
    assert list(both.glob("ordisco-seed0/checkpoints/*"))
    assert not (both / "comparison.md").exists()
    code, out, err = call(capsys, "resume", both, "--jobs", "1")
    assert (code, err) == (0, "")
    for name in ("ordisco-seed0", "smb-seed0"):
        shutil.rmtree(both / name / "figures", ignore_errors=True)  # a child draws them
        assert_same_outcome(both / name, alone / name)


KILLED = """
import os, signal, sys
from ordisco.launchers.base import Job
from ordisco.launchers.worker import Worker

worker = Worker()
print(worker.child.pid, flush=True)
worker.give(Job("a", tuple(sys.argv[1:])))
while (event := worker.news.get()) and event["call"] != "step":
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_worker_whose_parent_is_killed_saves_its_run_and_ends(tmp_path, monkeypatch):
    path = tmp_path / "both"
    run = path / "st-seed0"
    forever = ("--method", "st", "--method", "smb", "--max-steps", "1")
    without_figures(monkeypatch)
    assert main(arguments(path, *forever, steps=1_000_000)) == 0
    job = ("resume", str(path), "--job", "st-seed0")
    done = subprocess.run([sys.executable, "-c", KILLED, *job], capture_output=True, text=True, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until(lambda: has_ended(int(done.stdout)), seconds=60)
    steps = [int(checkpoint.name.removeprefix("step-")) for checkpoint in (run / "checkpoints").glob("step-*")]
    assert max(steps) > 1


def has_ended(process: int) -> bool:
    """Also where nobody asks for its exit code; without /proc, yes."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_what_failed_is_told_with_the_way_to_go_on(tmp_path, capsys, monkeypatch):
    path = tmp_path / "both"
    seen: list[Job] = []

    def some(self: Local, jobs: list[Job], at_once: int, board: object) -> Ends:
        seen.extend(jobs)
        return Ends({"smb-seed0": "disk full", "st-seed0": "disk full"})

    monkeypatch.setattr(Local, "run", some)
    options = ("--method", "st", "--method", "smb", "--jobs", "7", "--max-steps", "3")
    code, out, err = call(capsys, *arguments(path, *options))
    assert (code, out) == (1, "2 runs, 2 at once\n")
    assert one_line(err) == (
        "ordisco: error: 2 of 2 runs failed (smb-seed0: disk full); what is done stays, "
        f"go on with: ordisco resume {path}"
    )
    assert [job.name for job in seen] == ["st-seed0", "smb-seed0"]
    assert seen[1].words == ("resume", str(path), "--max-steps", "3", "--job", "smb-seed0")


def interrupt_after_an_increment(patch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as a terminal sends it, to the parent and to all children, once ORDisCo has learned an increment."""
    children, popen, increment_done = [], subprocess.Popen, NamedDisplay.increment_done

    def noted(*args, **options):
        children.append(popen(*args, **options))
        return children[-1]

    def with_signal(display, *args):
        increment_done(display, *args)
        if children and display.name == "ordisco-seed0":
            for child in children:  # one whose run is done may have ended; Popen knows
                child.send_signal(signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            children.clear()

    patch.setattr(subprocess, "Popen", noted)
    patch.setattr(NamedDisplay, "increment_done", with_signal)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--jobs", "0"], "jobs = 0 is not allowed: from 1 to 1024"),
        (["--jobs", "x"], "argument --jobs"),
    ],
)
def test_wrong_numbers_of_jobs(tmp_path, capsys, options, message):
    code, _, err = call(capsys, *arguments(tmp_path / "both", *options))
    assert code == 2
    assert message in one_line(err)


def test_a_job_that_does_not_belong_to_the_comparison(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *args: None)
    assert call(capsys, *arguments(tmp_path / "both", "--method", "st", "--method", "smb", "--max-steps", "1"))[0] == 0
    code, _, err = call(capsys, "resume", tmp_path / "both", "--job", "jt-seed0")
    assert code == 2
    assert "job = 'jt-seed0' is not allowed" in one_line(err)


def test_jobs_and_devices_do_not_go_together():
    with pytest.raises(UsageError, match="jobs = 3 is not allowed: 1, as each run takes 2 devices"):
        jobs_at_once([MachineSettings(), MachineSettings(devices=2)], 4, None, 3)


def wait_until(done: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)
