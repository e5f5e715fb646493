"""Where the runs of a study are made, and what each takes there."""

from __future__ import annotations

from dataclasses import dataclass

from ordisco.launchers.base import Launcher, Needs
from ordisco.launchers.local import Local
from ordisco.machine.cores import MEMORY, cores
from ordisco.settings.machine import MachineSettings


@dataclass(frozen=True)
class Launching:
    """Where the runs are made, what each takes there (None: as its settings say), and whether it is waited for."""

    launcher: Launcher
    cpus: int | None = None
    gpus: float | None = None
    memory: int | None = None
    detach: bool = False

    @property
    def here(self) -> bool:
        """In this process, or in processes beside it."""
        return isinstance(self.launcher, Local) and not self.detach

    def needs(self, machine: MachineSettings) -> Needs:
        """What a run takes."""
        cpus = (machine.threads or cores()) * machine.devices
        gpus = float(machine.devices if machine.accelerator == "cuda" else 0)
        return Needs(
            cpus if self.cpus is None else self.cpus,
            gpus if self.gpus is None else self.gpus,
            MEMORY * machine.devices if self.memory is None else self.memory,
        )
