"""The ONNX file computes what C′ computes, for any number of images, and says what it is."""

import json
from pathlib import Path

import pytest
import torch

from conftest import blobs, increment_of, make_learner
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.model import onnx_file
from ordisco.model.onnx_file import export_onnx, onnx_bytes, served

NAMES = ["Schuh", "boot, high", "靴"]


@pytest.fixture(scope="module")
def learner() -> Learner:
    made = make_learner("smb")
    made.learn(increment_of([4, 1, 2, 4, 1, 2], [1, 2, 4]))
    return made


@pytest.fixture(scope="module")
def content(learner: Learner) -> bytes:
    """Exporting takes seconds."""
    for name in onnx_file.NEEDED:
        pytest.importorskip(name)
    return onnx_file._exported(served(learner), learner.image_shape, NAMES)


@pytest.mark.slow
def test_the_file_gives_the_probabilities_of_the_learner(
    learner: Learner, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    onnx, onnxruntime = (pytest.importorskip(name) for name in ("onnx", "onnxruntime"))
    monkeypatch.setattr(onnx_file, "_exported", lambda *args: content)
    path = tmp_path / "new" / "model.onnx"
    export_onnx(path, learner, NAMES)
    assert [file.name for file in path.parent.iterdir()] == ["model.onnx"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (images_in,), (probabilities_out,) = session.get_inputs(), session.get_outputs()
    assert (images_in.type, images_in.shape) == ("tensor(uint8)", ["batch", 1, 8, 8])
    assert probabilities_out.shape == ["batch", 3]
    for count in (1, 2, 33):
        images = blobs([1] * count, seed=count)
        got = session.run(None, {images_in.name: images.numpy()})[0]
        assert torch.allclose(torch.from_numpy(got), learner.predict_proba(images), atol=1e-5)
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == NAMES
    onnx.checker.check_model(onnx.load(path), full_check=True)
    assert str(Path(torch.__file__).parent).encode() not in path.read_bytes()  # no path of the machine


@pytest.mark.slow
def test_a_file_that_differs_is_not_written(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = make_learner("smb", seed=1)
    other.learn(increment_of([4, 1, 2, 4, 1, 2], [1, 2, 4]))
    path = tmp_path / "model.onnx"
    path.write_bytes(b"the one before")
    monkeypatch.setattr(onnx_file, "_exported", lambda *args: content)
    with pytest.raises(OrdiscoError, match="differs from the model by"):
        export_onnx(path, other, NAMES)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"the one before"]


def test_a_missing_package_is_named(learner: Learner, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(onnx_file, "NEEDED", ("torch", "no_such_package"))
    with pytest.raises(OrdiscoError, match=r"no_such_package .*: install it with pip install 'ordisco\[onnx\]'"):
        onnx_bytes(learner, NAMES)


def test_nothing_learned_is_nothing_to_export():
    for name in onnx_file.NEEDED:
        pytest.importorskip(name)
    with pytest.raises(OrdiscoError, match="nothing to export"):
        onnx_bytes(make_learner("smb"), [])
