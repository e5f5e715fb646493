"""Where several runs are made, on the command line."""

import pytest

from ordisco.launchers import local
from ordisco.machine import mounts
from ordisco.settings.machine import MachineSettings
from ordisco.studies import engine
from ordisco.studies.launching import Launching
from tiny import arguments, call, one_line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--launcher", "cloud"], "argument --launcher"),
        (["--ray-address", "a:1"], "ray_address is not allowed with --launcher local: it is of ray"),
        (["--launcher", "ray", "--slurm", "partition=a"], "slurm is not allowed with --launcher ray: it is of slurm"),
        (["--launcher", "slurm", "--slurm", "gpu"], "slurm = 'gpu' is not allowed: KEY=VALUE"),
        (["--launcher", "ray", "--run-cpus", "0"], "run_cpus = 0 is not allowed: from 1 to 4096"),
        (["--launcher", "ray", "--run-gpus", "nan"], "run_gpus = nan is not allowed: from 0 to 1e+06"),
        (["--launcher", "ray", "--detach"], "detach is not allowed with a cluster that ends with the command"),
        (["--launcher", "ray", "--num-nodes", "2"], "num_nodes = 2 is not allowed without MASTER_ADDR"),
    ],
)
def test_wrong_options(tmp_path, capsys, options, message):
    words = arguments(tmp_path / "both", "--method", "st", "--method", "smb", *options)
    code, _, err = call(capsys, *words)
    assert code == 2
    assert message in one_line(err)


def test_a_file_system_without_honest_locks(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(engine, "lock_fault", lambda path: "/x is mounted with nolock")
    code, _, err = call(capsys, *arguments(tmp_path / "a", "--method", "st", "--launcher", "slurm"))
    assert code == 1
    assert "/x is mounted with nolock: two could make the same run; mount it with locks" in one_line(err)
    assert mounts.lock_fault is not engine.lock_fault


def test_a_single_run_takes_no_launcher(tmp_path, capsys):
    assert call(capsys, *arguments(tmp_path / "one", "--method", "st", "--max-steps", "1"))[0] == 0
    code, _, err = call(capsys, "resume", tmp_path / "one", "--detach")
    assert code == 2
    assert "a launcher is not allowed here" in one_line(err)


def test_what_a_run_takes():
    needs = Launching(local.Local()).needs(MachineSettings(threads=2, devices=2, accelerator="cuda"))
    assert (needs.cpus, needs.gpus, needs.memory) == (4, 2.0, 2 * 2**30)
    asked = Launching(local.Local(), cpus=3, gpus=0.5, memory=10).needs(MachineSettings())
    assert (asked.cpus, asked.gpus, asked.memory) == (3, 0.5, 10)
