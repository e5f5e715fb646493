"""Making a run ready: the stream, the learner and the directory, new or from a checkpoint."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.errors import OrdiscoError, OrdiscoWarning, UsageError, one_line
from ordisco.files import told_in_one_line
from ordisco.learner.checks import SIDES
from ordisco.learner.learner import Learner
from ordisco.machine.fabric import Fabric
from ordisco.machine.processes import make_fabric, start, together
from ordisco.report.terminal import Display
from ordisco.runs import checkpoint
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory
from ordisco.runs.place import fits_learner
from ordisco.runs.precision import check_precision
from ordisco.runs.run import Run
from ordisco.settings.machine import Accelerator, MachineSettings
from ordisco.settings.methods import method
from ordisco.streams import manifest
from ordisco.streams.build import build_stream
from ordisco.streams.stream import Stream

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

IMAGE_FIELDS = (
    "dataset",
    "num_classes",
    "classes",
    "data_seed",
    "grey",
    "contrast",
    "validation",
)  # what a judge must share


@contextmanager
def new_run(
    config: RunConfig, path: Path, display: Display, fabric: Fabric | None = None, stream: Stream | None = None
) -> Iterator[Run]:
    """A run in a new directory, which is locked until the block ends. All that can be wrong is found before."""
    fabric = fabric or start(config.machine)
    stream = stream or stream_of(config)
    judge = judge_of(config, stream)
    learner = make_learner(config, stream, fabric)
    logger = make_logger(config.machine, path)
    created = together(fabric, lambda: RunDirectory.create(path, config.to_dict(), stream.save))
    with created or RunDirectory(path) as directory, closing(logger):
        yield Run(config, directory, stream, learner, display, judge, logger)


@contextmanager
def resumed_run(path: Path, display: Display, fabric: Fabric | None = None) -> Iterator[Run]:
    """A run as its last checkpoint left it; needs nothing but the directory."""
    config = read_config(path)
    fabric = fabric or start(config.machine)
    locked = together(fabric, lambda: RunDirectory.resume(path))
    with locked or RunDirectory.open(path) as directory:
        stream = saved_stream(directory, config)
        learner = make_learner(config, stream, fabric)
        run = Run(config, directory, stream, learner, display, judge_of(config, stream))
        run.restore()
        run.logger = make_logger(config.machine, path, learner.total_steps)
        fabric.barrier()
        with closing(run.logger):
            yield run


def read_config(path: Path) -> RunConfig:
    """The settings of a run directory, unchanged but for what `runs.unchanged` allows."""
    directory = RunDirectory.open(path)
    before = (checkpoint.newest_state(directory.checkpoints) or {}).get("settings")
    values = directory.read_settings(before if isinstance(before, dict) else None)
    try:
        return RunConfig.from_dict(values)
    except OrdiscoError as error:
        raise OrdiscoError(f"{directory.settings_file}: {error}") from error


def make_learner(config: RunConfig, stream: Stream, fabric: Fabric) -> Learner:
    """A learner that fits the stream, in a precision that this machine can compute with."""
    check_precision(config.machine.precision, fabric, config.learner, stream.image_shape)
    return Learner(
        method(config.method),
        stream.num_classes,
        stream.image_shape,
        config.learner,
        seed=config.seed,
        translate=stream.dataset.translate,
        flip=stream.dataset.flip,
        fabric=fabric,
    )


def stream_of(config: RunConfig) -> Stream:
    """The stream that the configuration names."""
    size = config.stream.size
    if size is not None and size not in SIDES:
        raise UsageError(f"size = {size} is not allowed: the networks take {', '.join(str(side) for side in SIDES)}")
    data_dir = None if config.machine.data_dir is None else Path(config.machine.data_dir)
    stream = build_stream(config.stream, config.stream_name, config.seed, data_dir)
    if not len(stream.test_rows(0)):
        raise OrdiscoError(f"{stream.name} has no test images of the first classes, so nothing could be evaluated")
    return stream


def saved_stream(directory: RunDirectory, config: RunConfig) -> Stream:
    """The stream of a run, checked against its manifest: the same images, the same labels."""
    stream = stream_of(config)
    stream.check(directory.stream_file)
    return stream


def judge_of(config: RunConfig, stream: Stream) -> Learner | None:
    """The fixed classifier for generated images, out of the run directory that the settings name."""
    path = config.machine.judge
    if path is None:
        return None
    try:
        other, judge = read_config(Path(path)), load_learner(Path(path))
    except OrdiscoError as error:
        raise UsageError(f"judge = {path!r} is not allowed: a directory of a run is needed ({error})") from error
    for field in IMAGE_FIELDS:
        mine, its = getattr(config.stream, field), getattr(other.stream, field)
        if mine != its:
            raise UsageError(f"judge = {path!r} is not allowed: its {field} is {its}, that of the stream {mine}")
    if judge.image_shape != stream.image_shape:
        shapes = ("×".join(str(side) for side in shape) for shape in (judge.image_shape, stream.image_shape))
        raise UsageError("judge = {!r} is not allowed: it takes {} images, the stream has {}".format(path, *shapes))
    missing = set(stream.classes_after(-1)) - set(judge.classes)
    if missing:
        names = ", ".join(stream.dataset.classes[label] for label in sorted(missing))
        raise UsageError(f"judge = {path!r} is not allowed: it has not learned {names}; finish that run first")
    return judge


def load_learner(path: Path | str, accelerator: Accelerator = "auto") -> Learner:
    """The learner of a run directory as its last checkpoint left it, to predict and to sample."""
    config, directory = read_config(Path(path)), RunDirectory(Path(path))
    images = len(manifest.read(directory.stream_file).assignment)
    loaded = checkpoint.load_latest(directory.checkpoints, fits_learner(config, images))
    for line in loaded.skipped:
        warnings.warn(line, OrdiscoWarning, stacklevel=2)
    channels, height, width = loaded.state["image_shape"]
    machine = dataclasses.replace(MachineSettings(), accelerator=accelerator, precision=config.machine.precision)
    fabric = make_fabric(machine)
    check_precision(machine.precision, fabric, config.learner, (channels, height, width))
    learner = Learner(
        method(config.method),
        loaded.state["learner"]["capacity"],
        (channels, height, width),
        config.learner,
        seed=config.seed,
        fabric=fabric,
    )
    try:
        learner.load(loaded.tensors, loaded.state["learner"])
    except OrdiscoError as error:
        raise OrdiscoError(f"checkpoint {loaded.path} does not fit: {error}") from error
    return learner


def make_logger(machine: MachineSettings, path: Path, step: int | None = None) -> Logger | None:
    """TensorBoard where it is wanted; what was logged after `step`, to which a run went back, is hidden."""
    if not machine.tensorboard:
        return None
    if one_line(str(path)) != str(path):
        raise OrdiscoError(f"TensorBoard needs a path in UTF-8, not {path}: leave it out or choose another --out")
    try:
        from lightning_fabric.loggers.tensorboard import TensorBoardLogger

        return TensorBoardLogger(path, "tensorboard", "", purge_step=None if step is None else step + 1)
    except ModuleNotFoundError:
        raise OrdiscoError("tensorboard is not installed: pip install 'ordisco[tensorboard]'") from None


@contextmanager
def closing(logger: Logger | None) -> Iterator[None]:
    """Have everything written at the end, also after an error."""
    try:
        yield
    finally:
        if logger is not None:
            with told_in_one_line("log to", Path(logger.root_dir or "tensorboard")):
                logger.finalize("success")
