"""The fast step is the plain one, and the benchmark measures what it says."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from ordisco.bench import everything, grow, measure, plain_images, processes, profile
from ordisco.bench.grow import grown, slope
from ordisco.bench.limit import heavy_operations, run_all
from ordisco.bench.measure import ratios, turns
from ordisco.bench.tables import profile_tables
from ordisco.bench.values import Value, read_report
from ordisco.cli import main
from ordisco.data import augment
from ordisco.errors import OrdiscoError
from ordisco.machine.memory import most_resident
from ordisco.settings.machine import MachineSettings


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize(("view", "more"), [("weak", {}), ("strong", {}), ("strong", {"any_colours": True})])
def test_views_made_image_by_image_are_those_made_together(channels: int, flip: bool, view: str, more: dict[str, bool]):
    images = 2 * torch.rand(9, channels, 8, 8, generator=torch.Generator().manual_seed(1)) - 1
    made = []
    for module in (augment, plain_images):
        torch.manual_seed(3)
        made.append(getattr(module, view)(images, 2, flip, **more))
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
    assert ratios([2.0, 9.0, 4.0], [1.0, 3.0, 4.0]) == [2.0, 3.0, 1.0]


def test_growth_is_the_slope_of_a_line_with_its_error():
    assert slope([2.0, 3.0, 4.0]) == pytest.approx((1 / 3, 0.0), abs=1e-12)
    more, error = slope([1.0, 1.1, 0.9, 1.0])  # least squares by hand: −0.02 ± √(0.018 / 2 / 5)
    assert (more, error) == pytest.approx((-0.02, 0.0424264), abs=1e-6)
    assert slope([1.0, 2.0])[1] == math.inf


@pytest.mark.slow
def test_storage_is_flat_for_ordisco_and_grows_with_every_generator_kept():
    machine = MachineSettings(accelerator="cpu", threads=1)
    online, offline = (grown(name, 3, machine)["bytes"] for name in ("ordisco", "offline-all"))
    labels = 10 * (64 + 8 + 2)  # ten labelled 8×8 images with label and increment come every time
    assert [b - a for a, b in itertools.pairwise(online)] == [labels, labels]
    steps = [b - a - labels for a, b in itertools.pairwise(offline)]
    assert steps[0] == steps[1] > 0


def test_the_command_saves_prints_and_compares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    grown = {"seconds": [1.0] * 12, "bytes": [10.0 * n for n in range(12)], "resident": [3e8] * 12}
    monkeypatch.setattr(grow, "in_a_process", lambda *arguments: grown)
    monkeypatch.setattr(processes, "start_up", lambda *arguments: {"import ordisco": Value(0.05, "s")})
    monkeypatch.setattr(processes, "memory", lambda *arguments: {"a run": Value(90.0, "MB")})
    words = ["bench", "--preset", "demo", "--rounds", "1", "--threads", "1"]
    assert main([*words, "--json", str(tmp_path)]) == 0
    tables = capsys.readouterr().out
    [file] = tmp_path.iterdir()
    sections = read_report(file).sections
    demo = sections["step: demo, 1 thread"]
    # one round beside other tests: how large the ratios are says nothing here
    assert 0 < demo["step / its convolutions and matrix products"].value < 100
    whole, products = (demo[f"plain code{of} / step"].value for of in ("", "'s convolutions and matrix products"))
    assert min(whole, products) > 0
    assert {"step of ORDisCo", "step of SMB", "step of SMB+UMB", "images evaluated", "checkpoint saved"} <= demo.keys()
    assert f"| plain code / step | {whole:.2f} × |" in " ".join(tables.split())
    assert sections["growth: ORDisCo"]["kept, more an increment"].value == 10.0
    assert sections["growth: ORDisCo"]["memory, increment 12"].value == 300.0
    assert "| a run | 90 MB |" in " ".join(tables.split())
    saved = json.loads(file.read_text())
    saved["sections"]["start-up: a process"]["import ordisco"]["value"] = 0.025
    file.write_text(json.dumps(saved))
    monkeypatch.setattr(measure, "step", lambda *arguments: {})
    monkeypatch.setattr(measure, "throughput", lambda *arguments: {})
    assert main([*words, "--against", str(tmp_path)]) == 0
    assert "Worse by more than the noise: start-up: a process: import ordisco." in capsys.readouterr().out


def test_a_plan_takes_fewer_turns_where_steps_are_long():
    plan = everything.Plan(("demo",), (1,), 15, 30)
    assert [plan.rounds_of(name) for name in ("demo", "small", "small-colour", "paper")] == [15, 15, 7, 3]
    assert everything.usual_threads("cuda") == (1,)


@pytest.mark.slow
def test_a_profile_names_the_operations_of_a_step_and_their_shares_are_the_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(profile, "WARM_UP", 1)
    monkeypatch.setattr(profile, "STEPS", 2)
    assert main(["bench", "--profile", "--preset", "demo", "--threads", "1", "--json", "-"]) == 0
    parts = json.loads(capsys.readouterr().out)["demo"]
    assert sum(part["share"] for part in parts) == pytest.approx(1.0, abs=0.05)
    assert {"convolution_backward", "Python"} <= {part["name"] for part in parts}
    assert [part["seconds"] for part in parts] == sorted((part["seconds"] for part in parts), reverse=True)
    lines = profile_tables({"demo": parts}, rows=3).splitlines()
    assert sum(line.startswith(f"| {len(parts) - 3} others") for line in lines) == 1
    assert [any(line.startswith(f"| {part['name']} ") for line in lines) for part in parts[:4]] == [True] * 3 + [False]


def test_a_program_of_its_own_is_timed_and_its_memory_is_not_that_of_this_one():
    seconds, cpu = processes.ended("-c", "sum(range(10**6))")
    assert cpu > 0
    assert seconds > 0
    with pytest.raises(OrdiscoError, match="failed: ValueError: no"):
        processes.ended("-c", "raise ValueError('no')")
    mine, its = most_resident(), processes.peak("")
    assert mine is None or 5 < its < mine / 2e6  # Python alone, started by one that has torch
