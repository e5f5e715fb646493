"""The number format of the networks where `--precision auto` leaves it open: the faster one, measured once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import torch
from lightning_fabric import Fabric

from ordisco.config import MachineSettings, RunConfig
from ordisco.nets import make_classifier
from ordisco.presets import PRESET_IMAGES
from ordisco.processes import make_fabric
from ordisco.settings import LearnerSettings

Shape = tuple[int, int, int]

FORMATS = ("32-true", "bf16-mixed")
IMAGES, ROUNDS, ENOUGH_SECONDS = 32, 3, 1.0  # a mini-batch, how often it is measured, and when that may end
CPU_FLAGS = {"amx_bf16", "avx512_bf16", "bf16"}  # x86's two, and ARM's


def decided(config: RunConfig, say: Callable[[str], None]) -> RunConfig:
    """The configuration with the precision to run with, which is then written down with it."""
    channels, side, _ = PRESET_IMAGES[config.preset]
    side = config.stream.size or side
    return dataclasses.replace(config, machine=decide(config.machine, config.learner, (channels, side, side), say))


def decide(
    machine: MachineSettings, settings: LearnerSettings, shape: Shape, say: Callable[[str], None]
) -> MachineSettings:
    """The settings with `auto` replaced by the faster format; `say` is told when something was measured."""
    if machine.precision != "auto":
        return machine
    seconds = measured(machine, settings, shape) if has_bf16(machine) else {}
    chosen = min(seconds, key=seconds.__getitem__) if seconds else FORMATS[0]
    if seconds:
        times = ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in seconds.items())
        say(f"precision {chosen}, as measured on C: {times}")
    return dataclasses.replace(machine, precision=chosen)


def has_bf16(machine: MachineSettings) -> bool:
    """Has the device instructions for bf16? Several processes might each measure another winner: no is said."""
    if machine.devices > 1:
        return False
    device = make_fabric(machine).device
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and cpu_has_bf16()


def cpu_has_bf16(info: Path = Path("/proc/cpuinfo")) -> bool:
    """Does the processor name bf16 instructions? Where that cannot be read, no: 32 bits are never wrong."""
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    flags = (line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features")))
    return any(CPU_FLAGS.intersection(words) for words in flags)


def measured(machine: MachineSettings, settings: LearnerSettings, shape: Shape) -> dict[str, float]:
    """Seconds of a forward and backward pass of C in each format, taken in turn, the best of a few."""
    fabrics = {name: make_fabric(dataclasses.replace(machine, precision=name)) for name in FORMATS}
    best: dict[str, float] = {}
    start = time.perf_counter()
    for turn in range(ROUNDS + 1):
        for name, fabric in fabrics.items():
            seconds = one_pass(settings, shape, fabric)
            if turn:  # the first warms up
                best[name] = min(seconds, best.get(name, seconds))
        if turn and time.perf_counter() - start > ENOUGH_SECONDS:
            break
    return best


def one_pass(settings: LearnerSettings, shape: Shape, fabric: Fabric) -> float:
    """Seconds of a forward and backward pass of a new C on noise."""
    c, device = settings.classifier, fabric.device
    with torch.random.fork_rng(devices=[]):
        C = make_classifier(c.c_net, shape, 10, c.c_width, c.dropout, "linear").to(device)
        x = torch.randn(IMAGES, *shape).to(device)
        wait(device)
        start = time.perf_counter()
        with fabric.autocast():
            loss = C(x).float().square().mean()
        loss.backward()
        wait(device)
        return time.perf_counter() - start


def wait(device: torch.device) -> None:
    """Until a GPU has done all it was told to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
