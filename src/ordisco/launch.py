"""Making a run ready: the machine, the stream, the learner and the directory, new or from a checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric

from ordisco import checkpoint
from ordisco.config import MachineSettings, RunConfig
from ordisco.errors import OrdiscoError
from ordisco.learner import Learner
from ordisco.methods import method
from ordisco.progress import Display
from ordisco.run import Run
from ordisco.rundir import RunDirectory
from ordisco.scenarios import build_stream
from ordisco.stream import Stream


def make_fabric(machine: MachineSettings, log_dir: Path | None = None) -> Fabric:
    """Device, precision and processes as the settings say."""
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    loggers: list[Any] = []
    if machine.tensorboard and log_dir is not None:
        try:
            from lightning_fabric.loggers.tensorboard import TensorBoardLogger

            loggers = [TensorBoardLogger(log_dir, name="tensorboard", version="")]
        except ModuleNotFoundError:
            raise OrdiscoError("tensorboard is not installed: pip install 'ordisco[tensorboard]'") from None
    try:
        return Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices,
            precision=machine.precision,  # type: ignore[arg-type]
            strategy="ddp" if machine.devices > 1 else "auto",
            loggers=loggers,
        )
    except (RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise OrdiscoError(f"cannot use {machine.devices} × {machine.accelerator}: {first}") from error


def make_learner(config: RunConfig, stream: Stream, fabric: Fabric) -> Learner:
    """A learner that fits the stream."""
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
    data_dir = None if config.machine.data_dir is None else Path(config.machine.data_dir)
    return build_stream(config.stream, config.stream_name, config.seed, data_dir)


@contextmanager
def new_run(config: RunConfig, path: Path, display: Display, stream: Stream | None = None) -> Iterator[Run]:
    """A run in a new directory, which is locked until the block ends."""
    stream = stream or stream_of(config)
    judge = judge_of(config, stream)
    fabric = make_fabric(config.machine, path)
    if config.machine.devices > 1:
        fabric.launch()
    learner = make_learner(config, stream, fabric)
    directory = (
        RunDirectory.create(path, config.to_dict(), stream.save) if fabric.is_global_zero else RunDirectory(path)
    )
    with directory:
        fabric.barrier()
        yield Run(config, directory, stream, learner, display, judge)


@contextmanager
def resumed_run(path: Path, display: Display) -> Iterator[Run]:
    """A run as its last checkpoint left it; needs nothing but the directory."""
    config = RunConfig.from_dict(RunDirectory.open(path).read_settings())
    fabric = make_fabric(config.machine, path)
    if config.machine.devices > 1:
        fabric.launch()
    directory = RunDirectory.resume(path) if fabric.is_global_zero else RunDirectory.open(path)
    with directory:
        stream = saved_stream(directory, config)
        run = Run(config, directory, stream, make_learner(config, stream, fabric), display, judge_of(config, stream))
        run.restore()
        fabric.barrier()
        yield run


def saved_stream(directory: RunDirectory, config: RunConfig) -> Stream:
    """The stream of a run, checked against its manifest: the same images, the same labels."""
    stream = stream_of(config)
    saved = Stream.load(directory.stream_file, stream.dataset)
    if saved.manifest().fingerprint() != stream.manifest().fingerprint():
        raise OrdiscoError(f"{directory.stream_file} is not the stream that {directory.settings_file} describes")
    return stream


def judge_of(config: RunConfig, stream: Stream) -> Learner | None:
    """The fixed classifier for generated images, out of the run directory that the settings name."""
    if config.machine.judge is None:
        return None
    judge = load_learner(Path(config.machine.judge))
    if judge.image_shape != stream.image_shape:
        raise OrdiscoError(
            f"judge = {config.machine.judge}: its images have shape {judge.image_shape}, "
            f"those of the stream {stream.image_shape}"
        )
    return judge


def load_learner(path: Path) -> Learner:
    """The learner of a run directory as its last checkpoint left it, to predict and to sample."""
    directory = RunDirectory.open(path)
    config = RunConfig.from_dict(directory.read_settings())
    loaded = checkpoint.load_latest(directory.checkpoints)
    for line in loaded.skipped:
        warnings.warn(line, stacklevel=2)
    shape = loaded.state["image_shape"]
    learner = Learner(
        method(config.method),
        loaded.state["learner"]["capacity"],
        (shape[0], shape[1], shape[2]),
        config.learner,
        seed=config.seed,
        fabric=make_fabric(MachineSettings(accelerator=config.machine.accelerator)),
    )
    learner.load(loaded.tensors, loaded.state["learner"])
    return learner
