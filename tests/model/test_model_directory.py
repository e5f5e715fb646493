"""The directory of a model: versions, damage, two processes, a full disk, undo."""

import errno
import json
import os
import shutil
import signal
import sys

import filelock
import pytest

from deliveries import CPU, new_model, write_delivery
from ordisco import files
from ordisco.errors import OrdiscoError, OrdiscoWarning
from ordisco.learner.learner import Learner
from ordisco.model.directory import ModelDirectory
from ordisco.model.model import Model
from ordisco.report.terminal import SilentDisplay
from ordisco.runs.signals import Interrupted

VARYING = ("time", "seconds")


def content(path):
    """All that a model knows, but for times."""
    model = Model.open(path, CPU)
    tensors, values = model.learner.saved()
    history = [{key: value for key, value in record.items() if key not in VARYING} for record in model.history]
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}, values, history, model.about


def interrupted_at(monkeypatch, step, act):
    """Do something at a step, once."""
    original, calls = Learner.step, []

    def broken(self):
        original(self)
        calls.append(self)
        if len(calls) == step:
            act()

    monkeypatch.setattr(Learner, "step", broken)


@pytest.fixture(scope="module")
def learned_once(tmp_path_factory, two_days):
    path = tmp_path_factory.mktemp("learned") / "m"
    model = new_model(path)
    for day in two_days:
        model.learn(day, steps=2)
    return path


@pytest.fixture
def learned(tmp_path, learned_once):
    shutil.copytree(learned_once, tmp_path / "m")
    return tmp_path / "m"


class Told(SilentDisplay):
    """Keeps what is told."""

    def __init__(self, said):
        super().__init__(sys.stdout)
        self.message = said.append


def flip_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_the_last_three_versions_are_kept(tmp_path, learned):
    model = Model.open(learned, CPU)
    for seed in (3, 4):
        model.learn(write_delivery(tmp_path / str(seed), "ab", seed), steps=1)
    assert sorted(os.listdir(learned)) == [".lock", "history.jsonl", "model.toml", "versions"]
    assert sorted(os.listdir(learned / "versions")) == ["0002", "0003", "0004"]
    assert len((learned / "history.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("file", ["tensors.safetensors", "state.json"])
def test_a_damaged_version_falls_back_to_the_one_before(tmp_path, two_days, learned, file):
    flip_byte(learned / "versions" / "0002" / file)
    with pytest.warns(OrdiscoWarning, match="version 2 of .* is damaged .*version 1 is used"):
        model = Model.open(learned, CPU)
    assert (model.deliveries, model.classes) == (1, ["a", "b"])
    with pytest.warns(OrdiscoWarning):
        record = model.learn(two_days[1], steps=2)  # what was lost is no delivery learned already
    assert record["delivery"] == 2
    assert Model.open(learned, CPU).classes == ["a", "b", "c"]
    assert [json.loads(line)["delivery"] for line in (learned / "history.jsonl").read_text().splitlines()] == [1, 2]


def test_a_model_without_a_whole_version_is_refused(learned):
    for number in (1, 2):
        flip_byte(learned / "versions" / f"000{number}" / "state.json")
    with pytest.raises(OrdiscoError, match="no whole version is left"):
        Model.open(learned, CPU)


def test_a_newer_format_is_refused(learned):
    file = learned / "model.toml"
    file.write_text(file.read_text().replace("format = 1", "format = 2"))
    with pytest.raises(OrdiscoError, match="its format is 2, this version of ordisco reads 1: use a newer ordisco"):
        Model.open(learned, CPU)


@pytest.mark.parametrize("text", ["", "format = 1\nclasses = 3", "][", 'format = 1\nx = "y"'])
def test_a_broken_model_toml_is_one_line(learned, text):
    (learned / "model.toml").write_text(text)
    with pytest.raises(OrdiscoError, match=r"model\.toml: "):
        Model.open(learned, CPU)


def test_what_is_no_model_is_told(tmp_path):
    with pytest.raises(OrdiscoError, match="no model at"):
        Model.open(tmp_path / "nowhere")
    with pytest.raises(OrdiscoError, match="is not a model"):
        Model.open(tmp_path)
    (tmp_path / "x").touch()
    with pytest.raises(OrdiscoError, match="is not empty"):
        Model.create(tmp_path)


def test_a_link_inside_is_not_followed(tmp_path, learned):
    (learned / "history.jsonl").unlink()
    (learned / "history.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OrdiscoError, match="symbolic link"):
        Model.open(learned, CPU)


def test_two_processes_do_not_write_at_once(learned, two_days):
    with filelock.FileLock(learned / ".lock"):
        model = Model.open(learned, CPU)  # reading is free
        with pytest.raises(OrdiscoError, match="another process is writing into"):
            model.learn(two_days[0], steps=1, again=True)
        with pytest.raises(OrdiscoError, match="another process is writing into"):
            model.undo()


def test_a_model_that_another_process_has_changed_goes_on_from_there(tmp_path, learned):
    one, other = Model.open(learned, CPU), Model.open(learned, CPU)
    one.learn(write_delivery(tmp_path / "x", "ad", 5), steps=1)
    assert other.learn(write_delivery(tmp_path / "y", "ae", 6), steps=1)["delivery"] == 4
    assert other.classes == ["a", "b", "c", "d", "e"]


# ---------------------------------------------------------------------- going on


def stop():
    os.kill(os.getpid(), signal.SIGINT)


def crash():
    raise SystemError("as if the machine had died")


@pytest.mark.parametrize("act", [stop, crash])
def test_learning_goes_on_bit_for_bit(tmp_path, two_days, monkeypatch, act):
    whole, cut = new_model(tmp_path / "whole"), new_model(tmp_path / "cut")
    for model in (whole, cut):
        model.learn(two_days[0], steps=2)
    whole.learn(two_days[1], steps=6)
    monkeypatch.setattr("ordisco.model.training.SAVE_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        interrupted_at(patch, 4, act)
        with pytest.raises((Interrupted, SystemError)) as caught:
            cut.learn(two_days[1], steps=6)
    if act is stop:
        assert "stopped by Ctrl-C, all is saved; go on with: ordisco learn" in str(caught.value)
        assert caught.value.exit_code == 130
    assert Model.open(tmp_path / "cut", CPU).deliveries == 1
    steps = []
    with monkeypatch.context() as patch:
        original = Learner.step
        patch.setattr(Learner, "step", lambda self: (steps.append(self.step_in_increment), original(self))[1])
        Model.open(tmp_path / "cut", CPU).learn(two_days[1], steps=9, display=Told(said := []))
    assert "steps as planned when it began, not as given now" in said[0]
    assert "6 steps" in said[1]
    assert steps == ([4, 5] if act is stop else [3, 4, 5])
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert not (tmp_path / "cut" / "work").exists()


def test_ctrl_c_while_decoding_leaves_no_half_delivery(learned, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    delivery = write_delivery(tmp_path / "x", "ad", 5)
    with monkeypatch.context() as patch:
        patch.setattr("ordisco.model.reading.decode_into", interrupted)
        with pytest.raises(Interrupted, match="stopped while decoding, nothing is lost"):
            Model.open(learned, CPU).learn(delivery, steps=1)
    assert not (learned / "work").exists()
    assert Model.open(learned, CPU).learn(delivery, steps=1)["delivery"] == 3


def test_another_delivery_waits_for_the_one_under_way(tmp_path, two_days, monkeypatch):
    model = new_model(tmp_path / "m")
    with monkeypatch.context() as patch:
        interrupted_at(patch, 1, stop)
        with pytest.raises(Interrupted):
            model.learn(two_days[0], steps=3)
    with pytest.raises(OrdiscoError, match="monday is under way"):
        model.learn(two_days[1], steps=1)
    assert model.overview()["under_way"].endswith("monday")
    assert "dropped the delivery under way" in model.undo()
    assert model.learn(two_days[1], steps=1)["delivery"] == 1


@pytest.mark.parametrize("file", ["plan.json", "delivery.json", "images.u8", "checkpoints"])
def test_a_damaged_delivery_under_way_is_begun_again(tmp_path, two_days, monkeypatch, file):
    model = new_model(tmp_path / "m")
    with monkeypatch.context() as patch:
        interrupted_at(patch, 2, stop)
        with pytest.raises(Interrupted):
            model.learn(two_days[0], steps=3)
    path = tmp_path / "m" / "work" / file
    for damaged in path.rglob("*.json") if path.is_dir() else [path]:
        damaged.write_bytes(b"x")
    assert model.learn(two_days[0], steps=3)["steps"] == 3
    assert model.deliveries == 1


# ---------------------------------------------------------------------- a full disk


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["ordisco.files.write_durably", "ordisco.data.decoding.os.posix_fallocate"])
def test_a_full_disk_loses_nothing(tmp_path, learned, monkeypatch, place):
    before = content(learned)
    delivery = write_delivery(tmp_path / "x", "ad", 5)
    with monkeypatch.context() as patch:
        patch.setattr(place, no_space)
        with pytest.raises(OrdiscoError, match="No space left on device"):
            Model.open(learned, CPU).learn(delivery, steps=1)
    assert content(learned) == before
    assert Model.open(learned, CPU).learn(delivery, steps=1)["delivery"] == 3


def test_a_crash_between_version_and_history_is_mended(tmp_path, learned, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(ModelDirectory, "follow", lambda *args: crash())
        with pytest.raises(SystemError):
            Model.open(learned, CPU).learn(write_delivery(tmp_path / "x", "ad", 5), steps=1)
    model = Model.open(learned, CPU)
    assert (model.deliveries, model.classes) == (3, ["a", "b", "c", "d"])
    model.learn(write_delivery(tmp_path / "y", "ab", 6), steps=1)
    assert len((learned / "history.jsonl").read_text().splitlines()) == 4


# ---------------------------------------------------------------------- undo


def test_undo_is_the_state_before(tmp_path, learned, two_days):
    reference = new_model(tmp_path / "other")
    reference.learn(two_days[0], steps=2)
    assert "delivery 2" in Model.open(learned, CPU).undo()
    assert content(learned) == content(tmp_path / "other")
    assert files.read_plain(learned / "history.jsonl").count(b"\n") == 1
    assert Model.open(learned, CPU).learn(two_days[1], steps=1)["delivery"] == 2


def test_undo_ends_where_nothing_is_kept(tmp_path, learned):
    model = Model.open(learned, CPU)
    for seed in (3, 4):
        model.learn(write_delivery(tmp_path / str(seed), "ab", seed), steps=1)
    model.undo()
    model.undo()
    with pytest.raises(OrdiscoError, match="before delivery 2 is no longer kept: nothing to undo"):
        model.undo()


def test_all_is_undone_and_begun_anew(learned, two_days):
    model = Model.open(learned, CPU)
    model.undo()
    model.undo()
    assert (model.deliveries, model.classes) == (0, [])
    with pytest.raises(OrdiscoError, match="nothing to undo"):
        model.undo()
    with pytest.raises(OrdiscoError, match="has learned nothing yet"):
        model.predict(two_days[0])
    assert model.learn(two_days[1], steps=1)["new_classes"] == ["b", "c"]
