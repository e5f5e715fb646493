"""What the measurements of launchers and processes say, and the model of cost beside them."""

from pathlib import Path

import pytest
from torch.utils.flop_counter import FlopCounterMode

from conftest import FABRIC
from ordisco.bench import cost, on_paper, scale
from ordisco.bench.cost import Link, Step
from ordisco.bench.measure import random_increment
from ordisco.learner.learner import Learner
from ordisco.machine.cores import cores
from ordisco.runs.presets import PRESET_IMAGES, preset
from ordisco.settings.methods import method

SECONDS = {"bare": 40.0, "local_first": 14.0, "local": 45.0, "local_two": 25.0, "ray": 60.0, "ray_two": 40.0}


def test_ratios_of_a_grid():
    found = scale.ratios(SECONDS)
    assert found["local_over_bare"] == 45 / 40
    assert found["first_run_seconds"] == 4.0  # torch is loaded
    assert found["next_run_seconds"] == pytest.approx(31 / 3 - 10)  # it is not loaded again
    assert (found["local_two_cores"], found["ray_over_local"], found["ray_two_cores"]) == (1.8, 60 / 45, 1.5)


def test_tables():
    step = {
        "preset": "demo",
        "processes": 2,
        "one_process_seconds": 0.2,
        "step_seconds": 0.1,
        "share": 0.25,
        "collectives": 45,
        "bytes": 2_000_000,
        "gradient_bytes": 1_000_000,
        "seconds": 0.025,
        "predicted": 0.02,
    }
    text = scale.show({"launchers": scale.ratios(SECONDS), "parallel": [step], "taken": scale.taken()})
    for words in ("| 1.12 × |", "demo, 2 processes", "2.00 ×", "25 %", "0.0250", "0.0200", f"{cores()} cores, torch "):
        assert words in text


def test_the_link_is_the_one_that_was_measured():
    link = Link.measured(small=4e-4, size=1 << 20, large=2.4e-3, processes=4)
    assert cost.reduce(0, 4, link) == pytest.approx(4e-4)
    assert cost.reduce(1 << 20, 4, link) == pytest.approx(2.4e-3)
    assert cost.told([0, 1 << 20], 4, link) == pytest.approx(2.8e-3)
    assert cost.told([1 << 20], 1, link) == 0.0


def test_more_processes_work_less_and_talk_more():
    step, link = Step(flop=1e13, gradients=10**8, small=50, images=10**7), Link(1e-5, 1e10)
    work, talk = zip(*(step.seconds(count, 1e13, link) for count in (1, 8, 64)), strict=True)
    assert work == (1.0, 1 / 8, 1 / 64)
    assert talk[0] == 0.0 < talk[1] < talk[2]
    assert cost.importance_seconds(1e6, 1e9, 10, 1e13) == pytest.approx(10.0)


def test_the_counted_step_is_the_step():
    narrow = {"c_width": 8, "g_width": 8, "d_width": 8, "batch_labeled": 2, "batch_unlabeled": 3, "batch_generated": 4}
    changes = {"teacher_batch": "labeled", "replay_ramp": 0.0, "d_steps": 2}
    settings, shape = preset("paper").replace(**narrow, **changes), PRESET_IMAGES["paper"]
    learner = Learner(method("ordisco"), on_paper.CLASSES, shape, settings, fabric=FABRIC)
    learner.begin(random_increment(shape, 40, 1, 0))
    with FlopCounterMode(display=False) as counter:
        learner.step()
    assert sum(on_paper.operations(settings, shape).values()) == pytest.approx(counter.get_total_flops(), rel=0.05)


def test_the_table_on_paper_is_that_of_the_model():
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    assert on_paper.table() in page
