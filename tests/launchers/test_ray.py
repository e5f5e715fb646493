"""Runs on a Ray cluster of two nodes, of which one is killed, and a process of the other: they are what `local` makes.

Then a cluster of the command's own, and Ctrl-C as a terminal sends it. Both are started once, for all tests here.
"""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ordisco.cli import main
from ordisco.launchers import ray as launcher
from ordisco.launchers.base import Job, Needs
from tiny import arguments, assert_same_outcome, one_line, without_figures

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
STEPS = 100
RUNS = ("smb-seed0", "smb-seed1")
# A network of its own, of which only loopback is there; without the right to make one, the machine's own address.
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
ALONE = ALONE if shutil.which("unshare") and shutil.which("ip") and os.geteuid() == 0 else []
# Ray's workers are given the lowest priority; on a busy machine they would wait for all others.
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "error", "RAY_worker_niceness": "0"}

# A node for each run, one of them the head. Ray's own warnings are its own, so pytest's process does not load it.
SCRIPT = """
import json, os, subprocess, sys, time
from pathlib import Path

os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "of this test"}
from ray.cluster_utils import Cluster
import psutil

out, runs, command = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
node = cluster.add_node(num_cpus=1, **SMALL)


def until(done):
    end = time.monotonic() + 300
    while not done():
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)


def steps(run):
    return [int(path.name[5:15]) for path in (out / "ray" / run / "checkpoints").glob("step-*") if "." not in path.name]


def lose():
    # As soon as it is under way, the run of the head loses Ray's worker and the other one its machine.
    for run in [run for run in waiting if steps(run)]:
        waiting.remove(run)
        workers = [process for process in raylet.children() if process.name() == f"ray::{run}"]
        workers[0].kill() if workers else cluster.remove_node(node, allow_graceful=False)
    return not waiting


try:
    raylet = psutil.Process(cluster.head_node.all_processes["raylet"][0].process.pid)
    waiting, log = list(runs), out / "ray" / "log.txt"
    words = [*command, "--launcher", "ray", "--detach", "--ray-address", cluster.address]
    left = subprocess.run([sys.executable, "-m", "ordisco", *words], capture_output=True, text=True)
    (out / "left").write_text(json.dumps([left.returncode, left.stdout, left.stderr]))
    assert left.returncode == 0, left.stderr
    until(lose)
    until(lambda: "table and curves: " in log.read_text() or "ordisco: " in log.read_text())
finally:
    cluster.shutdown()
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs left to a cluster of two nodes; and what `local` makes, for all."""
    out = tmp_path_factory.mktemp("ray")
    (out / "script.py").write_text(SCRIPT)
    script = [*ALONE, sys.executable, "-W", "ignore", str(out / "script.py"), str(out), json.dumps(RUNS)]
    command = json.dumps(words_of(out / "ray", "--checkpoint-seconds", "0.1"))
    done = subprocess.run([*script, command], capture_output=True, text=True, timeout=600, env=os.environ | QUIET)
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch)
        assert main(words_of(out / "local")) == 0
    return out


def words_of(path: Path, *options: str) -> list[str]:
    """The command that makes both runs, as many at once as there is room for."""
    words = arguments(path, "--method", "smb", "--seeds", "2", *options, steps=STEPS)
    place = words.index("--jobs")
    return words[:place] + words[place + 2 :]


def without_rays(text: str) -> str:
    """Without what Ray itself says, for instance of a machine without a network."""
    return re.sub(r"(?m)^\[\d{4}-.*\n", "", text)


def assert_as_local(out: Path, name: str) -> None:
    for run in RUNS:
        shutil.rmtree(out / name / run / "figures", ignore_errors=True)  # left out by local
        assert_same_outcome(out / name / run, out / "local" / run)


@needs_ray
@pytest.mark.slow
def test_a_killed_node_and_a_killed_worker_change_nothing_of_runs_that_were_left(out):
    code, told, complaints = json.loads((out / "left").read_text())
    log = out / "ray" / "log.txt"
    assert code == 0
    assert without_rays(complaints) == ""
    assert f"2 runs: made on the cluster, which writes to {log}; stop it with: touch {log.with_suffix('.stop')}" in told
    told = log.read_text()
    ends = []
    for seed, run in enumerate(RUNS):
        begun = f"{run}: SMB on digits-1-new-class, seed {seed}: 2 increments of {STEPS} steps"
        assert f"{begun}\n" in told
        assert told.count(f"{begun}, going on after step") == 1
        ends.append((told.index(f"{begun}, going on after step"), told.index(f"{run}: increment 2/2  accuracy")))
    (_, first_done), (second_begun, _) = sorted(ends)
    assert first_done < second_begun  # the node that is left has room for one
    assert "table and curves: " in told
    assert_as_local(out, "ray")


@needs_ray
@pytest.mark.slow
def test_a_signal_to_the_whole_process_group_saves_and_stops(out, monkeypatch):
    """With a cluster of the command's own, which ends with it."""
    own = out / "own"
    words = [*words_of(own, "--checkpoint-seconds", "0.1"), "--launcher", "ray"]
    command = [*ALONE, sys.executable, "-m", "ordisco", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        command, env=os.environ | QUIET | {"OF_TEST": str(own)}, start_new_session=True, **pipes
    ) as child:
        try:
            wait_until(lambda: list(own.glob("smb-seed0/checkpoints/step-*")) or child.poll() is not None)
            there = processes_that_know(own)
            making = [process for process, words in there.items() if "ordisco\0worker" in words]
            each(making, signal.SIGSTOP)  # on a fast machine the runs would be done before the signal is heard of
            daemons = [process for process, words in there.items() if "raylet" in words]
            assert making
            assert daemons
            assert all(
                os.getsid(process) != child.pid for process in daemons
            )  # a terminal's Ctrl-C does not reach them
            os.killpg(child.pid, signal.SIGTERM)
            time.sleep(2 * launcher.ASK_SECONDS)
            each(making, signal.SIGCONT)
            _, complaints = child.communicate(timeout=45)
        finally:
            child.kill()
    assert (
        one_line(without_rays(complaints))
        == f"ordisco: stopped by SIGTERM, all is saved; go on with: ordisco resume {own}"
    )
    assert child.returncode == 130
    wait_until(lambda: not processes_that_know(own), seconds=20)
    without_figures(monkeypatch)
    assert main(["resume", str(own), "--jobs", "1"]) == 0
    assert_as_local(out, "own")


def each(processes: list[int], number: signal.Signals) -> None:
    """A signal to each of them that is there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def processes_that_know(path: Path) -> dict[int, str]:
    """Processes with this path among their words or in their environment, and these."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(path).encode() in words:
                found[int(process.name)] = words.decode(errors="replace")
    return found


def test_the_file_that_stops_what_was_left_is_obeyed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "ASK_SECONDS", 0.02)
    stop = tmp_path / "log.stop"
    stop.touch()
    code = (
        "import signal, sys, time\nsignals = []\nsignal.signal(signal.SIGTERM, lambda *_: signals.append(1))\n"
        "print(flush=True)\nwhile not signals: time.sleep(0.01)\ntime.sleep(0.2)\nsys.exit(len(signals))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout.readline()
        launcher.until_done(child, stop)
    assert child.returncode == 1
    assert not stop.exists()


def test_what_is_left_takes_what_was_asked_for():
    jobs = [Job("a", (), Needs(2, 0.5, 3 * 2**29)), Job("b", (), Needs(4, 0.5, 3 * 2**29))]
    assert launcher.alike(jobs) == ("--run-gpus", "0.5", "--run-memory", "1.5")


def wait_until(done: Callable[[], object], seconds: float = 200) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
