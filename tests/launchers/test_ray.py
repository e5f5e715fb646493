"""Runs on a Ray cluster of two nodes on this machine, one of which is killed: they are what `local` makes."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ordisco.cli import main
from tiny import arguments, assert_same_outcome, without_figures

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray"),
]
STEPS = 150
# A network of its own, of which only loopback is there; without the right to make one, the machine's own address.
ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
ALONE = ALONE if shutil.which("unshare") and shutil.which("ip") and os.geteuid() == 0 else []
OPTIONS = ("--method", "smb", "--seeds", "2")

# A node for each run, one of them the head. Ray's own warnings are its own, so pytest's process does not load it.
SCRIPT = """
import json, os, subprocess, sys, time
from pathlib import Path

os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "error"}
from ray.cluster_utils import Cluster

out, command = Path(sys.argv[1]), json.loads(sys.argv[2])
SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **SMALL})
node = cluster.add_node(num_cpus=1, **SMALL)


def begin(name, *words):
    files = [open(out / f"{name}.{part}", "wb") for part in ("out", "err")]
    ray = ["--launcher", "ray", "--ray-address", cluster.address]
    return subprocess.Popen([sys.executable, "-m", "ordisco", *words, *ray], stdout=files[0], stderr=files[1])


def until(done):
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def steps(run):
    return [int(path.name[5:15]) for path in (out / "ray" / run / "checkpoints").glob("step-*") if "." not in path.name]


try:
    driver = begin("told", *command)
    until(lambda: all(steps(run) for run in ("smb-seed0", "smb-seed1")) or driver.poll() is not None)
    cluster.remove_node(node, allow_graceful=False)
    code = driver.wait(200)
finally:
    driver.kill()
    cluster.shutdown()
(out / "code").write_text(str(code))
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ray")
    (out / "script.py").write_text(SCRIPT)
    words = arguments(out / "ray", *OPTIONS, "--checkpoint-seconds", "0.1", steps=STEPS)
    place = words.index("--jobs")
    command = [
        *ALONE,
        sys.executable,
        "-W",
        "ignore",
        str(out / "script.py"),
        str(out),
        json.dumps(words[:place] + words[place + 2 :]),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def test_a_killed_node_changes_nothing(out, monkeypatch):
    told = (out / "told.out").read_text()
    assert (out / "code").read_text() == "0", told
    rays = re.compile(r"\[\d{4}-|.*\(raylet\)|.*RAY_BACKEND_LOG_LEVEL")  # Ray itself speaks of the lost node
    assert [line for line in (out / "told.err").read_text().splitlines() if not rays.match(line)] == []
    for seed in (0, 1):
        assert f"smb-seed{seed}: SMB on digits-1-new-class, seed {seed}: 2 increments of {STEPS} steps\n" in told
        assert f"smb-seed{seed}: increment 2/2  accuracy" in told
    assert "table and curves: " in told
    assert told.count(f"2 increments of {STEPS} steps, going on after step") == 1  # elsewhere, what the node had
    without_figures(monkeypatch)
    assert main(arguments(out / "local", *OPTIONS, steps=STEPS)) == 0
    for seed in (0, 1):
        shutil.rmtree(out / "ray" / f"smb-seed{seed}" / "figures")  # left out above
        assert_same_outcome(out / "ray" / f"smb-seed{seed}", out / "local" / f"smb-seed{seed}")
