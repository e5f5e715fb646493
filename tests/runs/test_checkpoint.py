"""Checkpoints: bit-exact round trip, two kept, damage and disk errors survived."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ordisco.errors import OrdiscoError
from ordisco.runs import checkpoint

STATE = {"step": 3, "rate": 0.1, "tiny": 5e-324, "list": [1, [True, None, "é\ud800"], {}], "minus": -0.0}


def bits(tensor):
    """The bytes of a tensor, so that NaN and −0 compare too."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).tolist()


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def flip_byte(path, where):
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.write_bytes(bytes(data))


def test_tensors_come_back_bit_for_bit(tmp_path):
    base = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
    tensors = {
        "base": base,
        "transposed": base.transpose(0, 2),
        "row": base[1],  # shares storage with base
        "expanded": torch.tensor([7.0]).expand(3, 5),
        "channels_last": torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "special": torch.tensor([float("nan"), float("inf"), -0.0, 1e-45]),
        "int64": torch.tensor([-(2**63), 2**63 - 1]),
        "uint8": torch.arange(256, dtype=torch.uint8),
        "bool": torch.tensor([[True, False]]),
        "zero_dim": torch.tensor(5),
        "empty": torch.empty(0, 3),
        "bfloat16": torch.randn(5).to(torch.bfloat16),
        "double": torch.tensor(0.1, dtype=torch.float64),
    }
    path = checkpoint.save(tmp_path, 123, tensors, STATE)
    loaded = checkpoint.load_latest(tmp_path)
    assert path == loaded.path == tmp_path / "step-0000000123"
    assert loaded.skipped == []
    assert loaded.tensors.keys() == tensors.keys()
    for name, tensor in tensors.items():
        back = loaded.tensors[name]
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape), name
        assert bits(back) == bits(tensor.detach()), name
        back.zero_()  # writable, and its own memory
    assert base[1, 0, 0] == 12


def test_the_same_content_gives_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        checkpoint.save(tmp_path / name, 1, {"x": torch.ones(3), "y": torch.zeros(2, dtype=torch.uint8)}, STATE)
    for file in ("tensors.safetensors", "state.json"):
        first, second = (tmp_path / name / "step-0000000001" / file for name in ("a", "b"))
        assert first.read_bytes() == second.read_bytes()


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(state=st.dictionaries(st.text(), trees))
@pytest.mark.slow
def test_state_comes_back_equal(tmp_path, state):
    with mock.patch("os.fsync"):  # for speed
        checkpoint.save(tmp_path, 1, {}, state)
    assert repr(checkpoint.load_latest(tmp_path).state) == repr(state)


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"a": [0.0, float("nan")]}, r"state\['a'\]\[1\] is nan"),
        ({"a": float("inf")}, r"state\['a'\] is inf"),
        ({"a": (1, 2)}, r"state\['a'\] is a tuple"),
        ({"a": {1: 2}}, r"state\['a'\] has the key 1"),
        ({"a": torch.ones(1)}, r"state\['a'\] is a Tensor"),
    ],
)
def test_state_that_json_would_change_is_refused(tmp_path, state, where):
    with pytest.raises((TypeError, ValueError), match=where):
        checkpoint.save(tmp_path, 1, {}, state)
    assert names(tmp_path) == []


def test_the_newest_two_are_kept_and_leftovers_go(tmp_path):
    (tmp_path / ".step-0000000009.partial").mkdir()
    (tmp_path / ".step-0000000009.partial" / "tensors.safetensors").write_bytes(b"half")
    for step in (5, 10, 15, 10_000_000_000):
        checkpoint.save(tmp_path, step, {"x": torch.tensor(step)}, {"step": step})
    assert names(tmp_path) == ["step-0000000015", "step-10000000000"]
    assert checkpoint.load_latest(tmp_path).tensors["x"] == 10_000_000_000


def test_saving_a_step_again_replaces_it_and_keeps_the_one_before(tmp_path):
    for step, value in ((1, 1), (2, 2), (2, 3), (2, 4)):
        checkpoint.save(tmp_path, step, {"x": torch.tensor(value)}, {})
        assert checkpoint.load_latest(tmp_path).tensors["x"] == value
    assert len(names(tmp_path)) == 2
    shutil.rmtree(checkpoint.load_latest(tmp_path).path)
    assert checkpoint.load_latest(tmp_path).tensors["x"] == 1


def truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("tensors.safetensors", lambda path: flip_byte(path, -1), "checksum of tensors.safetensors"),
        ("tensors.safetensors", truncate, "its tensors take 8 bytes, it has 7"),
        ("tensors.safetensors", Path.unlink, "No such file"),
        ("state.json", lambda path: path.write_bytes(b""), "not JSON"),
        ("state.json", lambda path: path.write_bytes(b"\xff"), "not JSON"),
        ("state.json", lambda path: path.write_bytes(b"[1]"), "no state"),
        (
            "state.json",
            lambda path: path.write_text(path.read_text().replace("0.1", "0.2")),
            "checksum of state",
        ),
        (
            "state.json",
            lambda path: path.write_text(path.read_text().replace('rmat": 3', 'rmat": 9')),
            "its format is 9, this version reads 3",
        ),
        ("state.json", Path.unlink, "No such file"),
    ],
)
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, file, damage, reason):
    for step in (1, 2):
        checkpoint.save(tmp_path, step, {"x": torch.tensor(step)}, STATE)
    damage(tmp_path / "step-0000000002" / file)
    loaded = checkpoint.load_latest(tmp_path)
    assert loaded.path.name == "step-0000000001"
    assert loaded.tensors["x"] == 1
    assert len(loaded.skipped) == 1
    assert "step-0000000002 is damaged" in loaded.skipped[0]
    assert reason in loaded.skipped[0]
    assert "\n" not in loaded.skipped[0]
    # a run that goes on from there does not keep the damaged one in the place of a good one
    checkpoint.save(tmp_path, 2, {"x": torch.tensor(20)}, STATE)
    again = checkpoint.load_latest(tmp_path)
    assert (again.tensors["x"], again.skipped, len(names(tmp_path))) == (20, [], 2)


def test_a_file_that_is_not_safetensors_is_damage_too(tmp_path):
    path = checkpoint.save(tmp_path, 1, {"x": torch.ones(2)}, {})
    content = json.loads((path / "state.json").read_text())
    content["tensors_sha256"] = checkpoint.hashlib.sha256(b"junk").hexdigest()
    (path / "state.json").write_text(json.dumps(content))
    (path / "tensors.safetensors").write_bytes(b"junk")
    with pytest.raises(OrdiscoError, match=r"no whole checkpoint .* cannot be read"):
        checkpoint.load_latest(tmp_path)


@pytest.mark.parametrize("directory", ["empty", "absent"])
def test_no_checkpoint_is_one_line(tmp_path, directory):
    (tmp_path / "empty").mkdir()
    with pytest.raises(OrdiscoError, match=r"no checkpoint in .*") as caught:
        checkpoint.load_latest(tmp_path / directory)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "nth"),
    [("mkdir", 2), ("write", 1), ("write", 2), ("fsync", 1), ("fsync", 2), ("fsync", 3), ("replace", 1)],
)
def test_a_disk_error_anywhere_keeps_the_last_good_checkpoint(tmp_path, monkeypatch, call, nth):
    checkpoint.save(tmp_path, 1, {"x": torch.ones(100)}, {"a": 1})
    real, calls = getattr(os, call), []

    def failing(*args, **options):
        calls.append(args)
        if len(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **options)

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OrdiscoError, match="No space left") as caught:
        checkpoint.save(tmp_path, 2, {"x": torch.zeros(100)}, {"a": 2})
    monkeypatch.undo()
    message = str(caught.value)
    assert str(tmp_path) in message
    assert "last good checkpoint is kept" in message
    assert "\n" not in message
    assert names(tmp_path) == ["step-0000000001"]
    assert checkpoint.load_latest(tmp_path).state == {"a": 1}


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save(tmp_path, 1, {"x": torch.ones(3)}, {})
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_real_size_limit_of_the_system(tmp_path):
    code = f"""
import resource, torch
from pathlib import Path
from unittest import mock
from ordisco.runs import checkpoint
from ordisco import errors
torch.set_num_threads(1)
d = Path({str(tmp_path)!r})
checkpoint.save(d, 1, {{"x": torch.ones(10)}}, {{"a": 1}})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    checkpoint.save(d, 2, {{"x": torch.ones(10_000)}}, {{"a": 2}})
except errors.OrdiscoError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        f"cannot write a checkpoint into {tmp_path}: File too large; the last good checkpoint is kept\n"
    )
    assert names(tmp_path) == ["step-0000000001"]
    assert checkpoint.load_latest(tmp_path).state == {"a": 1}


def test_a_place_that_cannot_be_a_directory(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OrdiscoError, match=r"cannot write a checkpoint into .*there is no checkpoint yet"):
        checkpoint.save(tmp_path / "file" / "checkpoints", 1, {}, {})
    with pytest.raises(OrdiscoError, match="no checkpoint in"):
        checkpoint.load_latest(tmp_path / "file" / "checkpoints")


def test_a_checkpoint_of_an_earlier_version_is_named(tmp_path):
    checkpoint.save(tmp_path, 1, {"x": torch.tensor(1)}, STATE)
    file = tmp_path / "step-0000000001" / "state.json"
    file.write_text(file.read_text().replace('rmat": 3', 'rmat": 1'))
    with pytest.raises(OrdiscoError, match=r"step-0000000001 was written by ordisco 0\.1\.0.*start the run again"):
        checkpoint.load_latest(tmp_path)
