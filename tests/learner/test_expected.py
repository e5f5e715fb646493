"""A checkpoint whose checksums are right but whose content is not: refused in one line, before it is used."""

import json
import os
import shutil

import pytest
import torch

import ordisco
from conftest import make_learner
from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.learner.expected import check_forms, check_numbers, check_values, compare, expected
from ordisco.runs import checkpoint
from ordisco.settings.methods import METHODS
from ordisco.tensorfile import Form, TensorFile, forms_of
from tiny import arguments, call, one_line, without_figures


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run in the middle of its second increment."""
    path = tmp_path_factory.mktemp("stopped") / "run"
    assert main(arguments(path, "--max-steps", "8")) == 0
    return path


def changed(source, target, change):
    """A copy of a run whose only checkpoint was changed and written anew, with right checksums."""
    shutil.copytree(source, target)
    loaded = checkpoint.load_latest(target / "checkpoints")
    change(loaded.tensors, loaded.state)
    shutil.rmtree(target / "checkpoints")
    checkpoint.save(target / "checkpoints", 8, loaded.tensors, loaded.state)
    return target


def tensor(name, value):
    def change(tensors, state):
        tensors[name] = value(tensors[name]) if callable(value) else value

    return change


def number(name, value):
    return lambda tensors, state: state["learner"].update({name: value})


def remove(name):
    return lambda tensors, state: tensors.pop(name)


WRONG = {
    "C.adam.exp_avg_sq is float32 10, not": tensor("C.adam.exp_avg_sq", lambda old: old[:10]),
    "D.adam.exp_avg is float64": tensor("D.adam.exp_avg", lambda old: old.double()),
    "G.adam.step is float32 1, not float32 number": tensor("G.adam.step", lambda old: old[None]),
    "C.adam.exp_avg is missing": remove("C.adam.exp_avg"),
    "C.adam.exp_avg_sq is negative": tensor("C.adam.exp_avg_sq", lambda old: old - 1),
    "teacher.buffers is missing": remove("teacher.buffers"),
    "D.theta is float32": tensor("D.theta", lambda old: torch.cat([old, old])),
    "G.theta is not finite": tensor("G.theta", lambda old: old * float("nan")),
    "'C.more' is not part of the state of ORDisCo": tensor("C.more", torch.ones(1)),
    "trace is float32 1×8, not float32 50×8": tensor("trace", lambda old: old[:1]),
    "memories.penalty_on_D.importance is float32 3": tensor("memories.penalty_on_D.importance", torch.ones(3)),
    "memories.penalty_on_D.anchor is missing": remove("memories.penalty_on_D.anchor"),
    "memories.data.images is uint8": tensor("memories.data.images", lambda old: old[:, :, :4]),
    "memories.data.images is float32": tensor("memories.data.images", lambda old: old.float()),
    "memories.data.labels are not as many": tensor("memories.data.labels", lambda old: old[1:]),
    "memories.data.labels has 77, which is no class seen": tensor("memories.data.labels", lambda old: old * 0 + 77),
    "memories.data.labels has -1": tensor("memories.data.labels", lambda old: old * 0 - 1),
    "capacity is 10000000, not a whole number from": number("capacity", 10**7),
    "capacity is 5, not a whole number from 4 to 4": number("capacity", 5),
    "capacity is True": number("capacity", True),
    "increments is -1": number("increments", -1),
    "increments is 2, not a whole number from 0 to 1": number("increments", 2),
    "increments is 1.0": number("increments", 1.0),
    "step_in_increment is 8": number("step_in_increment", 8),
    "total_steps is 9, not a whole number from 8 to 8": number("total_steps", 9),
    "total_steps is None": number("total_steps", None),
    "memories.penalty_on_D.count is 2": tensor("memories.penalty_on_D.count", torch.tensor(2)),
    "classes has a class twice": number("classes", [0, 1, 2, 2]),
    "a class is 9": number("classes", [0, 1, 2, 9]),
    "a class is '1'": number("classes", [0, "1", 2, 3]),
    "the number of classes is 5": number("classes", [0, 1, 2, 3, 4]),
    "classes lacks 3": number("classes", [0, 1, 2]),
    "classes is 4, not a list": number("classes", 4),
    "classes_before is 5": number("classes_before", 5),
    "'more' is not part of a learner's state": number("more", 1),
    "capacity is missing": lambda tensors, state: state["learner"].pop("capacity"),
    "the learner's state is missing": lambda tensors, state: state.pop("learner"),
    "image_shape is not [1, 8, 8]": lambda tensors, state: state.update(image_shape=[1, 16, 16]),
    "metrics_size is -5": lambda tensors, state: state.update(metrics_size=-5),
    "seconds is not a number": lambda tensors, state: state.update(seconds="1"),
}


@pytest.mark.parametrize("message", WRONG)
@pytest.mark.slow
def test_a_wrong_checkpoint_is_refused_in_one_line(tmp_path, capsys, stopped, message):
    run = changed(stopped, tmp_path / "run", WRONG[message])
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert message in one_line(err)
    assert "step-0000000008 does not fit" in err


@pytest.mark.slow
def test_a_wrong_checkpoint_gives_way_to_the_one_before(tmp_path, capsys, monkeypatch, stopped):
    without_figures(monkeypatch)
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    loaded = checkpoint.load_latest(run / "checkpoints")
    loaded.tensors["C.adam.exp_avg"] = loaded.tensors["C.adam.exp_avg"][:3]
    checkpoint.save(run / "checkpoints", 9, loaded.tensors, loaded.state)
    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert "step-0000000009 does not fit and was skipped: C.adam.exp_avg is float32 3, not float32" in out
    assert "going on after step 8 of 12" in out


@pytest.mark.slow
def test_a_judge_and_a_learner_to_use_are_checked_too(tmp_path, capsys, stopped):
    for index, message in enumerate(
        ("C.adam.exp_avg_sq is float32 10", "capacity is 10000000", "memories.data.labels has 77")
    ):
        key = next(key for key in WRONG if key.startswith(message))
        bad = changed(stopped, tmp_path / f"bad{index}", WRONG[key])
        with pytest.raises(OrdiscoError, match="does not fit") as caught:
            ordisco.load_learner(bad)
        assert message in str(caught.value)
        code, _, err = call(capsys, *arguments(tmp_path / "new", "--judge", bad))
        assert code == 2
        assert message in one_line(err)
    bad = changed(stopped, tmp_path / "shape", lambda tensors, state: state.update(image_shape=[1, 8]))
    with pytest.raises(OrdiscoError, match="image_shape is not three whole numbers"):
        ordisco.load_learner(bad)


@pytest.mark.slow
def test_a_checkpoint_of_the_first_version_still_goes_on(tmp_path, capsys, monkeypatch, stopped):
    """It knows neither the settings nor the checksum of the metrics."""
    without_figures(monkeypatch)

    def forget(tensors, state):
        del state["settings"], state["metrics_sha256"]

    run = changed(stopped, tmp_path / "run", forget)
    text = (run / "settings.toml").read_text()
    (run / "settings.toml").write_text(text[text.index("\n") + 1 :])
    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert "going on after step 8 of 12" in out


# ---------------------------------------------------------------------- sizes before reading


def header(path, content, body=b""):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "damaged"),
        (b"[]", "damaged"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, "take 8 bytes, it has 4"),
        ({"x": {"dtype": "F32", "shape": [2**60], "data_offsets": [0, 8]}}, "the shape of x"),
        ({"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 8]}}, "the shape of x"),
        ({"x": {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}, "damaged"),
        ({"x": {"shape": [1]}}, "damaged"),
    ],
)
def test_a_header_is_checked_before_the_body_is_read(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        TensorFile(header(tmp_path / "file", content, b"1234"))


def test_a_header_that_is_too_long_is_not_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    os.truncate(path, 2**41)  # sparse
    with pytest.raises(ValueError, match="header is not whole"):
        TensorFile(path)
    path.write_bytes(b"123")
    with pytest.raises(ValueError, match="header is not whole"):
        TensorFile(path)


def test_a_huge_file_is_refused_by_its_header(tmp_path, capsys, stopped):
    """A terabyte of remembered images, as a sparse file, and a state of a gigabyte."""
    run = tmp_path / "run"
    shutil.copytree(stopped, run)
    older, path = sorted((run / "checkpoints").iterdir())
    shutil.rmtree(older)
    with TensorFile(path / "tensors.safetensors") as file:
        forms = dict(file.forms)
    forms["memories.data.images"] = Form((2**34, 1, 8, 8), torch.uint8)
    names, content, end = {torch.float32: "F32", torch.int64: "I64", torch.uint8: "U8", torch.int16: "I16"}, {}, 0
    for name, form in forms.items():
        start, end = end, end + torch.Size(form.shape).numel() * form.dtype.itemsize
        content[name] = {"dtype": names[form.dtype], "shape": list(form.shape), "data_offsets": [start, end]}
    file = header(path / "tensors.safetensors", content)
    os.truncate(file, file.stat().st_size + end)
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert "memories.data.images is uint8 17179869184×1×8×8, not uint8 0…" in one_line(err)
    os.truncate(path / "state.json", 2**30)
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert "state.json: it has 1,073,741,824 bytes" in one_line(err)


# ---------------------------------------------------------------------- what is expected


MORE = {"replay_targets": "both", "lecam": 0.1, "kept_precision": "16", "g_restart": "average", "d_penalty": 1.0}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *((name, {}) for name in METHODS),
        ("ordisco", MORE),
        ("offline-last", MORE),
        ("ordisco", MORE | {"kept_precision": "8"}),
    ],
)
def test_every_state_of_every_method_is_what_is_expected(name, more, tasks):
    """Before, within and after increments; with alignment and a moving average of G where there is one."""
    learner = make_learner(name, num_classes=2, steps=1, align="all", g_ema=0.5, **more)

    def check():
        tensors, state = learner.saved()
        whole = (learner.method, learner.settings, learner.image_shape, state)
        forms, wanted = forms_of(tensors), expected(*whole, learner.state.nets)
        check_forms(*whole, forms, nets=learner.state.nets)
        check_values(*whole, tensors)
        for key in (key for key, want in wanted.items() if want.needed):
            with pytest.raises(OrdiscoError, match=f"{key} is missing"):
                compare(wanted, {other: form for other, form in forms.items() if other != key}, learner.method)

    with learner.random("test"):
        check()
        for index in range(2):
            learner.begin(tasks[index])
            check()
            while not learner.done:
                learner.step()
                check()
            learner.finish()
            check()


def test_saved_generators_have_the_size_of_their_classes(tasks):
    learner = make_learner("offline-all", num_classes=2, steps=1)
    with learner.random("test"):
        for index in range(2):
            learner.learn(tasks[index])
    tensors, state = learner.saved()
    whole = (learner.method, learner.settings, learner.image_shape, state)
    bad = tensors | {"memories.generators.saved.0.theta": tensors["memories.generators.saved.0.theta"][1:]}
    check_forms(*whole, forms_of(bad), nets=learner.state.nets)  # only the values tell how large it must be
    with pytest.raises(OrdiscoError, match=r"memories.generators.saved.0.theta has \d+ numbers, not"):
        learner.load(bad, state)
    for wrong in ([[2, 4], [2, 99]], [[3, 4], [2, 4]], [[0, 4], [2, 4]]):
        with pytest.raises(OrdiscoError, match=r"memories.generators.saved.classes is"):
            learner.load(tensors | {"memories.generators.saved.classes": torch.tensor(wrong)}, state)


def test_penalties_and_reservoirs_are_counted(tasks):
    for name, key, value, message in (
        ("ewc-sl", "memories.penalty_on_C.count", torch.tensor(7), "memories.penalty_on_C.count is 7"),
        ("ewc-sl", "memories.penalty_on_C.count", torch.tensor(0), "memories.penalty_on_C.anchor is there"),
        ("smb+umb", "memories.umb.seen", torch.tensor(1), "memories.umb.seen is 1"),
    ):
        learner = make_learner(name, steps=1)
        learner.learn(tasks[0])
        tensors, state = learner.saved()
        with pytest.raises(OrdiscoError, match=message):
            make_learner(name, steps=1).load(tensors | {key: value}, state)


def test_a_learner_that_is_too_large_is_told(tasks):
    learner = make_learner("smb", num_classes=2, steps=1)
    learner.learn(tasks[0])
    with pytest.raises(OrdiscoError, match="room for 2 classes, not for 6"):
        make_learner("smb", num_classes=6, steps=1).load(*learner.saved())


def test_numbers_that_are_no_dict():
    for state in (None, [], 3):
        with pytest.raises(OrdiscoError, match="missing"):
            check_numbers(state)


def test_networks_made_anew_without_memory_have_the_same_forms(tasks):
    """As for a learner that is only to be used: nothing is built before the checkpoint is known to fit."""
    learner = make_learner("smb+umb+uc", num_classes=2, steps=1)
    learner.learn(tasks[0])
    learner.learn(tasks[1])  # has grown
    tensors, state = learner.saved()
    check_forms(learner.method, learner.settings, learner.image_shape, state, forms_of(tensors))


def test_moments_of_d_and_g_may_be_absent_where_they_begin_late_but_not_in_part(tasks):
    learner = make_learner("ordisco-last", num_classes=2, steps=2, gan_start=0.5)
    with learner.random("test"):
        learner.begin(tasks[0])
        for steps in (1, 2):
            learner.step()
            tensors, state = learner.saved()
            whole, forms = (learner.method, learner.settings, learner.image_shape, state), forms_of(tensors)
            assert ("D.adam.step" in forms) == (steps == 2)
            check_forms(*whole, forms, nets=learner.state.nets)
    for part in ("step", "exp_avg", "exp_avg_sq"):
        less = {key: form for key, form in forms.items() if key != f"G.adam.{part}"}
        with pytest.raises(OrdiscoError, match=f"G.adam.{part} is missing"):
            check_forms(*whole, less, nets=learner.state.nets)
