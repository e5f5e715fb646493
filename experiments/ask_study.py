"""Are asked images worth more than random ones? The same deliveries, 20 labels each, chosen by `ask` or drawn.

    python experiments/ask_study.py digits svhn --seeds 5        # makes what is missing, then prints the table
    python experiments/ask_study.py digits --table               # the table of what is there

A model learns deliveries of images of which 20 are labelled. The labels of the first are drawn, as there is no model
to ask yet. From the second on the model so far asks, or the labels are drawn. Seeds are paired: the same images arrive
in the same order, and both start from the same first delivery. Each run is a small file in results/ask; a run that
was broken off is made again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "ask"
ARMS = ("random", "asked")


@dataclass(frozen=True)
class Setting:
    """What arrives, and how long it is learned."""

    side: int
    size: int  # images of a delivery
    deliveries: int = 5
    labels: int = 20
    steps: int = 200


SETTINGS = {"digits": Setting(side=8, size=280), "svhn": Setting(side=16, size=2_000, steps=300)}


def file_of(results: Path, data: str, method: str, arm: str, seed: int) -> Path:
    """Where a run's result lies."""
    return results / f"{data}-{method}-{arm}-seed{seed}.json"


def run(data: str, method: str, arm: str, seed: int, data_dir: Path | None) -> dict[str, Any]:
    """Learn the deliveries; the accuracy on all test images after each."""
    import torch

    from ordisco import Model, load
    from ordisco.evaluation.ask import ask
    from ordisco.machine.cores import processor
    from ordisco.settings.machine import MachineSettings
    from ordisco.studies.results import code_now

    setting, started = SETTINGS[data], time.monotonic()
    dataset = load(data, data_dir, size=setting.side)
    draws = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(dataset.train), generator=draws)
    model = Model.create(None, side=setting.side, method=method, seed=seed, machine=MachineSettings(threads=1))
    accuracies = []
    for number in range(setting.deliveries):
        part = order[number * setting.size : (number + 1) * setting.size]
        images, truth = dataset.train.images[part], dataset.train.labels[part]
        drawn = torch.randperm(len(part), generator=draws)[: setting.labels]  # also where it is not used
        asks = arm == "asked" and number > 0
        chosen = ask(model.learner, images, setting.labels, seed=seed) if asks else drawn
        labels = torch.full_like(truth, -1)
        labels[chosen] = truth[chosen]
        model.learn(images, labels, steps=setting.steps)
        right = torch.from_numpy(model.predict(dataset.test.images)) == dataset.test.labels
        accuracies.append(float(right.double().mean()))
        print(f"{data} {method} {arm} seed {seed}: delivery {number + 1}, {100 * accuracies[-1]:.1f} %", flush=True)
    return {
        "setting": asdict(setting),
        "accuracies": accuracies,
        "seconds": round(time.monotonic() - started, 1),
        "processor": processor(),
        "code": code_now(),
    }


def result(file: Path, data: str) -> dict[str, Any] | None:
    """A result of these settings, if there is one."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found if found["setting"] == asdict(SETTINGS[data]) else None


def table(results: Path, data: str, method: str, seeds: int) -> str:
    """Accuracy after each delivery, and the paired difference with its 95 % interval."""
    from ordisco.report.table import TextTable
    from ordisco.studies.paired import differences, interval
    from ordisco.words import percent_mean

    by_arm = {arm: {s: result(file_of(results, data, method, arm, s), data) for s in range(seeds)} for arm in ARMS}
    paired = [s for s in range(seeds) if all(by_arm[arm][s] is not None for arm in ARMS)]
    if not paired:
        return f"{data}, {method}: no pair of results yet"
    rows = []
    for number in range(1, SETTINGS[data].deliveries):
        values = {arm: {s: by_arm[arm][s]["accuracies"][number] for s in paired} for arm in ARMS}  # type: ignore[index]
        gain = interval(differences(values["asked"], values["random"]))
        width = (
            ""
            if gain.half is None
            else f" [{100 * (gain.mean - gain.half):+.1f}, {100 * (gain.mean + gain.half):+.1f}]"
        )
        better = sum(difference > 0 for difference in differences(values["asked"], values["random"]))
        cells = (percent_mean(list(values[arm].values())) for arm in ARMS)
        rows.append((str(number + 1), *cells, f"{100 * gain.mean:+.1f}{width}", f"{better} of {len(paired)}"))
    header = ("delivery", *ARMS, "paired difference", "seeds better")
    return f"{data}, {method}, {len(paired)} seeds\n\n{TextTable(header, tuple(rows)).markdown()}"


def main() -> None:
    """Make what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", choices=sorted(SETTINGS))
    parser.add_argument("--method", default="ordisco")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-dir", type=Path, help="as for `ordisco run`")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument("--table", action="store_true", help="make nothing")
    args = parser.parse_args()
    from ordisco.files import json_bytes, write_atomically

    for data in args.data:
        for seed in range(args.seeds) if not args.table else ():
            for arm in ARMS:
                file = file_of(args.results, data, args.method, arm, seed)
                if result(file, data) is None:
                    write_atomically(file, json_bytes(run(data, args.method, arm, seed, args.data_dir), indent=1))
        print(table(args.results, data, args.method, args.seeds))


if __name__ == "__main__":
    main()
