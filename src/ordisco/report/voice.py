"""Data-parallel processes speak with one voice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ordisco.errors import OrdiscoError
from ordisco.machine.fabric import Fabric
from ordisco.report.terminal import Display, SilentDisplay, make_display


@contextmanager
def one_voice(fabric: Fabric, display: Display | None = None) -> Iterator[Display]:
    """A display, and errors, in the first process; the others end silently when they fail alike or are left alone."""
    if display is None:
        display = make_display() if fabric.is_global_zero else SilentDisplay(sys.stdout)
    try:
        yield display
    except (OrdiscoError, KeyboardInterrupt):
        if fabric.is_global_zero:
            raise
        raise SystemExit(0) from None  # another code would have Fabric kill the first, which may be saving
    except RuntimeError as error:
        if fabric.world_size == 1 or not is_lost_connection(error):
            raise
        if not fabric.is_global_zero:
            raise SystemExit(0) from None
        raise OrdiscoError("a process of the data-parallel run has ended; go on with `ordisco resume`") from error
    finally:
        display.close()


def is_lost_connection(error: RuntimeError) -> bool:
    """Did a collective operation fail because another process has gone?"""
    return isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
