"""The fast step is the plain one, and the benchmark measures what it says."""

import itertools
import json
import math

import pytest
import torch

from conftest import make_learner
from ordisco.bench import measure, plain_images, profile
from ordisco.bench.limit import heavy_operations, run_all
from ordisco.bench.measure import growth, ratio, slope, turns
from ordisco.bench.plain import PlainStep
from ordisco.cli import main
from ordisco.cli.bench import show, show_profile
from ordisco.config import MachineSettings
from ordisco.data import augment
from ordisco.learner import Learner
from ordisco.state import TERMS
from ordisco.stream import Stream

# Dropout is off: its masks are drawn in the order of memory, which differs between the two layouts.
SAME: dict[str, object] = {
    "dropout": 0.0,
    "steps": 4,
    "replay_ramp": 0.0,
    "align": "all",
    "pseudo_real": 0.5,
    "d_penalty": 10.0,
}
SAME |= {"c_lr": 1e-4, "g_lr": 1e-4, "d_lr": 1e-4}

# What the preset `small` does its own way.
SMALL_WAY: dict[str, object] = {
    "unlabeled_loss": "fixmatch",
    "labeller": "teacher",
    "threshold": 0.3,
    "gan_net": "dcgan",
    "alpha": 1.0,
    "pseudo_real_start": 0.2,
    "pseudo_threshold": 0.3,
    "d_balance": True,
    "mismatched": 0.5,
    "d_translate": 1,
    "g_ema": 0.9,
    "replay_new": 0.3,
    "replay_unlabeled": 0.25,
}


def second_increment(stream: Stream, **changes: object) -> Learner:
    learner = make_learner("ordisco", **{**SAME, **changes})
    learner.learn(stream[0])
    learner.begin(stream[1])
    return learner


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"adversarial": "logistic", "third_term": "argmax"},
        {"third_term": "expectation", "d_head": "flat"},
        {"student_view": "strong"},
        SMALL_WAY,
        SMALL_WAY | {"replay_new": 0.0, "g_ema": 0.0, "alpha": 0.5, "pseudo_real_start": 0.5},
    ],
)
def test_the_fast_step_equals_the_plain_one(tasks: Stream, changes: dict[str, object]):
    fast, slow = (second_increment(tasks, **changes) for _ in range(2))
    plain = PlainStep(slow)
    for _ in range(3):
        with fast.random("test"):
            fast.step()
        with slow.random("test"):
            terms = plain.step()
        row = fast.state.trace[(fast.step_in_increment - 1) % len(fast.state.trace)]
        for term, value in zip(TERMS, row.tolist(), strict=True):
            assert value == pytest.approx(terms.get(term, 0.0), rel=2e-3, abs=1e-4), term
    assert terms["penalty"] > 0
    for (name, mine), (_, other) in zip(fast.state.nets.named(), slow.state.nets.named(), strict=True):
        # Adam turns the rounding of a gradient near 0 into a step either way, so a few weights may differ.
        moved = (mine.flat.theta - other.flat.theta).abs()
        assert moved.mean() < 1e-4, name
        assert moved.median() < 1e-5, name
        torch.testing.assert_close(mine.flat.buffers, other.flat.buffers, rtol=1e-2, atol=2e-3, msg=name)


@pytest.mark.parametrize("changes", [{}, SMALL_WAY], ids=["paper", "small"])
def test_gradients_of_the_fast_step_equal_those_of_the_plain_one(
    tasks: Stream, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
):
    fast, slow = (second_increment(tasks, **changes) for _ in range(2))
    kept: dict[str, torch.Tensor] = {}
    for name, network in fast.state.nets.named():
        monkeypatch.setattr(network, "step", lambda name=name, network=network: keep(kept, name, network))
    plain = PlainStep(slow)
    for optimizer in plain.adam.values():
        monkeypatch.setattr(optimizer, "step", lambda: None)
    with fast.random("test"):
        fast.step()
    with slow.random("test"):
        plain.step()
    for name in ("C", "G", "D"):
        network = dict(slow.state.nets.named())[name]
        torch.testing.assert_close(kept[name], network.flat.grad, rtol=1e-3, atol=1e-5, msg=name)
        assert network.flat.grad.abs().max() > 0


def keep(kept: dict[str, torch.Tensor], name: str, network: object) -> None:
    kept[name] = network.flat.grad.clone()
    network.flat.grad.zero_()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("view", ["weak", "strong"])
def test_views_made_image_by_image_are_those_made_together(channels: int, flip: bool, view: str):
    images = 2 * torch.rand(9, channels, 8, 8, generator=torch.Generator().manual_seed(1)) - 1
    made = []
    for module in (augment, plain_images):
        torch.manual_seed(3)
        made.append(getattr(module, view)(images, 2, flip))
    torch.testing.assert_close(made[1], made[0], rtol=1e-4, atol=1e-5)
    assert (made[0] - images).abs().mean() > 0.1


def test_the_limit_is_every_convolution_and_matrix_product_of_a_step():
    x, w = torch.randn(2, 3, 4, 4, requires_grad=True), torch.randn(5, 3, 3, 3, requires_grad=True)
    a = torch.randn(6, 7, requires_grad=True)

    def step() -> None:
        y = torch.nn.functional.conv2d(x, w).square().sum() + (a @ a.t()).sum()
        y.backward()

    # the convolution, its backward; the product and its two gradients
    operations = heavy_operations(step)
    assert len(operations) == 5
    run_all(operations)


def test_turns_are_taken_in_turn_and_the_first_does_not_count():
    order: list[str] = []
    seconds = turns(2, lambda: order.append("a"), lambda: order.append("b"))
    assert order == ["a", "b"] * 3
    assert [len(one) for one in seconds] == [2, 2]
    assert ratio([2.0, 9.0, 4.0], [1.0, 3.0, 4.0]) == 2.0


def test_growth_is_the_slope_of_a_line_with_its_error():
    assert slope([2.0, 3.0, 4.0]) == pytest.approx((1 / 3, 0.0), abs=1e-12)
    more, error = slope([1.0, 1.1, 0.9, 1.0])  # least squares by hand: −0.02 ± √(0.018 / 2 / 5)
    assert (more, error) == pytest.approx((-0.02, 0.0424264), abs=1e-6)
    assert slope([1.0, 2.0])[1] == math.inf


def test_storage_is_flat_for_ordisco_and_grows_with_every_generator_kept():
    machine = MachineSettings(accelerator="cpu", threads=1)
    online, offline = (growth(machine, 3, name)["bytes_per_increment"] for name in ("ordisco", "offline-all"))
    labels = 10 * (64 + 8)  # ten labelled 8×8 images and their labels come with every increment
    assert [b - a for a, b in itertools.pairwise(online)] == [labels, labels]
    steps = [b - a - labels for a, b in itertools.pairwise(offline)]
    assert steps[0] == steps[1] > 0


def test_the_command_prints_json_and_tables(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measure, "start_up", lambda rounds: {"help_seconds": 0.2, "import_seconds": 2.0})
    monkeypatch.setattr(measure, "peak_of_steps", lambda name, machine: 2**30)
    grown = {"seconds_per_increment": [1.0, 1.1, 0.9], "bytes_per_increment": [10.0, 20.0, 30.0]}
    monkeypatch.setattr(measure, "growth", lambda *args: grown)
    assert main(["bench", "--preset", "demo", "--rounds", "1", "--increments", "3", "--threads", "1", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    demo = results["presets"]["demo"]
    assert demo["step_over_limit"] > 1
    assert demo["plain_over_step"] > demo["plain_products_over_step"] > 0
    assert demo["plain_heavy_operations"] > demo["heavy_operations"]
    assert demo["precision"] == "32-true"
    assert len(results["seconds_per_increment"]) == len(results["bytes_per_increment"]) == 3
    assert results["offline"].keys() == {"offline-all", "offline-last"}
    show(results)
    tables = capsys.readouterr().out
    assert f"| plain code / step | {demo['plain_over_step']:.2f} × |" in " ".join(tables.split())
    assert tables.count("| offline") == 2


def test_a_profile_names_the_operations_of_a_step_and_their_shares_are_the_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(profile, "WARM_UP", 1)
    monkeypatch.setattr(profile, "STEPS", 2)
    assert main(["bench", "--profile", "--preset", "demo", "--threads", "1", "--json"]) == 0
    parts = json.loads(capsys.readouterr().out)["demo"]
    assert sum(part["share"] for part in parts) == pytest.approx(1.0, abs=0.05)
    assert {"convolution_backward", "Python"} <= {part["name"] for part in parts}
    assert [part["seconds"] for part in parts] == sorted((part["seconds"] for part in parts), reverse=True)
    show_profile({"demo": parts}, rows=3)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith(f"| {len(parts) - 3} others") for line in lines) == 1
    assert [any(line.startswith(f"| {part['name']} ") for line in lines) for part in parts[:4]] == [True] * 3 + [False]


def test_the_memory_of_a_step_is_that_of_the_process():
    peak = measure.peak_here("demo", MachineSettings(accelerator="cpu", threads=1))
    assert peak is None or peak > 2**27
