"""Many increments of equal size on tiny networks: do time, storage and memory stay?

`python -m ordisco.bench.grow METHOD INCREMENTS` prints JSON; in a process of its own, memory is that of the stream.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import get_args

from ordisco.bench.values import Value
from ordisco.machine.memory import resident_memory
from ordisco.settings.machine import Accelerator, MachineSettings

FIRST = 10  # the increment from which on memory has to stay: by then every kind of tensor has been there


def grown(name: str, increments: int, machine: MachineSettings) -> dict[str, list[float]]:
    """Seconds, bytes kept and resident memory of each increment.

    On a CPU, seconds are those of the process in one thread: another program on the machine is not a growth.
    """
    from ordisco.bench.learners import CLASSES, IMAGES, random_increment
    from ordisco.learner.learner import Learner
    from ordisco.machine.processes import make_fabric
    from ordisco.runs.presets import preset
    from ordisco.settings.methods import method

    settings = preset("demo").replace(steps=2, c_width=8, g_width=8, d_width=8, z_dim=8)
    fabric = make_fabric(machine)
    warm_up, learner = (Learner(method(name), CLASSES, IMAGES["demo"], settings, fabric=fabric) for _ in range(2))
    warm_up.learn(random_increment(IMAGES["demo"], 100, 1, 0))
    del warm_up
    clock = time.process_time if learner.device.type == "cpu" else time.perf_counter
    seconds, kept, resident = [], [], []
    for index in range(increments):
        increment = random_increment(IMAGES["demo"], 100, 1, index)
        start = clock()
        learner.learn(increment)
        seconds.append(clock() - start)
        kept.append(float(sum(learner.bytes_kept().values())))
        resident.append(float(resident_memory() or 0))
    return {"seconds": seconds, "bytes": kept, "resident": resident}


def in_a_process(name: str, increments: int, machine: MachineSettings) -> dict[str, list[float]]:
    """The same in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "ordisco.bench.grow", name, str(increments), machine.accelerator]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def values(of: dict[str, list[float]]) -> dict[str, Value]:
    """What the increments say."""
    seconds, kept, resident = of["seconds"], of["bytes"], of["resident"]
    more, error = slope(seconds)
    found = {
        f"time, last of {len(seconds)} increments / first": Value(ends(seconds), "×", abs(error) * len(seconds)),
        "time, more an increment": Value(100 * more, "%", better="neither"),
        "time of an increment": Value.of(seconds, "s"),
        "kept, more an increment": Value((kept[-1] - kept[0]) / max(1, len(kept) - 1), "B"),
    }
    if all(resident) and len(resident) > FIRST:
        found[f"memory, increment {FIRST}"] = Value(resident[FIRST - 1] / 1e6, "MB")
        found[f"memory, increment {len(resident)}"] = Value(resident[-1] / 1e6, "MB")
    return found


def ends(values: Sequence[float]) -> float:
    """The median of the last tenth over that of the first."""
    tenth = max(1, len(values) // 10)
    return statistics.median(values[-tenth:]) / statistics.median(values[:tenth])


def slope(values: Sequence[float]) -> tuple[float, float]:
    """How much a value grows from one to the next, and the standard error of that, as shares of the mean."""
    mean, places = statistics.fmean(values), range(len(values))
    fit = statistics.linear_regression(places, values)
    if len(values) < 3 or mean == 0:
        return (fit.slope / mean if mean else 0.0), math.inf
    rest = [value - fit.intercept - fit.slope * place for place, value in enumerate(values)]
    spread = sum((place - statistics.fmean(places)) ** 2 for place in places)
    error = math.sqrt(sum(r * r for r in rest) / (len(values) - 2) / spread)
    return fit.slope / mean, error / mean


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    name, increments, accelerator = arguments
    assert accelerator in get_args(Accelerator)
    machine = MachineSettings(accelerator=accelerator, threads=1)  # type: ignore[arg-type]
    print(json.dumps(grown(name, int(increments), machine)))


if __name__ == "__main__":
    main(sys.argv[1:])
