"""The number format of the networks: bf16 on a CPU is tried in a process of its own before anything relies on it.

A processor, or the virtual machine around it, may name instructions that it then refuses. That ends a process
without a word, so it must not be the process of the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final

import torch

from ordisco.errors import UsageError
from ordisco.machine.cores import bf16_flags, processor
from ordisco.machine.fabric import Fabric, OneProcess
from ordisco.machine.processes import together
from ordisco.nets.networks import Networks
from ordisco.runs.signals import signal_name
from ordisco.settings.learner import LearnerSettings

BF16: Final = "bf16-mixed"
IMAGES, CLASSES = 8, 10  # of the trial
SECONDS = 120.0  # that it may take; a second or two, and the start of Python, is usual
COMMAND: Sequence[str] = (sys.executable, "-m", "ordisco.runs.precision")
TRIED = "ORDISCO_BF16_TRIED"  # the trials that went well, so that the processes of a comparison need not repeat them


def check_precision(
    precision: str, fabric: Fabric, settings: LearnerSettings, image_shape: tuple[int, int, int]
) -> None:
    """Refuse bf16 where C, G and D of these settings cannot be computed with it; nothing is tried on a GPU."""
    if precision == BF16 and fabric.device.type == "cpu":
        together(fabric, lambda: try_bf16(settings, image_shape))


# ---------------------------------------------------------------------- the process of the run


def try_bf16(
    settings: LearnerSettings,
    image_shape: tuple[int, int, int],
    command: Sequence[str] | None = None,
    seconds: float | None = None,
) -> None:
    """Have a child compute with bf16; whatever ends it, or that it does not end, is told in one line."""
    request = {"settings": settings.to_dict(), "image_shape": image_shape, "threads": torch.get_num_threads()}
    text = json.dumps(request, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    tried = os.environ.get(TRIED, "").split()
    if name in tried:
        return
    happened = what_happened(command or COMMAND, text, seconds or SECONDS)
    if happened is not None:
        flags = ", ".join(bf16_flags()) or "no bf16"
        raise UsageError(
            f"precision = {BF16!r} is not allowed on this processor, {processor()}, which names {flags}: "
            f"a trial of C, G and D {happened}; use --precision 32-true"
        )
    os.environ[TRIED] = " ".join([*tried, name])


def what_happened(command: Sequence[str], text: str, seconds: float) -> str | None:
    """How a trial went wrong; None if it did not."""
    try:
        child = subprocess.run(
            command,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds:g} s"
    except OSError as error:
        return f"could not be started ({error.strerror})"
    if child.returncode < 0:
        return f"ended by {signal_name(-child.returncode)}"
    if child.returncode > 0:
        lines = [line.strip() for line in child.stderr.splitlines() if line.strip()]
        return f"failed ({(lines or [f'exit code {child.returncode}'])[-1]})"
    return None


# ---------------------------------------------------------------------- the child


def main() -> None:
    """Make the trial that standard input asks for."""
    with contextlib.suppress(ImportError):  # Windows has none
        import resource

        most = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))  # no file of the memory is left behind
    request: dict[str, Any] = json.loads(sys.stdin.read())
    torch.set_num_threads(request["threads"])
    channels, height, width = request["image_shape"]
    trial(LearnerSettings.from_dict(request["settings"]), (channels, height, width))


def trial(settings: LearnerSettings, image_shape: tuple[int, int, int]) -> None:
    """C, G and D forward and backward in bf16 on a few images of noise."""
    fabric = OneProcess(torch.device("cpu"), BF16)
    nets = Networks(settings, image_shape, CLASSES, "linear", True, fabric.device)
    assert nets.gan is not None
    y = torch.arange(IMAGES) % CLASSES
    with fabric.autocast():
        made = nets.gan.G.module(torch.randn(IMAGES, settings.gan.z_dim), y)
        d, c = nets.gan.D.module(made), nets.C.module(torch.randn(IMAGES, *image_shape))
    (d.float().square().mean() + c.float().square().mean()).backward()


if __name__ == "__main__":
    main()
