"""The fast step is the plain one, and the benchmark measures what it says."""

import itertools
import json
import math

import pytest
import torch

from ordisco.bench import measure, plain_images, profile
from ordisco.bench.limit import heavy_operations, run_all
from ordisco.bench.measure import growth, ratio, slope, turns
from ordisco.cli import main
from ordisco.cli.bench import show, show_profile
from ordisco.data import augment
from ordisco.settings.machine import MachineSettings


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


@pytest.mark.slow
def test_storage_is_flat_for_ordisco_and_grows_with_every_generator_kept():
    machine = MachineSettings(accelerator="cpu", threads=1)
    online, offline = (growth(machine, 3, name)["bytes_per_increment"] for name in ("ordisco", "offline-all"))
    labels = 10 * (64 + 8 + 2)  # ten labelled 8×8 images with label and increment come every time
    assert [b - a for a, b in itertools.pairwise(online)] == [labels, labels]
    steps = [b - a - labels for a, b in itertools.pairwise(offline)]
    assert steps[0] == steps[1] > 0


@pytest.mark.slow
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


@pytest.mark.slow
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
