"""Start-up and memory, each in a process of its own: what a user waits for, and what a machine must have."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ordisco.bench.values import Value
from ordisco.errors import OrdiscoError

RUN = ("run", "digits-1-new-class", "--method", "ordisco", "--threads", "1")
SHORT = ("--steps", "4")  # an increment, of all five; then figures and summary
CLASSES, IMAGES = 2, 3  # of the delivery that the model to predict with has learned
# torch's own memory: loaded, with one convolution forward and backward
TORCH = """
import torch
torch.set_num_threads(1)
torch.nn.functional.conv2d(torch.randn(8, 3, 8, 8), torch.randn(4, 3, 3, 3, requires_grad=True)).sum().backward()
"""
PEAK = "from ordisco.machine.memory import most_resident; print(most_resident() or 0)"
COMMAND = "import sys\nfrom ordisco.cli import main\nassert main(sys.argv[1:]) == 0\n"
STEPS = """
import sys
from ordisco.bench.learners import make_learner
from ordisco.settings.machine import MachineSettings
learner = make_learner(sys.argv[1], MachineSettings(accelerator=sys.argv[2], precision=sys.argv[3], threads=1))
with learner.random("bench"):
    for _ in range(3):
        learner.step()
"""


def ended(*arguments: str) -> tuple[float, float]:
    """Seconds by the clock and of the processors of a Python program, from its start to its end."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seconds, after = time.perf_counter() - start, os.times()
    if done.returncode:
        told = done.stdout.decode(errors="replace").strip().splitlines()
        raise OrdiscoError(f"the measurement `{' '.join(command[:8])} …` failed: {(told or ['no word'])[-1]}")
    return seconds, after.children_user + after.children_system - before.children_user - before.children_system


def start_up(rounds: int, accelerator: str) -> dict[str, Value]:
    """From a command to its end, files in the system's cache; `run` makes one step, a checkpoint and a quick look."""
    with tempfile.TemporaryDirectory() as folder:
        model, image = made_model(Path(folder))
        programs = {
            "import ordisco": ("-c", "import ordisco"),
            "import torch": ("-c", "import torch"),
            "ordisco --help": ("-m", "ordisco", "--help"),
            "ordisco run, one step": ("-m", "ordisco", *RUN, "--max-steps", "1", "--accelerator", accelerator),
            "ordisco predict, one image": ("-m", "ordisco", "predict", str(model), str(image)),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for turn in range(rounds + 1):
            for name, arguments in programs.items():
                out = ("--out", f"{folder}/{turn}") if RUN[0] in arguments else ()
                times[name].append(ended(*arguments, *out))
    found = {name: Value.of([wall for wall, _ in of[1:]], "s") for name, of in times.items()}
    return found | {
        f"{name}, of the processors": Value.of([cpu for _, cpu in of[1:]], "s") for name, of in times.items()
    }


def made_model(folder: Path) -> tuple[Path, Path]:
    """A model that has learned a few images for a few steps, and an image."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(0)
    for label in range(CLASSES):
        (folder / "delivery" / f"class-{label}").mkdir(parents=True)
        for index in range(IMAGES):
            pixels = draw.integers(0, 256, (8, 8), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "delivery" / f"class-{label}" / f"{index}.png")
    ended("-m", "ordisco", "learn", str(folder / "model"), str(folder / "delivery"), "--steps", "2")
    return folder / "model", folder / "delivery" / "class-0" / "0.png"


def peak(program: str, *arguments: str) -> float:
    """The most megabytes that a program has held at its end; 0 on a system that does not tell."""
    command = [sys.executable, "-c", program + PEAK, *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout.splitlines()[-1]) / 1e6


def memory(presets: Sequence[str], accelerator: str, precision: str) -> dict[str, Value]:
    """The most that torch alone holds, a whole short run of the demo's networks, and steps of each preset."""
    with tempfile.TemporaryDirectory() as folder:
        torch = peak(TORCH)
        found = {
            "torch with one convolution": Value(torch, "MB", better="neither"),
            "a run on the digits, over torch": Value(
                peak(COMMAND, *RUN, *SHORT, "--accelerator", accelerator, "--out", f"{folder}/run") - torch, "MB"
            ),
        }
    for name in presets:
        found[f"steps of {name}, over torch"] = Value(peak(STEPS, name, accelerator, precision) - torch, "MB")
    return found
