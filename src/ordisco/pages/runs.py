"""The page of runs: compared by stream, then one by one with settings, pictures and confusion."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.evaluation.record import IncrementRecord
from ordisco.files import json_of, read_plain, write_atomically
from ordisco.pages.glance import Glance, glance
from ordisco.pages.made import code_words, facts_table, machine_words
from ordisco.report.charts import Series, curves
from ordisco.report.html import Html, join, tag, text
from ordisco.report.page import Section, code, details, page, png_in, scrolling, slider, table
from ordisco.report.summary import COLUMNS, cell
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory
from ordisco.runs.made import code_now
from ordisco.runs.summary import increments_of
from ordisco.settings.methods import METHODS
from ordisco.streams.settings import name_of_increment
from ordisco.studies.study import Row
from ordisco.words import duration, percent, shortened

MOST_WHOLE = 24  # runs that are shown one by one; of more, a page would be too large to open
MOST_LINES = 16  # of one chart
MOST_CLASSES = 30  # of a confusion matrix that is shown


def write_report(path: Path, runs: Sequence[Path], title: str = "Runs") -> None:
    """Write the page of these runs."""
    write_atomically(path, report(runs, title))


def report(runs: Sequence[Path], title: str = "Runs", refresh: int | None = None) -> bytes:
    """The page of these runs."""
    now = code_now()
    made = f"ordisco {now['version']}" + (f", commit {now['commit'][:12]}" if now["commit"] else "")
    lead = text(f"{len(runs)} run{'s' if len(runs) != 1 else ''}, {time.strftime('%Y-%m-%d %H:%M')}, {made}.")
    if refresh is not None:
        lead = join([tag("a", "all runs", href="/"), " · ", lead])
    sections = compared(runs) if len(runs) > 1 else []
    sections += [one(path) for path in runs[:MOST_WHOLE]]
    if len(runs) > MOST_WHOLE:
        note = f"Only the first {MOST_WHOLE} of {len(runs)} runs follow one by one."
        sections.insert(
            1, Section("more", "More runs", table(("run", "accuracy"), [short(glance(r)) for r in runs]), note)
        )
    return page(title, lead, sections, refresh)


def short(run: Glance) -> tuple[str, str]:
    """A run in a line."""
    return run.path.name, percent(run.accuracies[-1]) if run.accuracies else "—"


# ---------------------------------------------------------------------- side by side


def compared(runs: Sequence[Path]) -> list[Section]:
    """A chart for each stream: runs that differ in their seed alone make one line."""
    streams: dict[str, dict[str, list[tuple[dict[str, Any], Sequence[float]]]]] = {}
    for path in runs:
        settings, records = settings_of(path), records_of(path)
        if settings and records:
            stream = json.dumps([settings.get("stream_name"), settings.get("stream")], sort_keys=True)
            line = json.dumps([settings.get("method"), settings.get("preset"), settings.get("learner")], sort_keys=True)
            accuracies = [100 * record.accuracy for record in records]
            streams.setdefault(stream, {}).setdefault(line, []).append((settings, accuracies))
    sections = []
    for number, lines in enumerate(streams.values(), start=1):
        note = "Accuracy on the test images of all classes seen; the band is the standard deviation over seeds."
        first = next(iter(lines.values()))[0][0]
        names = names_of([line[0][0] for line in lines.values()])
        series = [Series(name, [seed[1] for seed in line]) for name, line in zip(names, lines.values(), strict=True)]
        if len(series) > MOST_LINES:
            series = sorted(series, key=lambda one: -one.mean(one.length - 1))[:MOST_LINES]
            note += f" Of {len(lines)} lines the {MOST_LINES} best at the end."
        x_label = name_of_increment(first.get("stream", {}).get("scenario", ""))
        heading = f"Compared: {first.get('stream_name')}"
        sections.append(Section(f"compared-{number}", heading, curves(series, x_label), note))
    return sections


def names_of(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The method of each line, and where two lines have the same one, the settings in which they differ."""
    methods = [str(one.get("method")) for one in settings]
    names = []
    for place, one in enumerate(settings):
        name = METHODS[methods[place]].title if methods[place] in METHODS else methods[place]
        twins = [flat(other) for other, its in zip(settings, methods, strict=True) if its == methods[place]]
        mine = flat(one)
        changed = [key for key in mine if any(twin.get(key) != mine[key] for twin in twins)]
        names.append(name + "".join(f", {key} = {mine[key]}" for key in changed[:4]))
    return names


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The learner's settings by their names, and the preset."""
    groups = settings.get("learner", {})
    found = {"preset": settings.get("preset")}
    for group in groups.values() if isinstance(groups, dict) else ():
        found |= group
    return found


# ---------------------------------------------------------------------- one by one


def one(path: Path) -> Section:
    """A run: state, table, curve of its accuracies, pictures, confusion, settings."""
    short, settings = glance(path), settings_of(path)
    title = METHODS[settings["method"]].title if settings.get("method") in METHODS else path.name
    heading = f"{title} on {settings.get('stream_name')}, seed {settings.get('seed')}" if settings else path.name
    state = "finished" if short.finished else "damaged" if short.fault else "going"
    words = {"finished": "finished", "damaged": short.fault, "going": f"not finished: {short.place}"}[state]
    parts: list[Html | None] = [tag("p", words, class_=f"state {state}")]
    try:
        records = increments_of(RunDirectory.open(path))
    except OrdiscoError as error:
        return Section(anchor(path), heading, join([*parts, tag("p", str(error), class_="note half")]), str(path))
    if records:
        parts += [accuracy_chart(title, records, settings), details("increment by increment", record_table(records))]
        parts.append(tag("div", samples(path), confusion(records[-1]), class_="pair"))
    parts.append(details("settings and command", settings_part(path, settings)))
    return Section(anchor(path), heading, join(parts), str(path))


def anchor(path: Path) -> str:
    """The name of a run's section."""
    return f"run-{path.name}"


def accuracy_chart(title: str, records: Sequence[IncrementRecord], settings: Mapping[str, Any]) -> Html:
    """Accuracy under the method's name, of the pseudo-labels, and of generated images by a judge."""
    found: dict[str, list[float]] = {}
    for record in records:
        for name, share in record.shares.items():
            words = title if name == "accuracy" else name.replace("_", " ")
            found.setdefault(words, []).append(100 * share)
    whole = {name: values for name, values in found.items() if len(values) == len(records)}
    x_label = name_of_increment(settings.get("stream", {}).get("scenario", ""))
    return curves([Series(name, [values]) for name, values in whole.items()], x_label)


def record_table(records: Sequence[IncrementRecord]) -> Html:
    """A row an increment, as in the run's summary."""
    columns = [key for key in COLUMNS if any(getattr(record, key) is not None for record in records)]
    rows = [[cell(getattr(record, key), COLUMNS[key][1]) for key in columns] for record in records]
    return table([COLUMNS[key][0] for key in columns], rows)


def samples(path: Path) -> Html | None:
    """The grids of generated images, an increment each, under a slider."""
    grids = [(file.stem.replace("-", " "), png_in(file)) for file in sorted((path / "samples").glob("*.png"))]
    frames = [(name, png) for name, png in grids if png]
    if not frames:
        return None
    return tag("div", slider(frames, "Generated images, a row a class", len(frames)), class_="grids")


def confusion(record: IncrementRecord) -> Html | None:
    """Which class is taken for which after the last increment, in % of the true class."""
    names = list(record.per_class)
    matrix = record.confusion
    if not names or len(matrix) > MOST_CLASSES:
        return None
    seen = [place for place, row in enumerate(matrix) if sum(row)]
    labels = dict(zip(seen, names, strict=False))
    head = [tag("th", "true ↓ predicted →"), *(tag("th", shortened(labels.get(p, "?"), 10)) for p in seen)]
    rows = []
    for place in seen:
        total = sum(matrix[place])
        cells = [tag("th", shortened(labels.get(place, "?"), 18), scope="row")]
        for other in seen:
            share = matrix[place][other] / total
            kind = "dark" if share > 0.55 else None
            cells.append(
                tag("td", f"{100 * share:.0f}" if share >= 0.005 else "", style=f"--s:{share:.3f}", class_=kind)
            )
        rows.append(tag("tr", join(cells)))
    body = tag("table", tag("thead", tag("tr", join(head))), tag("tbody", join(rows)), class_="confusion")
    heading = tag("h3", f"Confusion after increment {record.increment}, in % of the true class")
    return tag("div", heading, scrolling(body))


def settings_part(path: Path, settings: Mapping[str, Any]) -> Html:
    """The command that makes the run, the code that made it, and all its settings."""
    facts: dict[str, str] = {"directory": str(path)}
    try:
        facts["command"] = Row("", RunConfig.from_dict({**settings})).command
    except (OrdiscoError, KeyError, TypeError, ValueError) as error:
        facts["command"] = f"not known to this version ({error})"
    summary = json_in(path / "summary.json")
    known = summary if isinstance(summary, dict) else {}
    noted = json_in(path.with_name(f"{path.name}.code.json"))  # of all sessions of a run, where a study keeps it
    codes = noted if isinstance(noted, list) else [known.get("code")]
    facts |= {"code": code_words(codes), "machine": machine_words([known.get("machine")])}
    if isinstance(known.get("seconds"), int | float):
        facts["time"] = duration(known["seconds"])
    lines = []
    for name, value in settings.items():
        if isinstance(value, dict):
            lines += [f"{name}.{key} = {json.dumps(item, ensure_ascii=False)}" for key, item in walked(value)]
        else:
            lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
    return join([facts_table(facts), code(lines)])


def walked(values: Mapping[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """Nested settings, a dotted name each."""
    found: list[tuple[str, Any]] = []
    for key, value in values.items():
        found += walked(value, f"{before}{key}.") if isinstance(value, dict) else [(f"{before}{key}", value)]
    return found


# ---------------------------------------------------------------------- reading


def settings_of(path: Path) -> dict[str, Any]:
    """The settings of a run, none where they cannot be read."""
    import tomllib

    try:
        return tomllib.loads(read_plain(path / "settings.toml", 1 << 20).decode())
    except (OSError, ValueError, RecursionError):
        return {}


def records_of(path: Path) -> list[IncrementRecord]:
    """The records of a run, none where they cannot be read."""
    try:
        return increments_of(RunDirectory.open(path))
    except OrdiscoError:
        return []


def json_in(path: Path) -> Any:
    """What a file says, None where there is none."""
    try:
        return json_of(read_plain(path))
    except (OSError, ValueError):
        return None
