"""One learner on many devices follows the learner on one: losses, weights and what it draws, up to rounding."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from conftest import make_learner
from ordisco.errors import UsageError
from ordisco.learner.held import Held
from ordisco.machine.environment import recognised, started_by
from ordisco.machine.group import ALONE, Group
from ordisco.settings.machine import MachineSettings

# Processes are forked from one that has torch: (processes, method, settings) one after the other.
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
UNEVEN = {"batch_labeled": 1, "batch_unlabeled": 7, "batch_generated": 6}
CASES = [("ordisco", {"dropout": 0.5, "align": "all"}), ("ordisco", UNEVEN | {"d_steps": 2}), ("ewc-sl+ul", {})]
STEPS = 4


def learn(fabric, name, changes):
    stream = new_class(blob_dataset(), increments=3, labels_per_class=1)
    learner = Learner(method(name), 6, (1, 8, 8), TINY.replace(steps=STEPS, **changes), seed=0, fabric=fabric)
    losses = []
    for index in range(2):
        learner.begin(stream[index])
        while not learner.done:
            learner.step()
        losses.append(learner.state.trace[:STEPS].clone())
        learner.finish()
    return learner, torch.cat(losses)


def work(fabric):
    torch.set_num_threads(1)
    for number, (name, changes) in enumerate(CASES if fabric.world_size < 4 else CASES[:1]):
        learner, losses = learn(fabric, name, changes)
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
@pytest.mark.parametrize(("case", "processes"), [(0, 2), (0, 4), (1, 2), (2, 2)])
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
