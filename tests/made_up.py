"""Results without runs, for all that only reads them."""

import random
from pathlib import Path
from typing import Any

from ordisco.paper.items import Item
from ordisco.paper.place import Place
from ordisco.paper.scales import Plan, increments_in
from ordisco.settings.methods import method
from ordisco.settings.steps import steps_of
from ordisco.studies.study import Row

CODE = {"version": "0.2.0", "commit": "c" * 40, "dirty": False}


def result_of(row: Row) -> dict[str, Any]:
    """What a finished run of this row might have left."""
    draws = random.Random(row.shared_key)
    count, level = increments_in(row.config.stream), draws.uniform(0.5, 0.95)
    accuracies = [round(level * (0.5 + 0.5 * (place + 1) / count) + draws.gauss(0, 0.01), 4) for place in range(count)]
    gan = method(row.config.method).gan
    steps = [steps_of(method(row.config.method), row.config.learner, place, 100) for place in range(count)]
    saved = [place + 1 if row.config.method == "offline-all" else 0 for place in range(count)]
    return {
        "command": row.command,
        "settings": row.settings(),
        "code": [CODE],
        "torch": "2.9",
        "python": "3.11",
        "processor": "a processor",
        "threads": 1,
        "precision": "32-true",
        "seconds": 12.5,
        "last_accuracy": accuracies[-1],
        "mean_accuracy": sum(accuracies) / count,
        "accuracies": accuracies,
        "pseudo_label_accuracies": accuracies,
        "generated_accuracies": [round(0.9 * share, 4) if gan and row.judged else None for share in accuracies],
        "judge_accuracy": 0.975 if gan and row.judged else None,
        "kept_bytes": 400_000,
        "kept": {"C": 400_000},
        "peak_memory_bytes": None,
        "increment_seconds": [0.05 * count for count in steps],
        "kept_by_increment": [{"C": 400_000, "G": 150_000, "generators": 150_000 * count} for count in saved],
    }


def make_up(items: list[Item], plan: Plan, root: Path, leave_out: int = 0) -> Place:
    """A place with a result for every row of the items but for the last few."""
    place = Place(root / plan.scale.name, root / plan.scale.name / "items")
    rows = plan.rows(items)
    for row in rows[: len(rows) - leave_out]:
        place.results.write(row, result_of(row))
    return place
