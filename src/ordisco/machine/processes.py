"""The processes of a run: device, precision, and data-parallel training that decides and speaks with one voice."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from lightning_fabric import Fabric

from ordisco.errors import OrdiscoError, UsageError
from ordisco.machine.allocator import keep_freed_memory
from ordisco.machine.cores import cores
from ordisco.settings.machine import MachineSettings

T = TypeVar("T")
FEW = 4  # data-parallel processes that a CPU may have even where it has fewer cores, to try things


def make_fabric(machine: MachineSettings) -> Fabric:
    """Device and precision as the settings say; processes are not started."""
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    keep_freed_memory()
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    try:
        with unasked_slurm():
            fabric = Fabric(
                accelerator=machine.accelerator,
                devices=machine.devices,
                precision=machine.precision,
                strategy="ddp" if machine.devices > 1 else "auto",
            )
    except (RuntimeError, ValueError) as error:
        available = "auto, cpu" + (", cuda" if torch.cuda.is_available() else "")
        first = (str(error).splitlines() or [repr(error)])[0]
        raise UsageError(
            f"accelerator = {machine.accelerator!r} with devices = {machine.devices} is not allowed on this machine, "
            f"which has {available}: {first}"
        ) from error
    most = max(FEW, cores())
    if fabric.device.type == "cpu" and machine.devices > most:
        raise UsageError(f"devices = {machine.devices} is not allowed: at most {most} processes on {cores()} cores")
    return fabric


@contextmanager
def unasked_slurm() -> Iterator[None]:
    """Without Fabric's hint, where Slurm is installed, that a program could be started by it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `srun` command is available")
        yield


def one_device() -> Fabric:
    """One GPU where there is one, else the CPU."""
    with unasked_slurm():
        return Fabric(accelerator="auto", devices=1)


def start(machine: MachineSettings) -> Fabric:
    """The same, with the processes of a data-parallel run started.

    Fabric starts them by running this program again with the same arguments, so whatever they have to agree
    on, such as the name of the directory, is decided by the first and broadcast.
    """
    fabric = make_fabric(machine)
    if machine.devices > 1:
        logging.getLogger("lightning_utilities.core.rank_zero").setLevel(logging.WARNING)
        fabric.launch()
        if machine.threads is not None:
            torch.set_num_threads(machine.threads)  # Fabric has shared out the cores
    return fabric


def together(fabric: Fabric, work: Callable[[], T]) -> T | None:
    """Do something in the first process only; where it fails, it fails for all."""
    result: T | None = None
    failure: OrdiscoError | None = None
    if fabric.is_global_zero:
        try:
            result = work()
        except OrdiscoError as error:
            failure = error
    failure = fabric.broadcast(failure)
    if failure is not None:
        raise failure
    return result
