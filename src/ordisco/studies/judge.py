"""The judge of generated images (Table 4): a classifier trained jointly on all images of a stream with all labels.

It sees what no learner of the stream may see, so it judges and never teaches. It is kept as a run directory, so
`--judge` takes it too, and is trained once for the same images, New Instance or New Class.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import filelock
import torch

from ordisco import files
from ordisco.data.dataset import UNLABELED
from ordisco.errors import OrdiscoError
from ordisco.evaluation.accuracy import evaluate
from ordisco.files import told_in_one_line
from ordisco.learner.learner import Learner
from ordisco.machine.processes import make_fabric
from ordisco.runs import checkpoint
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory, without_none
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.machine import MachineSettings
from ordisco.settings.methods import method
from ordisco.streams.stream import Increment, Stream
from ordisco.words import percent

METHOD = "st"  # one increment, no memory: plain supervised training
BATCH, EPOCHS, LEAST_STEPS = 128, 10, 400

# The paper's 9-convolution classifier at a width for small images, the same for every method that is judged.
JUDGE = LearnerSettings().replace(
    batch_labeled=BATCH, c_width=32, dropout=0.3, c_lr=3e-3, ema=0.99, unlabeled_loss="none"
)


def all_labeled(stream: Stream) -> Increment:
    """Every image that the stream uses, with its true label; images whose class nobody knows are left out."""
    labels = stream.dataset.train.labels
    used = torch.from_numpy(stream.assignment >= 0) & (labels != UNLABELED)
    return Increment(stream.dataset.train.images[used], labels[used])


def judge_settings(images: int) -> LearnerSettings:
    """The judge's settings for so many images: a few passes over them."""
    return JUDGE.replace(steps=max(LEAST_STEPS, EPOCHS * images // BATCH))


def train_judge(stream: Stream, settings: LearnerSettings | None = None, threads: int | None = None) -> Learner:
    """A classifier of all images of the stream; its seed is the stream's."""
    return train_on(all_labeled(stream), stream, settings, threads)


def train_on(
    images: Increment, stream: Stream, settings: LearnerSettings | None = None, threads: int | None = None
) -> Learner:
    """A classifier of these images with their labels, trained as a judge of the stream is."""
    judge = Learner(
        method(METHOD),
        stream.num_classes,
        stream.image_shape,
        settings or judge_settings(len(images)),
        seed=stream.seed,
        translate=stream.dataset.translate,
        flip=stream.dataset.flip,
        fabric=make_fabric(MachineSettings(threads=threads)),
    )
    judge.learn(images)
    return judge


def cached_judge(config: RunConfig, stream: Stream, directory: Path) -> tuple[Path, float]:
    """Where the judge of a run's images is kept, trained if it is not there yet, and its accuracy on the test images.

    Another process that wants the same judge waits for it.
    """
    settings = judge_settings(int((stream.assignment >= 0).sum()))
    path = directory / judge_name(stream, settings)
    with told_in_one_line("create", directory):
        directory.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.name}.lock")
    files.refuse_foreign(directory, lock.name)
    with filelock.FileLock(lock):
        if not RunDirectory(path).summary_json.exists():
            started = time.monotonic()
            judge = train_judge(stream, settings, config.machine.threads)
            save_judge(path, config, stream, judge, time.monotonic() - started)
    summary = RunDirectory.open(path).summary_json
    try:
        return path, float(files.json_of(files.read_plain(summary))["test_accuracy"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OrdiscoError(f"{summary} is damaged, remove {path} to have the judge trained again: {error}") from error


def judge_name(stream: Stream, settings: LearnerSettings) -> str:
    """A name that is the same for the same images, settings and seed."""
    digest = hashlib.sha256(stream.dataset.checksum().encode())
    digest.update((stream.assignment >= 0).tobytes())
    digest.update(json.dumps(settings.to_dict(), sort_keys=True).encode())
    return f"{stream.dataset.name}-seed{stream.seed}-{digest.hexdigest()[:10]}"


def save_judge(path: Path, config: RunConfig, stream: Stream, judge: Learner, seconds: float) -> None:
    """Write the judge aside as a finished run, then rename."""
    files.remove_leftovers(path.parent, f"{path.name}.")  # of a process that was killed
    mine = RunConfig(config.stream_name, config.stream, METHOD, config.preset, stream.seed, learner=judge.settings)
    accuracy = evaluate(judge, stream.test_after(-1))
    with told_in_one_line("write", path), files.written_aside(path) as partial:
        with RunDirectory.create(partial, mine.to_dict(), stream.save) as run:
            tensors, state = judge.saved()
            place = {"learner": state, "image_shape": list(judge.image_shape), "settings": without_none(mine.to_dict())}
            checkpoint.save(run.checkpoints, judge.total_steps, tensors, place)
            facts = {"judge": True, "test_accuracy": accuracy, "seconds": round(seconds, 1)}
            run.write_text("summary.md", f"A judge of generated images: {percent(accuracy)} of the test images.\n")
            run.write_text("summary.json", json.dumps(facts, indent=2) + "\n")
        files.remove(path)  # no summary: a judge half removed by hand
