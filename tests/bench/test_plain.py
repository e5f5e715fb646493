"""The whole method in one plain file is the oracle of the fast one: the same draws give the same numbers."""

import runpy
from pathlib import Path

import pytest
import torch
from torch import nn

from conftest import TINY, make_learner
from ordisco.bench import learners
from ordisco.bench.plain import PlainORDisCo
from ordisco.learner.learner import Learner
from ordisco.learner.state import TERMS
from ordisco.streams.stream import Stream

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
    "d_colour": 0.5,
    "g_ema": 0.9,
    "replay_new": 0.3,
    "replay_unlabeled": 0.25,
}


def both(stream: Stream, **changes: object) -> tuple[Learner, PlainORDisCo]:
    """The fast and the plain one at the start of the second increment."""
    changes = {**SAME, **changes}
    fast = make_learner("ordisco", **changes)
    plain = PlainORDisCo(TINY.replace(**changes), 6, (1, 8, 8))
    fast.learn(stream[0])
    plain.learn(stream[0].images, stream[0].labels)
    fast.begin(stream[1])
    plain.begin(stream[1].images, stream[1].labels)
    return fast, plain


def named(fast: Learner, plain: PlainORDisCo) -> list[tuple[str, nn.Module, nn.Module]]:
    modules = {"C": plain.C, "teacher": plain.C_prime, "G": plain.G, "D": plain.D, "G_mean": plain.G_mean}
    return [(name, network.module, modules[name]) for name, network in fast.state.nets.named()]


def flat(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"adversarial": "logistic", "third_term": "argmax"},
        {"third_term": "expectation", "d_head": "flat"},
        {"student_view": "strong"},
        {"d_steps": 3},
        SMALL_WAY,
        SMALL_WAY | {"labeled_view": "strong", "strong_colours": "any"},
        SMALL_WAY | {"replay_new": 0.0, "g_ema": 0.0, "alpha": 0.5, "pseudo_real_start": 0.5},
    ],
)
@pytest.mark.slow
def test_the_fast_method_equals_the_plain_one_over_two_increments(tasks: Stream, changes: dict[str, object]):
    fast, plain = both(tasks, **changes)
    for _ in range(3):
        with fast.random("test"):
            fast.step()
        terms = plain.step()
        row = fast.state.trace[(fast.state.step - 1) % len(fast.state.trace)]
        for term, value in zip(TERMS, row.tolist(), strict=False):  # then what is measured beside them
            assert value == pytest.approx(terms.get(term, 0.0), rel=5e-3, abs=2e-4), term
    assert terms["penalty"] > 0
    for name, mine, other in named(fast, plain):
        # Adam turns the rounding of a gradient near 0 into a step either way, so a few weights may differ.
        moved = (flat(mine) - flat(other)).abs()
        assert moved.median() < 1e-5, name
        assert moved.mean() < 2e-4, name


def test_eqs_9_and_10_of_the_fast_method_equal_those_of_the_plain_one(tasks: Stream):
    fast, plain = both(tasks)
    held = fast.state.memories.penalty_on_D
    xi = torch.cat([part.flatten() for part in plain.xi])
    assert xi.max() > 0
    torch.testing.assert_close(held.vectors["importance"], xi, rtol=2e-2, atol=1e-5)


@pytest.mark.parametrize("changes", [{}, SMALL_WAY], ids=["paper", "small"])
@pytest.mark.slow
def test_gradients_of_the_fast_step_equal_those_of_the_plain_one(
    tasks: Stream, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
):
    fast, plain = both(tasks, **changes)
    for _, mine, other in named(fast, plain):
        other.load_state_dict(mine.state_dict())
    kept: dict[str, torch.Tensor] = {}
    for name, network in fast.state.nets.named():
        monkeypatch.setattr(network, "step", lambda name=name, network=network: keep(kept, name, network))
    for optimizer in plain.adam.values():
        monkeypatch.setattr(optimizer, "step", lambda: None)
    with fast.random("test"):
        fast.step()
    plain.step()
    for name, module in (("C", plain.C), ("G", plain.G), ("D", plain.D)):
        gradient = torch.cat([p.grad.flatten() for p in module.parameters()])
        torch.testing.assert_close(kept[name], gradient, rtol=1e-2, atol=1e-4, msg=name)
        assert gradient.abs().max() > 0


def keep(kept: dict[str, torch.Tensor], name: str, network: object) -> None:
    kept[name] = network.flat.grad.clone()
    network.flat.grad.zero_()


@pytest.mark.slow
def test_the_plain_file_can_be_read_at_one_sitting_and_run(capsys: pytest.CaptureFixture[str]):
    assert len(Path(learners.__file__).with_name("plain.py").read_text().splitlines()) <= 280
    example = Path(__file__).parents[2] / "examples" / "plain_ordisco.py"
    accuracy = runpy.run_path(str(example))["main"](steps=2)
    assert 0 <= accuracy <= 1
    assert capsys.readouterr().out.count("after task") == 5
