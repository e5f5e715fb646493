"""The whole step: its order, its ramps, and which networks it reaches."""

import pytest
import torch

from conftest import FABRIC, TINY, assert_same, increment_of, make_learner, weights
from midway import FIRST, SECOND, ready, touched
from ordisco.learner import step, targets
from ordisco.learner.batch import Augmentation, Batch
from ordisco.learner.learner import TRACED
from ordisco.learner.memories import Memories
from ordisco.learner.pools import Pools, lay_out
from ordisco.learner.seeding import seeded
from ordisco.learner.state import TRACE, Setup, State
from ordisco.learner.step import gans_turn, train_step
from ordisco.maths.unlabeled import make_unlabeled_loss
from ordisco.nets.adam import Adam
from ordisco.nets.networks import Networks
from ordisco.settings.methods import method

pytestmark = pytest.mark.usefixtures("gradients_stay")


def test_a_whole_step_reaches_c_g_and_d_and_never_the_teacher():
    learner = ready(increments=2)
    learner.state.step = 2  # past the ramp of replay
    train_step(learner.setup, learner.state, learner.pools)
    assert touched(learner) == {"C", "G", "D"}
    assert not any(p.requires_grad for p in learner.state.nets.teacher.module.parameters())


def test_without_a_gan_there_is_nothing_but_c():
    learner = ready("smb")
    train_step(learner.setup, learner.state, learner.pools)
    assert [name for name, _ in learner.state.nets.named()] == ["C", "teacher"]
    assert touched(learner) == {"C"}


def test_ramps_run_within_the_increment(monkeypatch: pytest.MonkeyPatch):
    learner, seen = ready(increments=2, steps=4, consistency_weight=2.0, replay_weight=3.0, replay_ramp=0.5), []
    monkeypatch.setattr(step, "classifier_step", lambda *args: seen.append(tuple(args[-1])) or {})
    learner.state.total_steps = 4  # those of the first increment
    for _ in range(4):
        learner.step()
    assert [round(c / 2, 4) for c, _ in seen] == [0.0067, 0.2865, 1, 1]  # e⁻⁵, e^−1.25, 1, 1
    assert [r for _, r in seen] == [0, 1.5, 3, 3]


@pytest.mark.parametrize("name", ["ordisco", "smb", "jt", "offline-last"])
def test_the_rate_of_c_rises_and_falls_within_every_increment(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    learner, seen = make_learner(name, steps=4, c_warm_up=0.5, c_decay=0.5, moments="kept", offline_steps="equal"), []
    keep = Adam.step
    monkeypatch.setattr(Adam, "step", lambda self: seen.append((self.vector, self.lr * self.share)) or keep(self))
    for increment in (FIRST, SECOND):
        learner.learn(increment)
    of_c = [rate for vector, rate in seen if vector is learner.state.nets.C.flat.vector]
    assert of_c == [0.0015, 0.003, 0.003, 0.0015] * 2
    assert {rate for vector, rate in seen if vector is not learner.state.nets.C.flat.vector} <= {0.002}  # G and D


def test_d_then_g_then_c_and_several_d_steps(monkeypatch: pytest.MonkeyPatch):
    learner, order = ready(d_steps=3), []
    for name in ("discriminator_step", "generator_step", "classifier_step"):
        keep = getattr(step, name)
        monkeypatch.setattr(step, name, lambda *args, name=name, keep=keep: order.append(name[0]) or keep(*args))
    learner.step()
    assert order == ["d", "d", "d", "g", "c"]


@pytest.mark.parametrize(
    ("start", "every", "every_start", "turns"),
    [
        (0.0, 1, 0.0, "111111"),
        (0.0, 2, 0.0, "101010"),
        (0.0, 3, 0.0, "100100"),
        (0.0, 2, 0.5, "111010"),
        (0.0, 3, 1.0, "111111"),
        (0.5, 1, 0.0, "000111"),
        (0.3, 2, 0.0, "001010"),
        (0.3, 3, 0.8, "001110"),
    ],
)
def test_whose_turn_it_is(start: float, every: int, every_start: float, turns: str):
    assert "".join(str(int(gans_turn(t, 6, start, every, every_start))) for t in range(6)) == turns


@pytest.mark.parametrize("name", ["ordisco-last", "ordisco", "cgan+smb"])
def test_d_and_g_may_begin_late_in_an_increment(name: str, monkeypatch: pytest.MonkeyPatch):
    learner, order = ready(name, increments=2, steps=4, gan_start=0.5, replay_ramp=0.0), []
    for part in ("discriminator_step", "generator_step", "classifier_step"):
        keep = getattr(step, part)
        monkeypatch.setattr(step, part, lambda *args, part=part, keep=keep: order.append(part[0]) or keep(*args))
    for _ in range(4):
        learner.step()
    assert "".join(order) == "cc" + "dgc" * 2
    at = [TRACED.index(term) for term in step.OF_THE_GAN[:2]]
    assert not learner.state.trace[:2, at].any()  # no step of theirs has been
    assert learner.state.trace[2:4, at].all()


@pytest.mark.parametrize("name", ["ordisco", "cgan+smb", "offline-last"])
def test_d_and_g_step_with_every_second_step_of_c_after_a_while(name: str, monkeypatch: pytest.MonkeyPatch):
    changes = {"gan_every": 2, "gan_every_start": 0.5, "replay_ramp": 0.0, "d_steps": 2, "offline_steps": "equal"}
    learner = ready(name, increments=2, steps=6, **changes)
    learner.state.total_steps, order, replayed = 6, [], []
    for part in ("discriminator_step", "generator_step", "classifier_step"):
        keep = getattr(step, part)
        monkeypatch.setattr(step, part, lambda *args, part=part, keep=keep: order.append(part[0]) or keep(*args))
    learn = step.classifier_step
    monkeypatch.setattr(step, "classifier_step", lambda *args: replayed.append(args[4]) or learn(*args))
    for _ in range(6):
        learner.step()
    assert "".join(order) == "ddgc" * 3 + "c" + "ddgc" + "c"
    assert all((again is None) == (name == "cgan+smb") for again in replayed)
    at = [TRACED.index(term) for term in step.OF_THE_GAN]
    rows = learner.state.trace[:6, at]
    assert torch.equal(rows[3], rows[2])  # as they were
    assert torch.equal(rows[5], rows[4])
    assert not torch.equal(rows[4], rows[3])


@pytest.mark.parametrize("g_ema", [0.0, 0.9])
def test_between_the_steps_of_the_gan_g_replays_as_it_is(g_ema: float):
    learner = ready(increments=2, gan_every=2, g_ema=g_ema, replay_ramp=0.0)
    learner.state.step = 1
    before = weights(learner)
    train_step(learner.setup, learner.state, learner.pools)
    assert touched(learner) == {"C"}
    now = weights(learner)
    assert [key for key in now if key[0] in "GD" and not torch.equal(now[key], before[key])] == []


def test_in_every_d_step_and_for_c_the_teacher_sees_images_of_old_classes(monkeypatch: pytest.MonkeyPatch):
    learner = make_learner("ordisco", num_classes=4, d_steps=2, batch_labeled=12)
    learner.learn(increment_of([0, 1], [0, 1]))
    learner.begin(increment_of([2, 3], [2, 3], seed=1))
    old, seen, draw = [], [], Pools.draw

    def drawn(pools: Pools, *sizes: int) -> Batch:
        batch = draw(pools, *sizes)
        old.append(int((batch.labeled.y < 2).sum()))
        return batch

    monkeypatch.setattr(Pools, "draw", drawn)
    for module in (step, targets):  # for C and D's last step; for D's others
        teach = module.teach
        monkeypatch.setattr(module, "teach", lambda *args, teach=teach: seen.append(len(args[-1])) or teach(*args))
    learner.step()
    assert sorted(seen) == sorted(old)
    assert len(seen) == 2
    assert min(seen) > 0


def test_the_teachers_weights_follow_and_its_statistics_do_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()  # with the optimiser's steps
    learner = make_learner("smb", ema=0.6)
    learner.begin(FIRST)
    expected, before = None, weights(learner)["teacher.buffers"]
    with learner.random("test"):
        for t in range(4):
            learner.step()
            now, decay = weights(learner), min(0.6, 1 - 1 / (t + 1))  # 0, 1/2, 0.6, 0.6
            student = now["C.theta"]
            expected = student if expected is None else decay * expected + (1 - decay) * student
            torch.testing.assert_close(now["teacher.theta"], expected)
            assert torch.equal(now["teacher.buffers"], before)  # those of C belong to other weights
    assert learner.state.nets.C.module.training
    assert not any(module.training for module in learner.state.nets.teacher.module.modules())


@pytest.mark.parametrize("name", ["ordisco", "smb+umb+uc", "ewc-sl+ul", "offline-last", "ordisco-last"])
def test_a_step_needs_no_learner(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.undo()
    row, shape, device = method(name), (1, 8, 8), FABRIC.device
    setup = Setup(row, TINY, shape, 0, Augmentation(), make_unlabeled_loss(TINY.unlabeled), FABRIC)
    with seeded(device, 0, "init"):
        nets = Networks(TINY, shape, 3, row.head, row.gan, device)
    state = State(nets, Memories(row, TINY, shape, 3, device), trace=torch.zeros(TRACE, len(TRACED)))
    state.classes.add(FIRST.classes)
    nets.start_optimizers()
    nets.train()
    pools = lay_out(setup, state, FIRST)
    learner = make_learner(name, num_classes=3)
    learner.begin(FIRST)
    for count in range(2):
        terms = train_step(setup, state, pools)
        assert (state.step, state.total_steps) == (count, count)  # to be counted by the caller
        state.step, state.total_steps = count + 1, count + 1
        learner.step()
        row_of_trace = dict(zip(TRACED, learner.state.trace[count].tolist(), strict=True))
        assert {term: terms[term].item() if term in terms else 0.0 for term in TRACED} == row_of_trace
    mine = {
        f"{name}.{part}": vector
        for name, network in nets.named()
        for part, vector in (("theta", network.flat.theta), ("buffers", network.flat.buffers))
    }
    assert_same(mine, weights(learner))
