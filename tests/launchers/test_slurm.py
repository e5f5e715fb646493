"""Runs as an array job of a real Slurm: munge, a controller and two nodes on loopback, started by the test."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordisco.cli import main
from ordisco.errors import OrdiscoError, UsageError
from ordisco.launchers.base import Job, Needs
from ordisco.launchers.slurm import FOLDER, Slurm
from tiny import arguments, assert_same_outcome, call, without_figures

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
READY = all(shutil.which(name) for name in PROGRAMS) and hasattr(os, "geteuid") and os.geteuid() == 0
SUBMITIT = importlib.util.find_spec("submitit") is not None
needs_submitit = pytest.mark.skipif(not SUBMITIT, reason="needs submitit")
STEPS = 60
CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={at}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool-%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd-%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd-%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName=n0 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=1 RealMemory=2000
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=1 RealMemory=2000
PartitionName=all Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    at = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    at.chmod(0o755)
    (at / "state").mkdir()
    (at / "slurm.conf").write_text(CONFIG.format(at=at, host=socket.gethostname(), ports=free_ports(3)))
    (at / "munge.key").write_bytes(os.urandom(1024))
    (at / "munge.key").chmod(0o600)
    monkeypatch.setenv("SLURM_CONF", str(at / "slurm.conf"))
    files = {
        "key": "munge.key",
        "socket": "munge.sock",
        "log": "munged.log",
        "pid": "munged.pid",
        "seed": "munged.seed",
    }
    munge = [f"--{name}{'' if name == 'socket' else '-file'}={at / file}" for name, file in files.items()]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in (
            ["munged", "--foreground", "--force", *munge],
            ["slurmctld", "-D", "-c"],
            ["slurmd", "-D", "-N", "n0"],
            ["slurmd", "-D", "-N", "n1"],
        ):
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            wait_until((at / "munge.sock").exists)
        wait_until(lambda: said("sinfo", "-h", "-t", "idle", "-o", "%D") == "2")
        yield at
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
        shutil.rmtree(at, ignore_errors=True)


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def wait_until(done) -> None:
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.slow
@needs_submitit
@pytest.mark.skipif(not READY, reason="needs slurm-wlm, and to be root")
def test_left_to_slurm_stopped_and_gone_on_with(slurm, tmp_path, capsys, monkeypatch):
    out, options = tmp_path / "slurm", ("--method", "smb")
    often = ("--checkpoint-seconds", "0.1")
    words = arguments(out, *options, *often, "--launcher", "slurm", "--jobs", "2", steps=STEPS)
    code, told, err = call(capsys, *words, "--detach")
    assert (code, err) == (0, "")
    number = told.split("scancel ")[1].split()[0]
    assert f"array job {number} of 1 tasks, logs in {out / FOLDER}" in told
    run = out / "smb-seed0"
    wait_until(lambda: list(run.glob("checkpoints/step-*[0-9]")))
    subprocess.run(["scancel", number], check=True)
    wait_until(lambda: not said("squeue", "-h", "-j", number))
    assert not (run / "summary.json").exists()
    assert "stopped" in "".join(path.read_text() for path in (out / FOLDER).glob("*_log.out"))
    code, told, err = call(capsys, "resume", out, "--launcher", "slurm")
    assert (code, err) == (0, "")
    assert "slurm: array job" in told
    assert f"smb-seed0: SMB on digits-1-new-class, seed 0: 2 increments of {STEPS} steps, going on after step" in told
    without_figures(monkeypatch)
    assert main(arguments(tmp_path / "local", *options, steps=STEPS)) == 0
    shutil.rmtree(run / "figures")
    assert_same_outcome(run, tmp_path / "local")


@needs_submitit
def test_the_script_that_sbatch_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: name)
    jobs = [Job(name, ("resume", "x"), Needs(cpus=3, gpus=2.0, memory=5 * 2**30)) for name in "abc"]
    executor = Slurm(tmp_path, hours=2.5, more={"partition": "long", "account": "us"}).executor(jobs, 2)
    text = executor._executor._make_submission_file_text(f"{sys.executable} task", "id")
    lines = [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]
    asked = ["cpus-per-task=3", "gpus-per-node=2", "mem=5120M", "time=150", "partition=long", "account=us", "requeue"]
    assert [option for option in asked if option not in lines] == []


def test_what_slurm_cannot_give(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(OrdiscoError, match=r"submitit is not installed|there is no Slurm here"):
        Slurm(tmp_path).executor([Job("a", ())], None)
    if SUBMITIT:
        monkeypatch.setattr(shutil, "which", lambda name: name)
        with pytest.raises(UsageError, match=r"run_gpus = 0.5 is not allowed: Slurm gives whole GPUs"):
            Slurm(tmp_path).executor([Job("a", (), Needs(gpus=0.5))], None)
