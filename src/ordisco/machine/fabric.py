"""Device, precision and processes: the words of Lightning's Fabric that this package uses, and one process without it.

To load Lightning takes as long as to load torch, since it loads torch's compiler. So only data-parallel runs do.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeVar

import torch

from ordisco.errors import UsageError

T = TypeVar("T")


class Fabric(Protocol):
    """What the package asks of it; `lightning_fabric.Fabric` is one, `OneProcess` another."""

    @property
    def device(self) -> torch.device:
        """Where this process computes."""

    @property
    def world_size(self) -> int:
        """Processes in all."""

    @property
    def global_rank(self) -> int:
        """The number of this one."""

    @property
    def is_global_zero(self) -> bool:
        """Is this the first?"""

    @property
    def strategy(self) -> Any:
        """How processes decide together; asked only where there are several."""

    def autocast(self) -> AbstractContextManager[Any]:
        """In the block, networks compute in the precision that was chosen."""

    def broadcast(self, obj: T, src: int = 0) -> T:
        """What the first process has, in all."""

    def barrier(self, name: str | None = None) -> None:
        """Wait for all processes."""

    def all_reduce(self, data: Any, group: Any = None, reduce_op: str = "mean") -> Any:
        """Mean or sum over all processes."""


class OneProcess:
    """One process on one device."""

    world_size, global_rank, is_global_zero, strategy = 1, 0, True, None

    def __init__(self, device: torch.device, precision: str = "32-true") -> None:
        self.device, self.precision = device, precision
        if device.type == "cuda":
            torch.cuda.set_device(device)

    def autocast(self) -> AbstractContextManager[Any]:
        """In the block, networks compute in the precision that was chosen."""
        mixed = self.precision == "bf16-mixed"
        return torch.autocast(self.device.type, dtype=torch.bfloat16) if mixed else nullcontext()

    def broadcast(self, obj: T, src: int = 0) -> T:
        """As it is."""
        return obj

    def barrier(self, name: str | None = None) -> None:
        """Nobody to wait for."""

    def all_reduce(self, data: Any, group: Any = None, reduce_op: str = "mean") -> Any:
        """As it is."""
        return data


def device_of(accelerator: str) -> torch.device:
    """The device that an accelerator names; `auto` is a GPU where there is one."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    name = next(name for name, has in there.items() if has) if accelerator == "auto" else accelerator
    if not there[name]:
        raise UsageError(
            f"accelerator = {accelerator!r} with devices = 1 is not allowed on this machine, which has "
            f"{', '.join(['auto', *(name for name in ('cpu', 'cuda', 'mps') if there[name])])}"
        )
    return torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)
