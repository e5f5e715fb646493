"""C′ as an ONNX file: uint8 images in, class probabilities out, any number at once, normalisation inside."""

from __future__ import annotations

import copy
import importlib
import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ordisco import __version__
from ordisco.data.pixels import normalize
from ordisco.errors import OrdiscoError
from ordisco.files import write_atomically
from ordisco.learner.learner import Learner

NEEDED = ("onnx", "onnxscript", "onnxruntime")
INPUT, OUTPUT = "images", "probabilities"
BATCHES = (1, 7)  # the numbers of images with which a file is checked
TOLERANCE = 1e-4  # of a probability


class Served(nn.Module):
    """What the file computes."""

    def __init__(self, classifier: nn.Module, classes: int) -> None:
        super().__init__()
        self.classifier, self.classes = classifier, classes

    def forward(self, images: Tensor) -> Tensor:
        """Probabilities (n, classes) of uint8 images (n, c, h, w)."""
        scores: Tensor = self.classifier(normalize(images))
        return scores[:, : self.classes].softmax(1)


def export_onnx(path: Path, learner: Learner, names: Sequence[str]) -> float:
    """Write C′ of a learner, whose classes have these names, once the file gives the same probabilities as C′.

    Gives the largest difference of a probability that was seen.
    """
    data, apart = onnx_bytes(learner, names)
    write_atomically(path, data)
    return apart


def onnx_bytes(learner: Learner, names: Sequence[str]) -> tuple[bytes, float]:
    """The file's content, made and checked, and how far it is from the learner."""
    check_installed()
    if not learner.classes:
        raise OrdiscoError("the model has learned nothing yet: there is nothing to export")
    if len(names) != len(learner.classes):
        raise ValueError(f"{len(names)} names of {len(learner.classes)} classes")
    module = served(learner)
    data = _exported(module, learner.image_shape, names)
    return data, check_same(data, module, learner.image_shape)


def served(learner: Learner) -> Served:
    """A copy of C′ on the CPU in 32 bits, with what stands before and after it."""
    return Served(copy.deepcopy(learner.state.nets.teacher.module).float().cpu(), len(learner.classes)).eval()


def check_installed() -> None:
    """Say how to install what is missing."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise OrdiscoError(
                f"export needs the package {name} ({error}): install it with pip install 'ordisco[onnx]'"
            ) from error


def check_same(data: bytes, module: nn.Module, image_shape: tuple[int, int, int]) -> float:
    """Compare the file, run by onnxruntime, with torch at two batch sizes; the largest difference of a probability."""
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    draws, most = torch.Generator().manual_seed(0), 0.0
    for batch in BATCHES:
        images = torch.randint(0, 256, (batch, *image_shape), dtype=torch.uint8, generator=draws)
        images[0] = 255
        with torch.no_grad():
            wanted = module(images)
        got = torch.from_numpy(session.run([OUTPUT], {INPUT: images.numpy()})[0])
        apart = float((got - wanted).abs().max()) if got.shape == wanted.shape else float("inf")
        if not apart <= TOLERANCE:
            raise OrdiscoError(
                f"the ONNX file differs from the model by {apart:.2g} in a probability of {batch} images, more than "
                f"{TOLERANCE}: nothing was written; try other versions of torch, onnxscript and onnxruntime"
            )
        most = max(most, apart)
    return most


def _exported(module: nn.Module, image_shape: tuple[int, int, int], names: Sequence[str]) -> bytes:
    example = torch.zeros((2, *image_shape), dtype=torch.uint8)
    with _quiet():
        program = torch.onnx.export(
            module,
            (example,),
            dynamo=True,
            verbose=False,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_shapes={"images": {0: torch.export.Dim("batch")}},
        )
    assert program is not None
    model: Any = program.model_proto
    for part in (model.graph, *model.graph.node, *model.graph.value_info, *model.graph.input, *model.graph.output):
        del part.metadata_props[:]  # torch's notes, with paths of this machine
        part.doc_string = ""
    model.producer_name, model.producer_version = "ordisco", __version__
    channels, height, width = image_shape
    colour = "grey" if channels == 1 else "RGB"
    facts = {
        "classes": json.dumps(list(names), ensure_ascii=False),
        "input": f"{INPUT}: uint8 (batch, {channels}, {height}, {width}), {colour}, 0 to 255",
        "output": f"{OUTPUT}: float32 (batch, {len(names)}), a column a class in the order of classes",
    }
    for key, value in facts.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    data: bytes = model.SerializeToString(deterministic=True)
    return data


@contextmanager
def _quiet() -> Iterator[None]:
    """Without torch's remarks on its own exporter."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
