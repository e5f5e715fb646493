"""What a run has taken so far, by the clock and of the processors, in all sessions that its result is made of."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ordisco.machine.group import Group


class Clock:
    """Started with a run; a checkpoint carries it on.

    Seconds of the processors are those of all threads and all data-parallel processes. What was learned after the last
    checkpoint and lost is in neither number, as it is in no weight; loading torch is not either. Looks at C′ within an
    increment are left out: a run pays for them only where someone wants to watch.
    """

    def __init__(self) -> None:
        self.seconds_before = 0.0  # in sessions before this one
        self.cpu_before: float | None = 0.0  # None: a checkpoint of before this was counted
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        """By the clock."""
        return self.seconds_before + time.monotonic() - self._wall

    def cpu_seconds(self, group: Group, device: torch.device) -> float | None:
        """Of the processors; where there are several processes, all have to ask."""
        own = time.process_time() - self._cpu
        if group.size > 1:
            own = float(group.sum_(torch.tensor([own], device=device)))
        return None if self.cpu_before is None else self.cpu_before + own

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """What is done in the block does not count."""
        wall, cpu = time.monotonic(), time.process_time()
        try:
            yield
        finally:
            self._wall += time.monotonic() - wall
            self._cpu += time.process_time() - cpu

    def go_on(self, saved: Mapping[str, Any]) -> None:
        """From where a checkpoint's clock stood."""
        self.seconds_before, self.cpu_before = saved["seconds"], saved.get("cpu_seconds")
