"""Where a run computes, and what it records beside its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ordisco.settings.fields import Settings, setting

Accelerator = Literal["auto", "cpu", "cuda", "mps"]
COMPUTING = ("accelerator", "devices", "num_nodes", "precision", "threads")  # the settings that say how it computes


@dataclass(frozen=True)
class MachineSettings(Settings):
    """The machine and the record."""

    accelerator: Accelerator = setting("auto", "where to compute")
    devices: int = setting(
        1,
        "processes of data-parallel training on a machine, one a device; the mini-batch is shared out",
        low=1,
        high=1_024,
    )
    num_nodes: int = setting(1, "machines of data-parallel training, each with so many devices", low=1, high=1_024)
    precision: Literal["32-true", "bf16-mixed"] = setting(
        "32-true", "number format of the networks; bf16-mixed on a CPU is first tried in a process of its own"
    )
    threads: int | None = setting(
        None, "CPU threads (default: 1 for the presets demo and small, else all cores)", low=1, high=1_024
    )
    data_dir: str | None = setting(None, "folder of the data files (default: ORDISCO_DATA, else a cache)")
    checkpoint_seconds: float = setting(60.0, "seconds between checkpoints within an increment", low=0.0, high=1e9)
    evaluate_every: int | None = setting(
        None, "steps between evaluations of C′ within an increment, recorded beside the seconds", low=1, high=10**9
    )
    judge: str | None = setting(
        None, "run directory whose classifier judges the generated images, such as one of --method jt"
    )
    tensorboard: bool = setting(False, "also log to TensorBoard (needs the extra: pip install 'ordisco[tensorboard]')")

    @property
    def world(self) -> int:
        """Processes on all machines."""
        return self.devices * self.num_nodes
