"""Real images in three deliveries: does the model get better?

    python experiments/deliveries.py --out deliveries/ --dataset cifar10

Writes images of a data set as JPEG folders: three deliveries, of which a few images of each class are labelled, and
test images that no delivery has. Learns them with `ordisco learn`, tests with `ordisco test` after each, and prints
the table, which is also kept as `table.md`. With `--seeds N` models of N seeds learn deliveries of N draws.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from ordisco.data.load import load
from ordisco.report.table import markdown_table
from ordisco.words import duration, percent_mean

DAYS = ("monday", "tuesday", "wednesday")


def main() -> None:
    """Write, learn, test, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for images, models and the table")
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--images", type=int, default=10_000, help="images of a delivery")
    parser.add_argument("--labels", type=int, default=25, help="labelled images of a class in a delivery")
    parser.add_argument("--test", type=int, default=5_000, help="test images")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("options", nargs=argparse.REMAINDER, help="after --, options of `ordisco learn`")
    args = parser.parse_args()
    options = [option for option in args.options if option != "--"]
    runs = [one_seed(args, seed, options) for seed in range(args.seeds)]
    rows = [row(day, [run[number] for run in runs]) for number, day in enumerate(DAYS)]
    table = markdown_table(("delivery", "images", "labelled", "before learning", "test accuracy", "learned in"), rows)
    (args.out / "table.md").write_text(table, encoding="utf-8")
    print(table)


def one_seed(args: argparse.Namespace, seed: int, options: list[str]) -> list[dict[str, float | None]]:
    """A model that learns all deliveries; what was measured after each."""
    folder, model = args.out / f"seed-{seed}", args.out / f"seed-{seed}" / "model"
    write_deliveries(folder, args, seed)
    results = []
    for day in DAYS:
        command = ["learn", str(model), str(folder / day), "--seed", str(seed), *options]
        if not is_learned(model, day):
            subprocess.run([sys.executable, "-m", "ordisco", *command], check=True)
            tested = subprocess.run(
                [sys.executable, "-m", "ordisco", "test", str(model), str(folder / "test"), "--json"],
                check=True,
                capture_output=True,
            )
            (folder / f"{day}.json").write_bytes(tested.stdout)
        record = next(line for line in history(model) if Path(line["source"]).name == day)
        results.append(
            {
                "images": record["images"],
                "labeled": record["labeled"],
                "before": (record["before"] or {}).get("accuracy"),
                "test": json.loads((folder / f"{day}.json").read_text())["accuracy"],
                "seconds": record["seconds"],
            }
        )
    return results


def history(model: Path) -> list[dict]:
    """The model's history so far."""
    file = model / "history.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def is_learned(model: Path, day: str) -> bool:
    """Was this delivery learned and tested before this program was started again?"""
    known = any(Path(line["source"]).name == day for line in history(model))
    return known and (model.parent / f"{day}.json").exists()


def write_deliveries(folder: Path, args: argparse.Namespace, seed: int) -> None:
    """JPEG files: a folder a class, and unlabeled/."""
    if (folder / "written").exists():
        return
    data = load(args.dataset)
    rng = np.random.RandomState(seed)
    order = rng.permutation(len(data.train))[: args.images * len(DAYS)]
    for day, members in zip(DAYS, np.array_split(order, len(DAYS)), strict=True):
        given: dict[int, int] = {}
        for index in members.tolist():
            label = int(data.train.labels[index])
            given[label] = given.get(label, 0) + 1
            place = data.classes[label] if given[label] <= args.labels else "unlabeled"
            save(folder / day / place / f"{index:06d}.jpg", data.train.images[index].numpy())
    for index in rng.permutation(len(data.test))[: args.test].tolist():
        place = data.classes[int(data.test.labels[index])]
        save(folder / "test" / place / f"{index:06d}.jpg", data.test.images[index].numpy())
    (folder / "written").touch()


def save(path: Path, image: np.ndarray) -> None:
    """One JPEG file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    Image.fromarray(np.ascontiguousarray(pixels)).save(path, quality=92)


def row(day: str, runs: list[dict[str, float | None]]) -> tuple[str, ...]:
    """A line of the table, over the seeds."""

    def shares(key: str) -> str:
        values = [run[key] for run in runs if run[key] is not None]
        return percent_mean(values) if values else "–"

    seconds = statistics.fmean(run["seconds"] for run in runs)
    images, labeled = (f"{runs[0][key]:,}" for key in ("images", "labeled"))
    return day, images, labeled, shares("before"), shares("test"), duration(seconds)


if __name__ == "__main__":
    main()
