"""The learner: what survives an increment, equality with SMB, determinism, resuming, growth, odd input."""

import json
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes
from torch import Tensor

from conftest import TINY, assert_same, blobs, increment_of, make_learner, weights
from ordisco.errors import OrdiscoError
from ordisco.learner.generators import draw_noise
from ordisco.learner.learner import Learner, NonFiniteError
from ordisco.learner.memories import images_of_G
from ordisco.learner.state import TERMS, TRACE
from ordisco.nets.generator import Generator
from ordisco.nets.network import Network
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment, Stream

TEST = blobs([0, 1, 2, 3, 4, 5], seed=9)


def learned(stream: Stream, name: str, increments: int = 3, **changes: object) -> Learner:
    learner = make_learner(name, **changes)
    for index in range(increments):
        learner.learn(stream[index])
    return learner


def term(learner: Learner, name: str) -> list[float]:
    """The term's values in the steps of the last increment."""
    return learner.state.trace[: learner.settings.step.steps, TERMS.index(name)].tolist()


# ---------------------------------------------------------------------- penalties begin with the second increment


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        ("ordisco", "instances"),
        ("ordisco", "tasks"),
        ("ordisco-replay", "tasks"),
        ("ewc-sl", "instances"),
        ("ewc-sl+ul", "tasks"),
        ("si-sl", "tasks"),
        ("si-sl+ul", "instances"),
        ("mas-sl", "tasks"),
        ("mas-sl+ul", "instances"),
    ],
)
@pytest.mark.slow
def test_the_penalty_is_0_in_the_first_increment_and_positive_after(
    name: str, stream: str, request: pytest.FixtureRequest
):
    increments = request.getfixturevalue(stream)
    learner = make_learner(name, num_classes=2)
    for index in range(2):
        learner.learn(increments[index])
        values = term(learner, "penalty")
        assert values[0] == 0  # θ = θ* at the first step
        assert values[1:] == [0, 0] if index == 0 else min(values[1:]) > 0


def test_without_stabilisation_there_is_no_penalty(instances: Stream):
    learner = learned(instances, "ordisco-reg", 2)
    assert learner.state.memories.penalty_on_D is None
    assert term(learner, "penalty") == [0, 0, 0]


@pytest.mark.slow
def test_the_penalty_holds_d_back(instances: Stream):
    def moved(weight: float) -> float:
        learner = learned(instances, "ordisco", 1, d_penalty=weight)
        start = learner.state.nets.gan.D.flat.theta.clone()
        xi = learner.state.memories.penalty_on_D.vectors["importance"]
        important = xi > xi.median()
        learner.learn(instances[1])
        return (learner.state.nets.gan.D.flat.theta - start)[important].abs().sum().item()

    assert moved(1e4) < 0.7 * moved(0.0)


# ---------------------------------------------------------------------- with its parts off, ORDisCo is SMB


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("cgan+smb", {}),
        ("cgan+smb", {"align": "all"}),
        ("cgan+smb", {"align": "all", "unlabeled_loss": "fixmatch", "threshold": 0.0, "d_steps": 2}),
        ("cgan+smb", {"unlabeled_loss": "vat"}),
        ("ordisco-replay", {"d_steps": 2}),
        ("ordisco", {"replay_weight": 0.0, "d_penalty": 0.0}),
        ("ordisco", {"replay_weight": 0.0, "d_penalty": 0.0, "align": "all", "d_steps": 2}),
    ],
)
@pytest.mark.slow
def test_c_is_that_of_smb_bit_for_bit(name: str, changes: dict[str, object], tasks: Stream):
    alone, beside = make_learner("smb", 2, **changes), make_learner(name, 2, **changes)
    for increment in tasks:
        alone.learn(increment)
        beside.learn(increment)
        both = weights(beside)
        assert_same(weights(alone), {key: both[key] for key in weights(alone)})
    assert beside.has_generator
    assert term(beside, "generator") != [0, 0, 0]


def test_replay_does_change_c(instances: Stream):
    alone, beside = learned(instances, "smb", 1), learned(instances, "ordisco", 1)
    assert not torch.equal(alone.state.nets.C.flat.theta, beside.state.nets.C.flat.theta)


# ---------------------------------------------------------------------- random numbers


@pytest.mark.parametrize("name", ["ordisco", "smb+umb+uc"])
def test_the_seed_decides_everything(name: str, instances: Stream):
    def result(seed: int) -> dict[str, Tensor]:
        torch.rand(seed + 3)  # the caller's random numbers do not matter
        learner = learned(instances, name, 2, seed=seed, umb_size=7, steps=2)
        return {**weights(learner), **learner.state.memories.state()}

    first = result(0)
    assert_same(result(0), first)
    other = result(1)
    assert not any(torch.equal(first[key], other[key]) for key in first if key.endswith("theta"))


@pytest.mark.parametrize("name", ["ordisco", "smb+umb", "offline-last"])
def test_the_callers_random_state_is_left_alone(name: str, instances: Stream):
    def states() -> tuple[bytes, str, str]:
        return torch.get_rng_state().numpy().tobytes(), repr(np.random.get_state()), repr(random.getstate())

    before = states()
    learner = make_learner(name, num_classes=2, umb_size=None, steps=1)
    learner.learn(instances[0])
    learner.learn(instances[1])
    learner.predict(TEST)
    if learner.has_generator:
        learner.sample(torch.tensor([0, 1]))
    make_learner(name, num_classes=2, umb_size=None).load(*learner.saved())
    assert states() == before


# ---------------------------------------------------------------------- stopping and going on


def saved(learner: Learner) -> tuple[dict[str, Tensor], dict[str, object]]:
    """A state on its way through safetensors and JSON."""
    tensors, state = learner.saved()
    return from_bytes(to_bytes(tensors)), json.loads(json.dumps(state))


def everything(learner: Learner) -> dict[str, Tensor]:
    tensors, state = learner.saved()
    extra = {"scores": learner.scores(TEST), "state": torch.tensor(list(json.dumps(state).encode()))}
    if learner.has_generator:
        extra["samples"] = learner.sample(torch.tensor(learner.classes), seed=3)
    return {key: value.clone() for key, value in {**tensors, **extra}.items()}


RESUMED = [
    ("ordisco", {"d_steps": 2, "align": "all", "third_term": "expectation", "pseudo_real": 0.5}),
    ("ordisco", {"unlabeled_loss": "none", "d_head": "flat", "adversarial": "logistic"}),
    ("ordisco", {"lecam": 0.3, "d_colour": 0.5, "replay_trust": "teacher", "replay_view": "weak"}),
    ("ordisco", {"kept_precision": "16", "d_importance": "normalised", "g_restart": "average", "g_ema": 0.9}),
    ("ordisco", {"gan_net": "dcgan", "g_ema": 0.9, "replay_new": 0.5, "mismatched": 0.5, "d_translate": 1}),
    ("ordisco", {"unlabeled_loss": "fixmatch", "labeller": "teacher", "d_balance": True, "pseudo_threshold": 0.4}),
    ("ordisco-last", {"gan_start": 0.5, "g_ema": 0.9}),
    ("ordisco", {"gan_every": 2, "gan_every_start": 0.2, "c_decay": 0.5, "c_warm_up": 0.5, "replay_targets": "both"}),
    ("offline-all", {"gan_net": "dcgan", "g_ema": 0.9, "steps": 2}),
    ("smb+umb+uc", {"unlabeled_loss": "pi-model", "umb_size": 9}),
    ("si-sl", {"unlabeled_loss": "pseudo-label", "threshold": 0.3, "align": "all"}),
    ("ewc-sl+ul", {"unlabeled_loss": "vat"}),
    ("mas-sl", {}),
    ("jt", {"unlabeled_loss": "fixmatch", "threshold": 0.3}),
    ("offline-all", {"steps": 2}),
    ("offline-last", {"d_steps": 2, "steps": 2, "pseudo_real": 0.5}),
    ("ordisco-last", {"g_ema": 0.9, "d_steps": 2, "steps": 2, "pseudo_real": 0.5}),
    ("ordisco-last", {"d_restart": "fresh", "moments": "kept", "lecam": 0.1, "steps": 2}),
    ("ordisco+", {"umb_size": 9, "g_ema": 0.9, "g_restart": "average", "kept_precision": "16", "steps": 2}),
    ("ordisco+", {"umb_size": 9, "g_ema": 0.9, "kept_precision": "8", "steps": 2}),
    ("ordisco-mof", {"smb_size": 6, "c_net": "wrn-28", "c_width": 2, "steps": 2}),
]


@pytest.mark.parametrize(("name", "changes"), RESUMED, ids=[f"{n}-{'-'.join(c)}" for n, c in RESUMED])
@pytest.mark.slow
def test_a_resumed_learner_is_bit_identical_to_one_never_stopped(name: str, changes: dict[str, object], tasks: Stream):
    learner, states = make_learner(name, num_classes=2, **changes), []
    for index, increment in enumerate(tasks):
        if index == 2:
            states.append((index, None, saved(learner)))
        with learner.random("test"):
            learner.begin(increment)
            while not learner.done:
                if index == 1 and learner.step_in_increment == 1:
                    states.append((index, increment, saved(learner)))
                learner.step()
            learner.finish()
    expected = everything(learner)
    for index, increment, state in states:
        again = make_learner(name, num_classes=2, **changes)
        again.load(*state, increment)
        with again.random("test"):
            if increment is None:
                again.begin(tasks[index])
            for later in range(index, len(tasks)):
                if later > index:
                    again.begin(tasks[later])
                while not again.done:
                    again.step()
                again.finish()
        assert_same(everything(again), expected)


def test_beginning_again_before_the_first_step_changes_nothing(tasks: Stream):
    once, twice = learned(tasks, "smb+umb+uc", 1, num_classes=2), learned(tasks, "smb+umb+uc", 1, num_classes=2)
    twice.begin(tasks[1])
    again = make_learner("smb+umb+uc", num_classes=2)
    again.load(*saved(twice))  # as a run does that was stopped between two increments
    for learner in (once, again):
        learner.learn(tasks[1])
    assert_same(everything(again), everything(once))


def test_a_state_goes_back_in_time(tasks: Stream):
    learner = learned(tasks, "smb+umb+uc", 1)
    early = make_learner("smb+umb+uc")
    first = saved(early)
    learner.load(*first)
    assert learner.state.memories.old_features is None
    assert_same(weights(learner), weights(early))
    assert learner.classes == []


# ---------------------------------------------------------------------- classes


@pytest.mark.parametrize("name", ["ordisco", "smb+umb+uc", "ewc-sl", "mas-sl+ul", "offline-last", "ordisco-last"])
@pytest.mark.slow
def test_a_learner_grows_without_losing_what_it_knows(name: str, tasks: Stream):
    learner = make_learner(name, num_classes=2, steps=2)
    learner.learn(tasks[0])
    assert learner.state.nets.capacity == 2
    scores = learner.scores(TEST)
    samples = learner.sample(torch.tensor([0, 1, 1])) if learner.has_generator else None
    memories = learner.state.memories
    penalties = [penalty for penalty in (memories.penalty_on_C, memories.penalty_on_D) if penalty is not None]
    mass = [penalty.vectors["importance"].sum() for penalty in penalties]
    learner.begin(tasks[1])
    assert (learner.state.classes.before, learner.classes) == (2, [0, 1, 2, 3])
    assert learner.state.nets.capacity == 4
    torch.testing.assert_close(learner.scores(TEST)[:, :2], scores)
    if samples is not None:
        assert torch.equal(learner.sample(torch.tensor([0, 1, 1])), samples)
    for old, penalty in zip(mass, penalties, strict=True):
        importance, anchor = penalty.vectors["importance"], penalty.vectors["anchor"]
        torch.testing.assert_close(importance.sum(), old)  # new parameters matter for nothing yet
        network = learner.state.nets.C if penalty is memories.penalty_on_C else learner.state.nets.gan.D
        assert len(importance) == len(anchor) == len(network.flat.theta)
        assert torch.equal(anchor[importance > 0], network.flat.theta[importance > 0])
        assert penalty.value(network.flat.theta) == 0
    learner = learned(tasks, name, num_classes=2, steps=1)
    assert learner.classes == [0, 1, 2, 3, 4, 5]
    assert learner.predict_proba(TEST).shape == (6, 6)


def test_room_for_expected_classes_does_not_show_before_they_come(tasks: Stream):
    learner = learned(tasks, "ordisco", 1, num_classes=6)
    assert learner.predict_proba(TEST).shape == (6, 2)
    torch.testing.assert_close(learner.predict_proba(TEST).sum(1), torch.ones(6))
    assert set(learner.predict(TEST).tolist()) <= {0, 1}


@pytest.mark.slow
def test_labels_in_any_order_and_with_gaps():
    stream = [increment_of([7] * 3 + [12] * 3, [7, 12] * 5, seed=1), increment_of([3] * 3, [3] * 8, seed=2)]
    fit = {"steps": 30, "c_lr": 1e-2, "batch_labeled": 24, "dropout": 0.0, "ema": 0.9, "unlabeled_loss": "none"}
    learner = make_learner("cgan+smb", num_classes=1, **fit)
    for increment in stream:
        learner.learn(increment)
    assert learner.classes == [7, 12, 3]
    test, truth = blobs([3, 12, 7, 7, 3, 12], seed=5), [3, 12, 7, 7, 3, 12]
    assert learner.predict(test).tolist() == truth
    p = learner.predict_proba(test)
    assert [learner.classes[j] for j in p.argmax(1)] == truth
    assert learner.predict_slots(test).tolist() == [2, 1, 0, 0, 2, 1]
    assert learner.state.classes.slots_of(torch.tensor([3, 7, 12])).tolist() == [2, 0, 1]
    # the class-conditional rows of G: damage those of label 3 and only its samples change
    before = learner.sample(torch.tensor([3, 7, 12]), seed=1)
    learner.state.nets.gan.G.module.blocks[0].norm1.shift.data[2] += 5
    after = learner.sample(torch.tensor([3, 7, 12]), seed=1)
    assert [torch.equal(a, b) for a, b in zip(after, before, strict=True)] == [False, True, True]
    assert after.dtype == torch.uint8
    with pytest.raises(OrdiscoError, match=r"class 4 has not been seen; seen so far: \[7, 12, 3\]"):
        learner.sample(torch.tensor([3, 4]))


def test_samples_depend_on_their_seed_and_place_only(instances: Stream):
    learner = learned(instances, "ordisco", 1)
    labels = torch.tensor([0, 1, 2])
    assert torch.equal(learner.sample(labels, seed=1), learner.sample(labels, seed=1))
    assert not torch.equal(learner.sample(labels, seed=1), learner.sample(labels, seed=2))
    assert torch.equal(learner.sample(labels[:2], seed=1), learner.sample(labels, seed=1)[:2])
    many = learner.sample(torch.tensor([0] * 256 + [1]), seed=1)  # drawn in parts
    learner.state.nets.gan.G.module.blocks[0].norm1.shift.data[0] += 5
    again = learner.sample(torch.tensor([0] * 256 + [1]), seed=1)
    assert torch.equal(again[256], many[256])
    assert not torch.equal(again[0], many[0])


def test_predictions_are_those_of_the_teacher(instances: Stream):
    learner = learned(instances, "smb", 1)
    scores = learner.scores(TEST)
    learner.state.nets.C.flat.theta.fill_(float("nan"))
    assert torch.equal(learner.scores(TEST), scores)
    torch.testing.assert_close(learner.scores(TEST, batch=2), scores)
    assert learner.scores(TEST[:0]).shape == (0, 6)


def test_between_increments_there_is_nothing_to_learn(instances: Stream):
    learner = learned(instances, "smb", 1)
    other = make_learner("smb")
    other.begin(instances[0])
    other.load(*learner.saved())
    for idle in (make_learner("smb"), learner, other):
        assert idle.pools is idle.increment is None
        for call in (idle.step, idle.finish):
            with pytest.raises(OrdiscoError, match=r"call begin\(\) first"):
                call()
        assert idle.increments == (0 if idle.classes == [] else 1)


# ---------------------------------------------------------------------- increments that lack something


ODD = ["ordisco", "smb", "smb+umb+uc", "smb-mof", "ewc-sl", "mas-sl+ul", "si-sl", "offline-last", "ordisco-last", "jt"]


@pytest.mark.parametrize("name", ODD)
@pytest.mark.slow
def test_an_increment_without_unlabelled_images(name: str):
    learner = make_learner(name, align="all", steps=2)
    learner.learn(increment_of([0, 1, 2]))
    learner.learn(increment_of([0, 1, 2], seed=1))
    learner.learn(increment_of([0, 1, 2], [0, 1, 2], seed=2))
    assert learner.increments == 3
    assert learner.predict(TEST).shape == (6,)


@pytest.mark.parametrize("name", [*ODD[:4], "offline-last", "jt"])
def test_an_increment_without_labels_uses_those_remembered(name: str):
    learner = make_learner(name, align="all", steps=2)
    learner.learn(increment_of([0, 0, 1], [0, 1]))
    learner.begin(increment_of([], [0, 1, 1], seed=1))
    assert len(learner.pools.images) == 3
    torch.testing.assert_close(learner.pools.expected[-1], torch.tensor([2 / 3, 1 / 3]))
    learner.learn(increment_of([], [0, 1, 1], seed=1))
    assert learner.classes == [0, 1]


def test_theta_star_is_d_after_the_previous_increment_even_without_unlabelled_images():
    learner = make_learner("ordisco")
    learner.learn(increment_of([0, 1], [0, 1]))
    penalty = learner.state.memories.penalty_on_D
    xi = penalty.vectors["importance"].clone()
    learner.learn(increment_of([0, 1], seed=1))
    assert torch.equal(penalty.vectors["anchor"], learner.state.nets.gan.D.flat.theta)
    assert torch.equal(penalty.vectors["importance"], xi)
    assert penalty.count == 1


def bad_increments() -> dict[str, tuple[Increment, str]]:
    images, labels = blobs([0, 1], seed=0), torch.tensor([0, 1])
    return {
        "float": (Increment(images.float(), labels), r"torch.float32 images.*takes torch.uint8 of shape \(1, 8, 8\)"),
        "shape": (Increment(blobs([0, 1], 0, side=16), labels), r"shape \(1, 16, 16\)"),
        "channels": (Increment(blobs([0, 1], 0, channels=3), labels), r"shape \(3, 8, 8\)"),
        "empty": (Increment(images[:0], labels[:0]), "no images"),
        "float labels": (Increment(images, labels.float()), "one torch.int64 label an image"),
        "too many labels": (Increment(images, torch.tensor([0, 1, 2])), "one torch.int64 label an image"),
        "-2": (Increment(images, torch.tensor([0, -2])), "-1 where it is unknown"),
    }


@pytest.mark.parametrize("case", bad_increments())
def test_what_cannot_be_learned_is_refused_and_changes_nothing(case: str, instances: Stream):
    increment, message = bad_increments()[case]
    learner = learned(instances, "ordisco", 1, steps=1)
    before = everything(learner)
    with pytest.raises(OrdiscoError, match=message):
        learner.learn(increment)
    assert_same(everything(learner), before)
    learner.learn(instances[1])


@pytest.mark.parametrize(("name", "increments"), [("ordisco", 0), ("smb", 0), ("jt", 0), ("st", 1), ("ewc-sl", 1)])
def test_no_label_at_all_is_refused_and_changes_nothing(name: str, increments: int, instances: Stream):
    learner = learned(instances, name, increments)
    tensors, state = saved(learner)
    with pytest.raises(OrdiscoError, match="no labelled image and none is remembered: label at least one image"):
        learner.learn(increment_of([], [0, 1]))
    assert_same(saved(learner)[0], tensors)
    assert saved(learner)[1] == state


def test_what_cannot_be_predicted_is_refused(instances: Stream):
    with pytest.raises(OrdiscoError, match=r"learned nothing yet: call learn\(\) first"):
        make_learner("smb").predict(TEST)
    learner = learned(instances, "smb", 1)
    for images in (TEST.float(), blobs([0], 0, side=16)):
        with pytest.raises(OrdiscoError, match=r"takes torch\.uint8 of shape"):
            learner.predict(images)
    with pytest.raises(OrdiscoError, match="smb has no generator"):
        learner.sample(torch.tensor([0]))


@pytest.mark.parametrize("shape", [(2, 8, 8), (1, 12, 12), (3, 16, 8)])
def test_images_that_do_not_fit_are_refused(shape: tuple[int, int, int]):
    with pytest.raises(OrdiscoError, match="do not fit: 1 or 3 channels, square"):
        Learner(method("smb"), 3, shape, TINY)


@pytest.mark.parametrize("shape", [(3, 8, 8), (1, 16, 16), (3, 32, 32), (3, 64, 64)])
@pytest.mark.slow
def test_other_shapes_are_learned(shape: tuple[int, int, int]):
    learner = Learner(method("ordisco"), 2, shape, TINY.replace(steps=1, batch_unlabeled=2), flip=True, translate=2)
    images = blobs([0, 1, 0, 1], 0, shape[0], shape[1])
    learner.learn(Increment(images, torch.tensor([0, 1, -1, -1])))
    assert learner.sample(torch.tensor([0])).shape == (1, *shape)


# ---------------------------------------------------------------------- losses that are not finite


@pytest.mark.parametrize(
    ("network", "name"), [("C", "supervised"), ("teacher", "unlabeled"), ("G", "discriminator"), ("D", "discriminator")]
)
def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_term(network: str, name: str, instances: Stream):
    learner = make_learner("ordisco", replay_start=1.0)
    with learner.random("test"):
        learner.begin(instances[0])
        learner.step()
        learner.check_finite()
        dict(learner.state.nets.named())[network].flat.theta.fill_(float("nan"))
        learner.step()
    with pytest.raises(NonFiniteError, match=rf"the {name} loss is nan at step 2 of increment 1: lower the learning"):
        learner.finish()


def test_learn_stops_where_the_rate_is_absurd(instances: Stream, monkeypatch: pytest.MonkeyPatch):
    start = Network.start_optimizer  # a rate beyond what the settings allow
    monkeypatch.setattr(Network, "start_optimizer", lambda self, lr, betas, keep: start(self, 1e30, betas))
    learner = make_learner("smb")
    with pytest.raises(
        NonFiniteError, match=r"the (supervised|unlabeled) loss is (nan|inf) at step [23] of increment 1"
    ):
        learner.learn(instances[0])


def test_the_step_is_named_beyond_the_first_window_of_the_trace(instances: Stream):
    learner = make_learner("smb", steps=TRACE + 4)
    learner.begin(instances[0])
    learner.state.step = TRACE + 3
    learner.state.trace[2, TERMS.index("replay")] = float("inf")
    with pytest.raises(NonFiniteError, match=f"the replay loss is inf at step {TRACE + 3} "):
        learner.check_finite()


def test_a_long_increment_is_checked_on_its_way(instances: Stream, monkeypatch: pytest.MonkeyPatch):
    learner = make_learner("smb", steps=TRACE + 1)

    def step() -> None:
        learner.state.trace[learner.step_in_increment % TRACE] = float("nan") if learner.step_in_increment == 7 else 1.0
        learner.state.step += 1

    monkeypatch.setattr(learner, "step", step)
    with pytest.raises(NonFiniteError, match="at step 8 "):
        learner.learn(instances[0])
    assert learner.step_in_increment == TRACE


def test_mean_losses_are_over_the_last_steps():
    learner = make_learner("smb", steps=TRACE * 3)
    assert learner.mean_losses() == {}
    learner.state.trace[:, 0] = torch.arange(TRACE)
    for done, expected in ((1, 0.0), (3, 1.0), (TRACE, (TRACE - 1) / 2), (TRACE + 2, 0.5)):
        learner.state.step = done
        assert learner.mean_losses()["supervised"] == pytest.approx(expected)


# ---------------------------------------------------------------------- what is seen and what is kept

LABELS, REST = 6, 18  # of each increment of `instances`
IMAGE, LABEL = 64, 8 + 2  # bytes; a label with the increment that it came with


@pytest.mark.parametrize(
    ("name", "labeled", "unlabeled"),
    [
        ("jt", [6, 12, 18], [18, 36, 54]),
        ("st", [6, 6, 6], [18, 18, 18]),
        ("ewc-sl+ul", [6, 6, 6], [18, 18, 18]),
        ("smb", [6, 12, 18], [18, 18, 18]),
        ("smb-mof", [6, 12, 12], [18, 18, 18]),  # never more than smb_size = 12 − 6 of before
        ("smb+umb", [6, 12, 18], [18, 18 + 18, 18 + 25]),
        ("ordisco", [6, 12, 18], [18, 18, 18]),
        ("offline-last", [6, 12, 18], [18, 18, 18]),
    ],
)
@pytest.mark.slow
def test_what_a_method_sees(name: str, labeled: list[int], unlabeled: list[int], instances: Stream):
    learner = make_learner(name, umb_size=25, smb_size=6, steps=1)
    images: list[Tensor] = []
    for index, increment in enumerate(instances):
        images.append(increment.images)
        learner.begin(increment)
        assert (len(learner.pools.images), len(learner.pools.unlabeled)) == (labeled[index], unlabeled[index])
        # each image comes from the stream, with the label it was shown with
        seen = torch.cat(images) if name != "st" else increment.images
        for pool in (learner.pools.images, learner.pools.unlabeled):
            assert (pool.flatten(1)[:, None] == seen.flatten(1)).all(2).any(1).all()
        new = increment.labeled
        assert torch.equal(learner.pools.images[-LABELS:], new.images)
        assert torch.equal(learner.pools.slots[-LABELS:], learner.state.classes.slots_of(new.labels))
        learner.learn(increment)


def test_smb_grows_by_its_labels_only(instances: Stream):
    learner, before = make_learner("smb"), None
    for b, increment in enumerate(instances, 1):
        learner.learn(increment)
        kept = learner.bytes_kept()
        assert kept["labeled"] == b * LABELS * (IMAGE + LABEL)
        assert kept["unlabeled"] == kept["importance"] == kept["generators"] == kept["penalty"] == 0
        rest = {key: value for key, value in kept.items() if key != "labeled"}
        assert before in (None, rest)
        before = rest


@pytest.mark.slow
def test_ordisco_keeps_a_constant_apart_from_labels_and_offline_all_a_generator_an_increment(instances: Stream):
    ordisco, every, last = (make_learner(name, steps=1) for name in ("ordisco", "offline-all", "offline-last"))
    one = ordisco.bytes_kept()["G"]
    constant = set()
    for b, increment in enumerate(instances, 1):
        for learner in (ordisco, every, last):
            learner.learn(increment)
            assert learner.bytes_kept()["labeled"] == b * LABELS * (IMAGE + LABEL)
        kept = ordisco.bytes_kept()
        constant.add(sum(kept.values()) - kept["labeled"])
        assert kept["importance"] == ordisco.state.nets.gan.D.flat.theta.nbytes  # θ* is D
        assert kept["generators"] == 0
        assert every.bytes_kept()["generators"] == b * one
        assert last.bytes_kept()["generators"] == one
    assert len(constant) == 1


def test_joint_training_keeps_all(instances: Stream):
    learner = make_learner("jt", steps=1)
    for b, increment in enumerate(instances, 1):
        learner.learn(increment)
        assert learner.bytes_kept()["labeled"] == b * (LABELS + REST) * (IMAGE + LABEL)


@pytest.mark.parametrize(("name", "times"), [("smb+umb", 1), ("smb+4umb", 4)])
def test_the_umb_never_exceeds_its_budget(name: str, times: int, tasks: Stream):
    gan = TINY.gan
    budget = times * 4 * sum(p.numel() for p in Generator((1, 8, 8), 6, gan.g_width, gan.z_dim).parameters())
    learner = make_learner(name, steps=1, umb_size=None)
    assert learner.state.memories.umb.capacity == budget // IMAGE
    for index in range(12):
        learner.learn(tasks[index % 3])
        assert 0 < learner.state.memories.umb.images.nbytes <= budget
        assert learner.bytes_kept()["unlabeled"] == learner.state.memories.umb.images.nbytes // IMAGE * (IMAGE + 2)
    assert learner.state.memories.umb.seen == 12 * 18
    assert len(learner.state.memories.umb) == min(12 * 18, budget // IMAGE)


def test_a_budget_in_bytes_holds_whole_images_only():
    for times in (1, 0.1, 1e-9):
        G = Generator((3, 32, 32), 6, TINY.gan.g_width, TINY.gan.z_dim)
        weights = sum(p.numel() for p in G.parameters())
        scales = 2 * -(-weights // 64)  # of 8 bits, a block
        for bits in (8, 16, 32):  # as G is kept
            num_bytes = int(times * (weights * bits // 8 + (scales if bits == 8 else 0)))
            images = images_of_G(TINY.replace(kept_precision=str(bits)), (3, 32, 32), 6, times)
            assert images * 3072 <= num_bytes < (images + 1) * 3072
    assert images == 0


def test_a_fixed_umb_holds_so_many_images():
    assert make_learner("smb+umb-500", umb_size=None).state.memories.umb.capacity == 500
    assert make_learner("smb+umb-10000", umb_size=None).state.memories.umb.capacity == 10_000
    assert make_learner("smb+umb-500", umb_size=8).state.memories.umb.capacity == 8


def test_herding_keeps_a_fixed_number_with_equal_shares(instances: Stream):
    learner = learned(instances, "smb-mof", smb_size=13, steps=1)
    assert torch.bincount(learner.state.memories.data.labels).tolist() == [2] * 6


def test_classes_expected_among_unlabelled_images():
    learner = make_learner("smb", num_classes=4)
    learner.begin(increment_of([0, 1, 1, 1], [0, 1]))
    torch.testing.assert_close(learner.pools.expected, torch.tensor([[0.25, 0.75]]))
    learner.finish()
    learner.begin(increment_of([2, 2, 3, 2], [2, 3]))
    torch.testing.assert_close(learner.pools.expected, torch.tensor([[0, 0, 0.75, 0.25]]))  # of this increment alone


@pytest.mark.parametrize(("name", "increments"), [("jt", [0, 0, 1, 2, 2, 2]), ("smb+umb", [2, 2, 2, 0, 0, 1])])
def test_stored_images_are_expected_to_be_of_the_classes_that_they_came_with(name: str, increments: list[int]):
    learner = make_learner(name, num_classes=4)
    learner.learn(increment_of([0, 1, 1, 1], [0, 1]))
    learner.learn(increment_of([], [0]))  # without labels: of any class, by all labels
    learner.begin(increment_of([2, 2, 3, 2], [2, 3, 3], seed=1))
    expected = torch.tensor([[0.25, 0.75, 0, 0], [1 / 8, 3 / 8, 3 / 8, 1 / 8], [0, 0, 0.75, 0.25]])
    torch.testing.assert_close(learner.pools.expected, expected)
    assert learner.pools.increments.tolist() == increments
    seen = torch.cat([part.images[part.labels < 0] for part in (increment_of([0, 1, 1, 1], [0, 1]),)])
    stored = learner.pools.unlabeled[learner.pools.increments == 0]
    assert torch.equal(stored, seen)


@pytest.mark.parametrize(
    ("name", "changes", "passes"),
    [
        ("ordisco", {}, [1, 1, 1]),
        ("offline-all", {}, [1, 2, 3]),
        ("offline-all", {"offline_steps": "equal"}, [1, 1, 1]),
        ("ordisco", {"epochs": 2.5}, [3, 3, 3]),  # 24 images, 4 + 6 a step: 2.5 · 24 / 10 = 6 steps
        ("jt", {"epochs": 2.5, "joint_steps": 10}, [5, 5, 5]),
        ("jt", {"epochs": 2.5}, [3, 3, 3]),
    ],
)
def test_steps_of_an_increment(name: str, changes: dict[str, object], passes: list[int], instances: Stream):
    learner, done = make_learner(name, steps=2, **changes), 0
    for times, increment in zip(passes, instances, strict=True):
        learner.learn(increment)
        assert learner.total_steps - done == 2 * times
        done = learner.total_steps


def test_noise_is_normal_and_its_classes_uniform():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        z, y = draw_noise(4000, 3, 5, torch.device("cpu"))
    assert z.mean().item() == pytest.approx(0, abs=0.05)
    assert z.std().item() == pytest.approx(1, abs=0.05)
    assert torch.bincount(y).sub(800).abs().max() < 100  # standard deviation 25


def test_adams_moments_are_not_carried_over(instances: Stream):
    learner = learned(instances, "ordisco", 1)
    assert all(network.optimizer is None for _, network in learner.state.nets.named())
    learner.begin(instances[1])
    assert learner.state.nets.C.optimizer.moments == {}
    assert learner.bytes_kept()["moments"] == 0


@pytest.mark.parametrize("num_classes", [2, 6], ids=["grows", "has room"])
def test_adams_moments_are_carried_over_where_they_are_kept(num_classes: int, tasks: Stream):
    learner = make_learner("ordisco", num_classes=num_classes, moments="kept")
    learner.learn(tasks[0])
    nets = learner.state.nets
    before = {name: network.moments["exp_avg_sq"].clone() for name, network in nets.named() if network.moments}
    assert before.keys() == {"C", "G", "D"}
    assert learner.bytes_kept()["moments"] == sum(2 * moment.nbytes + 4 for moment in before.values())
    learner.begin(tasks[1])
    for name, network in nets.named():
        if name in before:
            kept, step = network.moments["exp_avg_sq"], network.moments["step"]
            assert step == learner.settings.step.steps
            assert kept.shape == network.flat.theta.shape
            assert kept.sum().item() == pytest.approx(before[name].sum().item())
    learner.step()
    assert nets.C.moments["step"] == learner.settings.step.steps + 1
