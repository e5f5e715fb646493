"""The outcome of an item: all that is shown of it, as plain values for JSON, documents and pages."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.files import json_bytes, json_of, read_plain, told_in_one_line, write_atomically
from ordisco.paper import numbers
from ordisco.paper.cells import search, table
from ordisco.paper.complexity import complexity
from ordisco.paper.coverage import coverage
from ordisco.paper.curves import curves
from ordisco.paper.items import Item
from ordisco.paper.place import Found, Place
from ordisco.paper.samples import samples
from ordisco.paper.scales import Plan
from ordisco.runs.made import code_now
from ordisco.settings.methods import METHODS
from ordisco.studies.results import Result

Outcome = dict[str, Any]
KINDS = {
    "table": table,
    "search": search,
    "curves": curves,
    "complexity": complexity,
    "samples": samples,
    "coverage": coverage,
}
PICTURES = "pictures"  # the folder of kept items' pictures
JUDGE = "judge"  # a number of the text that is not a method's
DRAWN = ("samples", "coverage")  # made of finished runs, not of their results


def outcome(item: Item, plan: Plan, place: Place, command: str) -> Outcome:
    """What there is of an item by now."""
    rows = plan.rows([item])
    done = place.results.read_all(rows)
    complete = len(done) == len(rows)
    panels = [] if item.kind in DRAWN and not complete else KINDS[item.kind](item, Found(plan, place))
    results = [result for _, result in done]
    return {
        "item": item.file,
        "data": item.data,
        "word": item.word,
        "title": item.title,
        "kind": item.kind,
        "measure": item.measure,
        "caption": numbers.caption(item.name),
        "scale": plan.scale.name,
        "scale_title": plan.scale.title,
        "command": command,
        "complete": complete,
        "runs": len(rows),
        "done": len(done),
        "seeds": list(plan.seeds),
        "seconds": round(sum(result["seconds"] for result in results), 1),
        "machines": different(machine_of(result) for result in results),
        "code": different(code for result in results for code in result.get("code", ())),
        "panels": panels,
        "quoted": quoted(item, panels),
        "contradictions": numbers.contradictions(item.name),
        "commands": [row.command for row in rows],
    }


def machine_of(result: Result) -> dict[str, Any]:
    """What a run was made on."""
    return {name: result.get(name) for name in ("processor", "threads", "precision", "torch", "python")}


def different(values: Any) -> list[Any]:
    """Each value once, in order."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def other_code(of: Outcome, now: Mapping[str, Any] | None = None) -> list[str]:
    """The commits, or versions, that made it and are not the present code, each once."""
    now = code_now() if now is None else now
    others = (str(code.get("commit") or code.get("version")) for code in of["code"] if different_code(code, now))
    return different(others)


def different_code(code: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Was it another code? By the commit where both know theirs, else by the version."""
    if code.get("commit") and now.get("commit"):
        return bool(code["commit"] != now["commit"])
    return bool(code.get("version") != now.get("version"))


def quoted(item: Item, panels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The numbers of the paper's text beside ours, where ours can be had from the curves or is the judge's."""
    found = []
    for quote in numbers.quotes(item.name):
        if quote.panel is not None and quote.panel not in [panel.name for panel in item.panels]:
            continue  # of a data set that is not asked for
        ours = None
        if quote.of == JUDGE:
            judges = [share for of in panels if of["name"] == quote.panel for share in of["judge"].values()]
            ours = 100 * statistics.fmean(judges) if judges else None
        elif item.kind == "curves":
            panel = quote.panel or panels[0]["name"]
            lines = {line["name"]: line["seeds"] for of in panels if of["name"] == panel for line in of["lines"]}
            high, low = (lines.get(METHODS[name].title) for name in (quote.of or "jt", quote.less or "smb"))
            if high and low:
                ours = 100 * (score(high, quote.of is None) - score(low, quote.of is None))
        found.append(
            {**{k: v for k, v in asdict(quote).items() if k in ("where", "what", "value", "unit")}, "ours": ours}
        )
    return found


def score(seeds: Mapping[str, list[float]], average: bool) -> float:
    """The mean over seeds of the last accuracy, or of the mean over increments."""
    return statistics.fmean(statistics.fmean(values) if average else values[-1] for values in seeds.values())


# ---------------------------------------------------------------------- files


def write(of: Outcome, directory: Path, pictures: Path) -> Path | None:
    """Keep a complete outcome as a file, and what it shows of `pictures` beside it; a half-made one is not kept."""
    if not of["complete"]:
        return None
    for name in shown(of):
        with told_in_one_line("read", pictures / name):
            picture = (pictures / name).read_bytes()
        write_atomically(directory / PICTURES / name, picture)
    file = directory / f"{of['item']}.json"
    write_atomically(file, json_bytes(of, indent=1))
    return file


def shown(of: Outcome) -> list[str]:
    """The pictures that an item shows, by the names of their files; of a slider the one that the paper shows."""
    return [grid["file"] for panel in of["panels"] for grid in panel.get("grids", ())]


def read(file: Path) -> Outcome:
    """The outcome that `write` kept."""
    with told_in_one_line("read", file):
        data = read_plain(file)
    try:
        of = json_of(data)
    except ValueError as error:
        raise OrdiscoError(f"{file} is not JSON ({error}): put it back, or make the item again") from error
    needed = ("item", "scale", "kind", "panels", "complete", "command", "code")
    if not isinstance(of, dict) or any(name not in of for name in needed):
        raise OrdiscoError(f"{file} is not the outcome of an item: put it back, or make the item again")
    if not of["complete"]:
        raise OrdiscoError(f"{file} is half-made, which is no result: make the item again")
    return of
