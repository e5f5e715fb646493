"""Are asked images worth more than random ones? The same deliveries, 20 labels each, chosen by `ask` or drawn.

    python experiments/ask_study.py digits --seeds 20-34         # makes what is missing, then prints the table
    python experiments/ask_study.py digits --seeds 20-34 --table # the table of what is there

A model learns deliveries of images of which 20 are labelled. The labels of the first are drawn, as there is no model
to ask yet. From the second on the model so far asks, or the labels are drawn. Seeds are paired: the same images arrive
in the same order, and all start from the same first delivery. All seeds of a data set are one file in results/ask,
written after each seed; a seed that was broken off is made again. `--arms` takes other ways to choose, too
(`ask_candidates.py`), all compared with random images.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

RESULTS = Path(__file__).parent / "results" / "ask"
ARMS = ("random", "asked", "zhdanov", "badge", "typiclust", "typiclust-doubt")
TESTED = 5_000  # test images at most, the same for all


@dataclass(frozen=True)
class Setting:
    """What arrives, and how long it is learned."""

    side: int
    size: int  # images of a delivery
    deliveries: int = 4
    labels: int = 20  # of a delivery
    first: int = 20  # labels of the first, drawn for all arms
    steps: int = 80


SETTINGS = {"digits": Setting(side=8, size=280), "svhn": Setting(side=16, size=2_000, first=100, steps=200)}


def file_of(results: Path, data: str, method: str) -> Path:
    """Where the results lie."""
    return results / f"{data}-{method}.json"


def run(data: str, method: str, seed: int, arms: Sequence[str], data_dir: Path | None) -> list[dict[str, Any]]:
    """Learn the deliveries, once an arm; the accuracy on the test images after each."""
    import copy

    import torch
    from ask_candidates import CANDIDATES

    from ordisco import Model, load
    from ordisco.evaluation.ask import ask
    from ordisco.machine.cores import processor
    from ordisco.runs.made import code_now
    from ordisco.settings.machine import MachineSettings

    setting, choose = SETTINGS[data], CANDIDATES | {"asked": ask}
    dataset = load(data, data_dir, size=setting.side)
    seen = torch.randperm(len(dataset.test), generator=torch.Generator().manual_seed(0))[:TESTED]
    draws = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(dataset.train), generator=draws)
    parts = order.split(setting.size)[: setting.deliveries]
    counts = [setting.first, *[setting.labels] * (len(parts) - 1)]
    drawn = [torch.randperm(len(part), generator=draws)[:count] for part, count in zip(parts, counts, strict=True)]

    def learn(model: Model, number: int, arm: str) -> float:
        images, truth = dataset.train.images[parts[number]], dataset.train.labels[parts[number]]
        chosen = drawn[number]
        if arm in choose and number > 0:
            chosen = choose[arm](model.learner, images, setting.labels, seed)
        labels = torch.full_like(truth, -1)
        labels[chosen] = truth[chosen]
        model.learn(images, labels, steps=setting.steps)
        right = torch.from_numpy(model.predict(dataset.test.images[seen])) == dataset.test.labels[seen]
        share = float(right.double().mean())
        print(f"{data} {method} seed {seed}, {arm}: delivery {number + 1}, {100 * share:.1f} %", flush=True)
        return share

    first = Model.create(None, side=setting.side, method=method, seed=seed, machine=MachineSettings(threads=1))
    start = learn(first, 0, "all")
    made = []
    for arm in arms:
        model, started = copy.deepcopy(first), time.monotonic()
        accuracies = [start, *(learn(model, number, arm) for number in range(1, setting.deliveries))]
        seconds = round(time.monotonic() - started, 1)
        about = {"seconds": seconds, "processor": processor(), "code": code_now()}
        made.append({"arm": arm, "seed": seed, "accuracies": accuracies} | about)
    return made


def results_of(file: Path, data: str) -> list[dict[str, Any]]:
    """The results of these settings."""
    try:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    results: list[dict[str, Any]] = found["results"]
    return results if found["setting"] == asdict(SETTINGS[data]) else []


def table(results: list[dict[str, Any]], title: str) -> str:
    """Accuracy after each delivery and their mean; paired differences of the mean and the last to random images."""
    from ordisco.report.table import TextTable
    from ordisco.words import percent_mean

    later = {arm: {r["seed"]: r["accuracies"][1:] for r in results if r["arm"] == arm} for arm in ARMS}
    rows = []
    for arm, by_seed in later.items():
        if by_seed:
            each = [percent_mean(list(values)) for values in zip(*by_seed.values(), strict=True)]
            mean, last = (gain(by_seed, later["random"], of) for of in (fmean, last_of))
            rows.append((arm, str(len(by_seed)), *each, *(("", "") if arm == "random" else (mean, last))))
    if not rows:
        return f"{title}: no results yet"
    after = tuple(f"after delivery {number + 2}" for number in range(len(rows[0]) - 4))
    header = ("labels", "seeds", *after, "mean against random", "last against random")
    return f"{title}\n\n{TextTable(header, tuple(rows)).markdown()}"


def last_of(values: Sequence[float]) -> float:
    """After the last delivery."""
    return values[-1]


def gain(arm: dict[int, list[float]], drawn: dict[int, list[float]], of: Callable[[Sequence[float]], float]) -> str:
    """The paired difference in points with its 95 % interval, and in how many seeds it is positive."""
    from ordisco.studies.paired import differences, interval

    gains = differences({s: of(a) for s, a in arm.items()}, {s: of(a) for s, a in drawn.items()})
    if len(gains) < 2:
        return "—"
    found = interval(gains)
    low, high = found.mean - (found.half or 0), found.mean + (found.half or 0)
    better = f"{sum(each > 0 for each in gains)} of {len(gains)}"
    return f"{100 * found.mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}], {better}"


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
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["random", "asked"])
    parser.add_argument("--data-dir", type=Path, help="as for `ordisco run`")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the results are kept")
    parser.add_argument("--table", action="store_true", help="make nothing")
    args = parser.parse_args()
    from ordisco.files import json_bytes, write_atomically

    command = shlex.join(["python", f"experiments/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    for data in args.data:
        file = file_of(args.results, data, args.method)
        results = results_of(file, data)
        for seed in args.seeds if not args.table else ():
            there = {result["arm"] for result in results if result["seed"] == seed}
            if missing := [arm for arm in args.arms if arm not in there]:
                made = run(data, args.method, seed, missing, args.data_dir)
                results += [{"command": command} | result for result in made]
                whole = {"setting": asdict(SETTINGS[data]), "results": results}
                write_atomically(file, json_bytes(whole, indent=1))
        wanted = [result for result in results if result["seed"] in args.seeds and result["arm"] in args.arms]
        print(table(wanted, f"{data}, {args.method}"))


if __name__ == "__main__":
    main()
