"""One thread, and small things to learn from: settings, streams and learners that take milliseconds."""

import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ordisco.data.dataset import Dataset, Split
from ordisco.data.unread import Unread, whole
from ordisco.evaluation.record import IncrementRecord
from ordisco.learner.learner import Learner
from ordisco.machine.fabric import OneProcess
from ordisco.nets.network import Network
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import method
from ordisco.streams.arrange import new_class, new_instance
from ordisco.streams.stream import Increment, Stream

torch.set_num_threads(1)
# A shell starts what runs in the background with Ctrl-C ignored; some tests send it to themselves.
signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = LearnerSettings().replace(
    steps=3,
    batch_labeled=4,
    batch_unlabeled=6,
    batch_generated=5,
    c_width=4,
    dropout=0.2,
    g_width=4,
    d_width=4,
    z_dim=4,
    d_tail=1,
    d_steps=1,
    g_lr=2e-3,
    d_lr=2e-3,
    importance_chunk=64,
    umb_size=30,
)
FABRIC = OneProcess(torch.device("cpu"))


def blobs(labels: Iterable[int], seed: int, channels: int = 1, side: int = 8) -> Tensor:
    """Noisy uint8 images with bright rows or columns whose number tells the class."""
    labels = list(labels)
    noise = torch.randint(0, 90, (len(labels), channels, side, side), generator=torch.Generator().manual_seed(seed))
    for image, label in zip(noise, labels, strict=True):
        (image if label % 2 else image.transpose(1, 2))[:, : 1 + label // 2] += 150
    return noise.to(torch.uint8)


def blob_dataset(classes: int = 6, per_class: int = 12) -> Dataset:
    """A data set of such images: `per_class` of each class to train on, 4 to test on."""

    def split(count: int, seed: int) -> Split:
        labels = torch.arange(classes).repeat(count)
        return Split(blobs(labels.tolist(), seed), labels)

    return Dataset("blobs", tuple("abcdefghijkl"[:classes]), split(per_class, 0), split(4, 1), flip=False, translate=1)


def unread_blobs() -> Unread:
    """The same before it is read."""
    data = blob_dataset()
    return Unread(data.name, data.classes, whole(data.train), whole(data.test), data.flip, data.translate)


def increment_of(labels: Iterable[int], unlabeled: Iterable[int] = (), seed: int = 0) -> Increment:
    """Labelled images of the given classes, then unlabelled ones of the given classes."""
    labels, unlabeled = list(labels), list(unlabeled)
    return Increment(blobs([*labels, *unlabeled], seed), torch.tensor([*labels, *(-1 for _ in unlabeled)]))


def record_of(increment: int, accuracy: float, **more: object) -> IncrementRecord:
    """The record of an increment of two classes."""
    known: dict[str, object] = {
        "classes_seen": 2,
        "images": 10,
        "labeled": 4,
        "per_class": {},
        "pseudo_label_accuracy": None,
        "trusted_share": None,
        "trusted_accuracy": None,
        "penalty_ratio": None,
        "generated_accuracy": None,
        "confusion": [[1, 0], [0, 1]],
        "seconds": 1.0,
        "total_seconds": 1.0,
        "peak_memory_bytes": None,
        "kept_bytes": 100,
        "kept": {"C": 100},
    }
    return IncrementRecord(increment, accuracy=accuracy, **{**known, **more})


def make_learner(name: str = "ordisco", num_classes: int = 6, seed: int = 0, **changes: object) -> Learner:
    """A learner of 8×8 grey images with tiny networks."""
    return Learner(method(name), num_classes, (1, 8, 8), TINY.replace(**changes), seed=seed, fabric=FABRIC)


def learn_without_checks(learner: Learner) -> None:
    """All steps of the increment under way, not finished."""
    with learner.random("learn"):
        while not learner.done:
            learner.step()


def weights(learner: Learner) -> dict[str, Tensor]:
    """A copy of the parameters and float buffers of every network."""
    return {
        f"{name}.{part}": vector.clone()
        for name, network in learner.state.nets.named()
        for part, vector in (("theta", network.flat.theta), ("buffers", network.flat.buffers))
    }


def assert_same(a: dict[str, Tensor], b: dict[str, Tensor]) -> None:
    """Bit for bit."""
    assert a.keys() == b.keys()
    assert [key for key in a if not torch.equal(a[key], b[key])] == []


@pytest.fixture
def gradients_stay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No optimiser step, so that a test can look at the gradients; and random numbers of its own."""
    monkeypatch.setattr(Network, "step", lambda self: None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(scope="session")
def instances() -> Stream:
    """New Instance: 3 increments, each with one label of each of 6 classes and 18 unlabelled images."""
    return new_instance(blob_dataset(), increments=3, labels_per_class=1)


@pytest.fixture(scope="session")
def tasks() -> Stream:
    """New Class: 3 tasks of 2 classes, each with 6 labels and 18 unlabelled images."""
    return new_class(blob_dataset(), increments=3, labels_per_class=1)


@pytest.fixture(scope="session")
def two_days(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two deliveries of PNG files: monday has the classes a and b, tuesday b and c."""
    from deliveries import write_delivery

    root = tmp_path_factory.mktemp("days")
    return write_delivery(root / "monday", "ab", 1), write_delivery(root / "tuesday", "bc", 2)
