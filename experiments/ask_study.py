"""Are asked images worth more than random ones? The same deliveries, 20 labels each, chosen by `ask` or drawn.

    python experiments/ask_study.py digits --seeds 20-34         # makes what is missing, then prints the table
    python experiments/ask_study.py digits --seeds 20-34 --table # the table of what is there

A model learns deliveries of images of which 20 are labelled. The labels of the first are drawn, as there is no model
to ask yet. From the second on the model so far asks, or the labels are drawn. Seeds are paired: the same images arrive
in the same order, and both start from the same first delivery. All seeds of a data set are one file in results/ask,
written after each pair; a seed that was broken off is made again.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "ask"
ARMS = ("random", "asked")
TESTED = 5_000  # test images at most, the same for all


@dataclass(frozen=True)
class Setting:
    """What arrives, and how long it is learned."""

    side: int
    size: int  # images of a delivery
    deliveries: int = 4
    labels: int = 20
    steps: int = 80


SETTINGS = {"digits": Setting(side=8, size=280), "svhn": Setting(side=16, size=2_000, steps=150)}


def file_of(results: Path, data: str, method: str) -> Path:
    """Where the results lie."""
    return results / f"{data}-{method}.json"


def run(data: str, method: str, seed: int, data_dir: Path | None) -> dict[str, Any]:
    """Learn the deliveries twice; the accuracy on the test images after each."""
    import copy

    import torch

    from ordisco import Model, load
    from ordisco.evaluation.ask import ask
    from ordisco.machine.cores import processor
    from ordisco.settings.machine import MachineSettings
    from ordisco.studies.results import code_now

    setting, started = SETTINGS[data], time.monotonic()
    dataset = load(data, data_dir, size=setting.side)
    seen = torch.randperm(len(dataset.test), generator=torch.Generator().manual_seed(0))[:TESTED]
    draws = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(dataset.train), generator=draws)
    parts = order.split(setting.size)[: setting.deliveries]
    drawn = [torch.randperm(len(part), generator=draws)[: setting.labels] for part in parts]

    def learn(model: Model, number: int, arm: str) -> float:
        images, truth = dataset.train.images[parts[number]], dataset.train.labels[parts[number]]
        asks = arm == "asked" and number > 0
        chosen = ask(model.learner, images, setting.labels, seed=seed) if asks else drawn[number]
        labels = torch.full_like(truth, -1)
        labels[chosen] = truth[chosen]
        model.learn(images, labels, steps=setting.steps)
        right = torch.from_numpy(model.predict(dataset.test.images[seen])) == dataset.test.labels[seen]
        share = float(right.double().mean())
        print(f"{data} {method} seed {seed}, {arm}: delivery {number + 1}, {100 * share:.1f} %", flush=True)
        return share

    first = Model.create(None, side=setting.side, method=method, seed=seed, machine=MachineSettings(threads=1))
    start = learn(first, 0, "both")
    accuracies = {}
    for arm in ARMS:
        model = copy.deepcopy(first)
        accuracies[arm] = [start, *(learn(model, number, arm) for number in range(1, setting.deliveries))]
    return {
        "seed": seed,
        "accuracies": accuracies,
        "seconds": round(time.monotonic() - started, 1),
        "processor": processor(),
        "code": code_now(),
    }


def results_of(file: Path, data: str) -> dict[int, dict[str, Any]]:
    """The pairs of these settings, by seed."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return {pair["seed"]: pair for pair in found["pairs"]} if found["setting"] == asdict(SETTINGS[data]) else {}


def table(pairs: dict[int, dict[str, Any]], title: str) -> str:
    """Accuracy after each delivery and on average, and the paired difference with its 95 % interval."""
    from statistics import fmean

    from ordisco.report.table import TextTable
    from ordisco.studies.paired import differences, interval
    from ordisco.words import percent_mean

    if not pairs:
        return f"{title}: no results yet"
    later = {seed: {arm: pair["accuracies"][arm][1:] for arm in ARMS} for seed, pair in pairs.items()}
    columns = {
        str(n + 2): {seed: {arm: each[arm][n] for arm in ARMS} for seed, each in later.items()}
        for n in range(len(next(iter(later.values()))["asked"]))
    }
    columns["mean"] = {seed: {arm: fmean(each[arm]) for arm in ARMS} for seed, each in later.items()}
    rows = []
    for name, values in columns.items():
        by_arm = {arm: {seed: each[arm] for seed, each in values.items()} for arm in ARMS}
        gains = differences(by_arm["asked"], by_arm["random"])
        gain = interval(gains)
        half = gain.half or 0.0
        width = f" [{100 * (gain.mean - half):+.1f}, {100 * (gain.mean + half):+.1f}]" if gain.half is not None else ""
        cells = (percent_mean(list(by_arm[arm].values())) for arm in ARMS)
        better = f"{sum(difference > 0 for difference in gains)} of {len(gains)}"
        rows.append((name, *cells, f"{100 * gain.mean:+.1f}{width}", better))
    header = ("delivery", *ARMS, "paired difference", "seeds better")
    return f"{title}, {len(pairs)} seeds\n\n{TextTable(header, tuple(rows)).markdown()}"


def numbers(text: str) -> list[int]:
    """The seeds of `20-34` or `7`."""
    first, _, last = text.partition("-")
    return list(range(int(first), int(last or first) + 1))


def main() -> None:
    """Make what is missing, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", choices=sorted(SETTINGS))
    parser.add_argument("--method", default="smb")
    parser.add_argument("--seeds", type=numbers, default="20-34", help="from - to (default: 20-34)")
    parser.add_argument("--data-dir", type=Path, help="as for `ordisco run`")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument("--table", action="store_true", help="make nothing")
    args = parser.parse_args()
    from ordisco.files import json_bytes, write_atomically

    command = shlex.join(["python", f"experiments/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    for data in args.data:
        file = file_of(args.results, data, args.method)
        pairs = results_of(file, data)
        for seed in args.seeds if not args.table else ():
            if seed not in pairs:
                pairs[seed] = run(data, args.method, seed, args.data_dir)
                whole = {"command": command, "setting": asdict(SETTINGS[data]), "pairs": list(pairs.values())}
                write_atomically(file, json_bytes(whole, indent=1))
        wanted = {seed: pairs[seed] for seed in args.seeds if seed in pairs}
        print(table(wanted, f"{data}, {args.method}"))


if __name__ == "__main__":
    main()
