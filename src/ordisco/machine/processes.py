"""The processes of a run: device, precision, and data-parallel training that decides and speaks with one voice."""

from __future__ import annotations

import atexit
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import torch
import torch.distributed as dist

from ordisco.errors import OrdiscoError, UsageError
from ordisco.machine.allocator import keep_freed_memory
from ordisco.machine.cores import cores
from ordisco.machine.environment import started_by
from ordisco.machine.fabric import Fabric, OneProcess, device_of
from ordisco.settings.machine import MachineSettings

if TYPE_CHECKING:
    from lightning_fabric import Fabric as Lightning
    from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment

T = TypeVar("T")
FEW = 4  # data-parallel processes that a CPU may have even where it has fewer cores, to try things
LOOK_SECONDS, PATIENCE = 1.0, 10.0  # between two looks at the other processes; for a loss to be told otherwise


def make_fabric(machine: MachineSettings) -> Fabric:
    """Device and precision as the settings say; processes are not started."""
    keep_freed_memory()
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)
    if machine.world == 1:
        return OneProcess(device_of(machine.accelerator), machine.precision)
    return several(machine)


def several(machine: MachineSettings) -> Lightning:
    """The same for data-parallel processes."""
    from lightning_fabric import Fabric

    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
    try:
        fabric = Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices,
            num_nodes=machine.num_nodes,
            precision=machine.precision,
            strategy="ddp",
            plugins=[environment()],
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


def environment() -> ClusterEnvironment:
    """Who starts processes, as Fabric calls it; its own search warns wherever Slurm is installed."""
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment
    from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
    from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    match started_by():
        case "torchrun":
            return TorchElasticEnvironment()
        case "slurm":
            return SLURMEnvironment()
        case _:
            return LightningEnvironment()


def one_device() -> Fabric:
    """One GPU where there is one, else the CPU."""
    return OneProcess(device_of("auto"))


def start(machine: MachineSettings) -> Fabric:
    """The same, with the processes of a data-parallel run started.

    Fabric starts them by running this program again with the same arguments, so whatever they have to agree
    on, such as the name of the directory, is decided by the first and broadcast.
    """
    if machine.world == 1:
        return make_fabric(machine)
    keep_freed_memory()
    fabric = several(machine)
    logging.getLogger("lightning_utilities.core.rank_zero").setLevel(logging.WARNING)
    with watched_children() as children:
        fabric.launch()
    atexit.register(end_together, children)
    if machine.threads is not None:
        torch.set_num_threads(machine.threads)  # Fabric has shared out the cores
    return fabric


def end_together(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Leave the others however this process ends, while Python is still there; the first sees those it started end.

    A thread of torch's holds the last sum for a moment after it is made. Without this it would let go of it when Python
    is gone, and abort the process.
    """
    if dist.is_initialized():
        dist.destroy_process_group()
    end = time.monotonic() + PATIENCE
    for child in children:
        try:
            child.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()


@contextmanager
def watched_children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Have a process that was killed told in one line; Fabric would kill all others without a word."""
    from lightning_fabric.strategies.launchers import subprocess_script

    kept = subprocess_script._launch_process_observer
    children: list[subprocess.Popen[bytes]] = []

    def watch(child_processes: list[subprocess.Popen[bytes]]) -> None:
        children.extend(child_processes)
        threading.Thread(target=_watch, args=(children,), daemon=True).start()

    subprocess_script._launch_process_observer = watch
    try:
        yield children
    finally:
        subprocess_script._launch_process_observer = kept


def _watch(children: list[subprocess.Popen[bytes]]) -> None:
    while not any(child.poll() for child in children):
        if all(child.poll() == 0 for child in children):
            return
        time.sleep(LOOK_SECONDS)
    time.sleep(PATIENCE)  # where this process waits for the others, it tells of the loss itself, and what was saved
    number, code = next((number, child.poll()) for number, child in enumerate(children, 1) if child.poll())
    how = f"by signal {-code}" if code and code < 0 else f"with code {code}"
    print(
        f"ordisco: error: process {number} of the data-parallel run has ended {how}; go on with `ordisco resume`",
        file=sys.stderr,
        flush=True,
    )
    for child in children:
        child.kill()
    os._exit(1)


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
