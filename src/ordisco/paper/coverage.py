"""Fig. 2: how well a UMB and the generator cover the data, in the features of a jointly trained classifier."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from ordisco.files import told_in_one_line
from ordisco.paper.items import Item
from ordisco.paper.place import Found
from ordisco.studies.generators import Judging, judge_run
from ordisco.studies.results import read_json

POINTS, DRAWN = 5_000, 1_000


def data_dir(found: Found) -> Path | None:
    """Where the user says that the data are."""
    given = found.plan.changes.get("data_dir")
    return None if given is None else Path(given)


def coverage(item: Item, found: Found) -> list[dict[str, Any]]:
    """A panel: coverage of test and of training images by seed, and the first seed's t-SNE picture."""
    panels = []
    for panel in item.panels:
        [entry] = panel.entries
        judged = found.place.root / "judged"
        umb = found.plan.scale.methods.get("smb+umb", {}).get("umb_size")  # that of the baseline beside it
        how = Judging(judged, found.place.judges, POINTS, DRAWN, data_dir(found), umb)
        rows: dict[tuple[str, str], dict[str, Any]] = {}
        first = found.plan.seeds[0]
        for seed, run in found.runs(entry.lines[0]).items():
            file, drawn = judged / f"{run.name}.json", judged / f"{run.name}-tsne.png"
            done = file.is_file() and (seed != first or drawn.is_file())  # the picture is drawn after the file
            result = read_json(file) if done else judge_run(run, replace(how, drawn=DRAWN if seed == first else 0))
            if seed == first:
                with told_in_one_line("write", found.place.pictures):
                    found.place.pictures.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(drawn, found.place.pictures / f"{item.name}.png")
            for row in result["coverings"]:
                key = (row["reference"], row["points_of"])
                found_row = rows.setdefault(
                    key, {"reference": key[0], "points_of": key[1], "points": row["points"], "ours": {}}
                )
                found_row["ours"][str(seed)] = row["coverage"]
        panels.append(
            {
                "name": panel.name,
                "ours": found.stream_of(entry.lines[0]),
                "rows": list(rows.values()),
                "grids": [{"name": "t-SNE of the classifier's features", "file": f"{item.name}.png"}],
            }
        )
    return panels
