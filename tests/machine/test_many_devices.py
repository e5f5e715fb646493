"""One learner on many devices follows the learner on one: losses, weights and what it draws, up to rounding."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from conftest import make_learner
from ordisco.cli import main
from ordisco.errors import UsageError
from ordisco.learner.held import Held
from ordisco.machine.environment import recognised, started_by
from ordisco.machine.group import ALONE, Group
from ordisco.runs.checkpoint import load_latest
from ordisco.settings.machine import MachineSettings
from tiny import STEPS, arguments, one_line, without_figures

# One, two and four processes, forked from one that has torch. Four wait for each other on two cores: they do less.
SCRIPT = """
import sys
from pathlib import Path

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment

sys.path.insert(0, sys.argv[1])
from conftest import TINY, blob_dataset
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.settings.methods import method
from ordisco.streams.arrange import new_class

torch.set_num_threads(1)
OUT = Path(sys.argv[2])
UNEVEN = {"batch_labeled": 1, "batch_unlabeled": 7, "batch_generated": 6, "d_steps": 2}
CASES = [({1, 2}, {"dropout": 0.5, "align": "all", "steps": 3}), ({1, 2, 4}, UNEVEN | {"steps": 2})]


def learn(fabric, changes):
    stream = new_class(blob_dataset(), increments=3, labels_per_class=1)
    learner = Learner(method("ordisco"), 6, (1, 8, 8), TINY.replace(statistics=2, **changes), seed=0, fabric=fabric)
    losses = []
    for index in range(2):
        learner.begin(stream[index])
        while not learner.done:
            learner.step()
        losses.append(learner.state.trace[: changes["steps"]].clone())
        learner.finish()
    return learner, torch.cat(losses)


def work(fabric):
    torch.set_num_threads(1)
    for number, (counts, changes) in enumerate(CASES):
        if fabric.world_size not in counts:
            continue
        learner, losses = learn(fabric, changes)
        tensors = {key: tensor.clone() for key, tensor in learner.saved()[0].items()} | {"losses": losses}
        if learner.has_generator:
            tensors["drawn"] = learner.sample(torch.tensor([0, 1, 2, 3])).float()
        torch.save(tensors, OUT / f"{number}-{fabric.world_size}-{fabric.global_rank}.pt")
    if fabric.world_size == 2:
        learner.state.nets.C.flat.theta[0] += fabric.global_rank * 1e-6
        try:
            learner.check_replicas()
        except OrdiscoError as error:
            (OUT / f"drift{fabric.global_rank}.txt").write_text(str(error))


for count in (1, 2, 4):
    options = {"strategy": "ddp_fork"} if count > 1 else {}
    fabric = Fabric(accelerator="cpu", devices=count, plugins=[LightningEnvironment()], **options)
    fabric.launch(work)
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("many")
    (out / "script.py").write_text(SCRIPT)
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-W", "ignore", str(out / "script.py"), str(tests), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("case", "processes"), [(0, 2), (1, 2), (1, 4)])
def test_many_processes_follow_one(out, case, processes):
    one = torch.load(out / f"{case}-1-0.pt")
    replicas = [torch.load(out / f"{case}-{processes}-{rank}.pt") for rank in range(processes)]
    for other in replicas[1:]:
        assert [key for key in one if not torch.equal(other[key], replicas[0][key])] == []
    assert one.keys() == replicas[0].keys()
    for key, value in replicas[0].items():
        if key.startswith("G"):
            continue  # a bias before batch norm has no gradient but rounding; what G draws is compared
        tolerance = 3.0 if key == "drawn" else 2e-5  # of 255
        torch.testing.assert_close(
            value, one[key], atol=tolerance, rtol=1e-4, msg=lambda text, key=key: f"{key}: {text}"
        )


@pytest.mark.slow
def test_a_drift_is_an_error_in_all_processes(out):
    told = {(out / f"drift{rank}.txt").read_text() for rank in (0, 1)}
    assert len(told) == 1
    assert "have drifted apart in increment 3" in told.pop()


def test_one_process_is_left_alone():
    learner = make_learner("smb")
    assert learner.setup.group == ALONE
    assert not learner.takes_shares


def test_images_are_held_by_shares(monkeypatch):
    images = torch.arange(7, dtype=torch.uint8).view(7, 1, 1, 1)
    index = torch.tensor([6, 0, 3, 3])
    found = []
    for rank in range(3):
        held = Held(images[rank::3], 7, Group(rank, 3))
        monkeypatch.setattr(Group, "sum_", lambda group, tensor: tensor)
        found.append(held[index])
        assert len(held) == 7
    assert torch.equal(sum(found), images[index])


def test_a_share_has_all_labels_and_every_other_image(tasks):
    whole, shares = tasks[1], [tasks.share(1, rank, 2) for rank in range(2)]
    assert [len(share.labeled) for share in shares] == [len(whole.labeled)] * 2
    assert [share.num_unlabeled for share in shares] == [whole.num_unlabeled] * 2
    assert torch.equal(shares[0].unlabeled, whole.unlabeled[::2])
    assert torch.equal(shares[1].unlabeled, whole.unlabeled[1::2])
    for rank, share in enumerate(shares):
        cut = whole.shared(rank, 2)
        assert torch.equal(cut.images, share.images)
        assert torch.equal(cut.labels, share.labels)
        assert cut.share == share.share
        truth = tasks.truth(1, rank, 2)
        assert torch.equal(truth[share.labels >= 0], share.labels[share.labels >= 0])
        assert len(truth) == len(share)


TORCHRUN = {
    "RANK": "3",
    "LOCAL_RANK": "1",
    "GROUP_RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "2",
    "TORCHELASTIC_RUN_ID": "none",
}
SLURM = {
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "0",
    "SLURM_NTASKS": "6",
    "SLURM_NNODES": "2",
}


def test_torchrun_and_slurm_are_recognised():
    machine = MachineSettings()
    assert recognised(machine, {}) == machine
    by_torchrun, by_slurm = recognised(machine, TORCHRUN), recognised(machine, SLURM)
    assert (by_torchrun.devices, by_torchrun.num_nodes) == (2, 2)
    assert (by_slurm.devices, by_slurm.num_nodes) == (3, 2)
    assert started_by(SLURM | {"SLURM_NTASKS": "1"}) is None  # a job of one task
    batch = {name: value for name, value in SLURM.items() if name != "SLURM_STEP_ID"}
    assert started_by(batch) is None  # sbatch's script, before srun


def test_processes_that_do_not_fit():
    with pytest.raises(UsageError, match="devices = 4 is not allowed: torchrun has started 2"):
        recognised(MachineSettings(devices=4), TORCHRUN)
    with pytest.raises(UsageError, match="5 processes on 2 machines are not allowed"):
        recognised(MachineSettings(), SLURM | {"SLURM_NTASKS": "5"})
    with pytest.raises(
        UsageError, match="num_nodes = 2 is not allowed without NODE_RANK: start the command by torchrun"
    ):
        recognised(MachineSettings(num_nodes=2), {"MASTER_ADDR": "a", "MASTER_PORT": "1"})


# ---------------------------------------------------------------------- the whole command

SMB = ("--method", "smb", "--statistics", "4")


def begin(out: Path, *options: str, prefix: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
    command = [*prefix, sys.executable, "-m", "ordisco", *arguments(out, *SMB, *options, steps=STEPS)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        command, env=os.environ | {"TERM": "dumb", "TORCH_CPP_LOG_LEVEL": "ERROR"} | environment, **pipes
    )


def assert_alike(run: Path, other: Path) -> None:
    """Two finished runs, up to rounding."""
    mine, its = (load_latest(path / "checkpoints").tensors for path in (run, other))
    assert mine.keys() == its.keys()
    for name in mine:
        torch.testing.assert_close(mine[name], its[name], atol=1e-3, rtol=1e-3, msg=lambda text, n=name: f"{n}: {text}")


@pytest.mark.slow
def test_a_killed_process_ends_the_run_with_a_line_and_one_device_goes_on(tmp_path, capsys, monkeypatch):
    run = tmp_path / "two"
    first = begin(run, "--devices", "2", "--checkpoint-seconds", "0")
    wait_until(lambda: first.poll() is not None or list(run.glob("checkpoints/step-*[0-9]")))
    children = Path(f"/proc/{first.pid}/task/{first.pid}/children")
    if not children.exists():
        first.kill()
        pytest.skip("needs Linux's list of children")
    os.kill(int(children.read_text().split()[0]), signal.SIGKILL)
    out, err = first.communicate(timeout=120)
    assert first.returncode == 1, out + err
    assert one_line(err).startswith("ordisco: error: ")
    assert err.endswith("go on with `ordisco resume`\n")
    without_figures(monkeypatch)
    assert main(["resume", str(run), "--devices", "1"]) == 0
    assert "going on after step" in capsys.readouterr().out
    assert main(arguments(tmp_path / "one", *SMB, steps=STEPS)) == 0
    assert_alike(run, tmp_path / "one")


NETWORK = f"ordisco{os.getpid() % 10_000}"


@pytest.fixture
def two_hosts():
    """Two network namespaces joined by a pair of virtual cables, as two machines."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("needs `ip`, and to be root")
    names = [f"{NETWORK}{end}" for end in "ab"]
    commands = [f"netns add {name}" for name in names]
    commands += [f"link add {names[0]} netns {names[0]} type veth peer name {names[1]} netns {names[1]}"]
    for number, name in enumerate(names, 1):
        commands += [f"-n {name} addr add 10.77.0.{number}/24 dev {name}"]
        commands += [f"-n {name} link set {device} up" for device in ("lo", name)]
    try:
        for command in commands:
            done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


@pytest.mark.slow
def test_two_machines_follow_one(two_hosts, tmp_path, monkeypatch):
    hosts = [
        begin(
            tmp_path / "two",
            "--num-nodes",
            "2",
            prefix=("ip", "netns", "exec", name),
            MASTER_ADDR="10.77.0.1",
            MASTER_PORT="29511",
            NODE_RANK=str(rank),
            GLOO_SOCKET_IFNAME=name,
        )
        for rank, name in enumerate(two_hosts)
    ]
    (out, err), silent = (host.communicate(timeout=150) for host in hosts)
    assert (hosts[0].returncode, err, silent) == (0, "", ("", "")), out + err
    without_figures(monkeypatch)
    assert main(arguments(tmp_path / "one", *SMB, steps=STEPS)) == 0
    assert_alike(tmp_path / "two", tmp_path / "one")


def wait_until(done: Callable[[], object]) -> None:
    end = time.monotonic() + 100
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)
