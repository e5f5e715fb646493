"""Who has started the processes of a data-parallel run: this program itself, torchrun, or Slurm's srun."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from ordisco.errors import UsageError
from ordisco.settings.machine import MachineSettings

TORCHRUN = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID")
SLURM = ("SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NNODES")
BY_HAND = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")  # on each machine, where this program is started by hand


def started_by(environment: Mapping[str, str] = os.environ) -> str | None:
    """`torchrun` or `slurm`, where it has started several processes; else None."""
    if all(name in environment for name in TORCHRUN):
        return "torchrun"
    several = all(name in environment for name in SLURM) and int(environment["SLURM_NTASKS"]) > 1
    return "slurm" if several else None


def recognised(machine: MachineSettings, environment: Mapping[str, str] = os.environ) -> MachineSettings:
    """The settings with the processes and machines that torchrun or Slurm has given; as they are without."""
    starter = started_by(environment)
    if starter is None:
        missing = [name for name in BY_HAND if name not in environment]
        if machine.num_nodes > 1 and missing:
            raise UsageError(
                f"num_nodes = {machine.num_nodes} is not allowed without {missing[0]}: start the command by torchrun "
                f"or srun, or set {', '.join(BY_HAND)} on each machine"
            )
        return machine
    processes, nodes = (
        (int(environment["WORLD_SIZE"]), int(environment["WORLD_SIZE"]) // int(environment["LOCAL_WORLD_SIZE"]))
        if starter == "torchrun"
        else (int(environment["SLURM_NTASKS"]), int(environment["SLURM_NNODES"]))
    )
    if processes % nodes:
        raise UsageError(f"{processes} processes on {nodes} machines are not allowed: the same number on each")
    given = dataclasses.replace(machine, devices=processes // nodes, num_nodes=nodes)
    for name in ("devices", "num_nodes"):
        asked, has = getattr(machine, name), getattr(given, name)
        if asked not in (1, has):
            raise UsageError(f"{name} = {asked} is not allowed: {starter} has started {has}")
    return given
