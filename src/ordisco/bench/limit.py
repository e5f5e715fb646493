"""The limit of a training step: its convolutions and matrix products, timed alone with the same tensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
HEAVY = {
    aten.convolution.default,
    aten.convolution_backward.default,
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.mv.default,
}


class _Recorder(TorchDispatchMode):
    """Notes every heavy operation with the very tensors it is called on: shapes, layout and precision."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Callable[[], Any]] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call it, and note it if it is heavy."""
        if operation in HEAVY:
            self.operations.append(partial(operation, *args, **(kwargs or {})))
        return operation(*args, **(kwargs or {}))


def heavy_operations(step: Callable[[], object]) -> list[Callable[[], Any]]:
    """The convolutions and matrix products, forward and backward, of one call of `step`."""
    recorder = _Recorder()
    with recorder:
        step()
    return recorder.operations


@torch.no_grad()
def run_all(operations: list[Callable[[], Any]]) -> None:
    """Nothing but the heavy operations, one after the other."""
    for operation in operations:
        operation()
