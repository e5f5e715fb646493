"""Studies as data: a TOML file with a table for each study.

    [rows]
    both = [{ name = "SMB", method = "smb" }, { name = "ORDisCo", method = "ordisco", purpose = "is it better?" }]

    [my-study]
    title = "Two methods on the digits"
    stream = "digits-5-new-class"
    seeds = 3                                 # 0, 1, 2; or a list of seeds
    reference = "SMB"                         # differences are to this row
    rows = "both"                             # a shared list, a list of rows, or "methods" for all of them
    changes = { unlabeled_loss = "fixmatch" } # settings of `ordisco run`, for all rows

`ceiling` names the row to which the gap from the reference is taken, `judged = true` has generated images judged,
`preset` names the preset. A row may have `changes` of its own, which come after those of the study.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ordisco.errors import OrdiscoError, UsageError, shown
from ordisco.files import read_plain, told_in_one_line
from ordisco.runs.config import FIELDS, RunConfig
from ordisco.settings.methods import METHODS, method
from ordisco.studies.study import Row, Study

SHARED = "rows"  # the table of shared lists of rows
EVERY = "methods"  # the list that is always there: every method under its title
MOST_BYTES, MOST_ROWS = 1 << 22, 10_000
STUDY_FIELDS: dict[str, tuple[type, ...]] = {
    "title": (str,),
    "stream": (str,),
    "rows": (str, list),
    "seeds": (int, list),
    "preset": (str,),
    "reference": (str,),
    "ceiling": (str,),
    "judged": (bool,),
    "changes": (dict,),
}
WORDS = {str: "a text", int: "a number", list: "a list", bool: "true or false", dict: "a table"}
ROW_FIELDS: dict[str, tuple[type, ...]] = {"name": (str,), "method": (str,), "purpose": (str,), "changes": (dict,)}


def study_names(file: Path) -> dict[str, str]:
    """The studies of a file and their titles."""
    return {name: str(values["title"]) for name, values in tables(file).items() if name != SHARED}


def read_study(file: Path, name: str, *, runs_at_once: int = 1, data_dir: str | None = None) -> Study:
    """One study of a file; what is wrong with it is one line that names the file, the study and the row."""
    content = tables(file)
    if name == SHARED or name not in content:
        known = ", ".join(other for other in content if other != SHARED)
        raise UsageError(f"study {shown(name)} is not in {file}: one of {known}")
    machine = {} if data_dir is None else {"data_dir": data_dir}
    try:
        return study_of(content[name], content.get(SHARED, {}), machine, runs_at_once)
    except OrdiscoError as error:
        raise UsageError(f"{file}, study {name!r}: {error}") from error


def tables(file: Path) -> dict[str, dict[str, Any]]:
    """The tables of the file, each a study with known fields but for the shared rows."""
    with told_in_one_line("read", file):
        data = read_plain(file, MOST_BYTES)
    try:
        content = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file} is not valid TOML: {error}") from error
    for name, values in content.items():
        if not isinstance(values, dict):
            raise UsageError(f"{file}: {shown(name)} is not allowed: a table is needed, such as [{name}]")
        if name != SHARED:
            try:
                check_fields(values, STUDY_FIELDS, ("title", "stream", "rows"))
            except UsageError as error:
                raise UsageError(f"{file}, study {name!r}: {error}") from error
    return content


def study_of(
    values: Mapping[str, Any], shared: Mapping[str, Any], machine: Mapping[str, Any], runs_at_once: int = 1
) -> Study:
    """A study made of the values of its table; `machine` are settings that change no outcome."""
    seeds, listed = seeds_of(values.get("seeds", 1)), rows_of(values["rows"], shared)
    count = len(seeds) * len(listed)
    if not 0 < count <= MOST_ROWS:
        raise UsageError(f"{count} rows are not allowed: from 1 to {MOST_ROWS}, seeds included")
    rows: list[Row] = []
    for place, row in enumerate(listed, start=1):
        called = row.get("name", f"number {place}") if isinstance(row, dict) else f"number {place}"
        try:
            check_fields(row, ROW_FIELDS, ("name", "method"))
            changes = settings_of(values) | settings_of(row)
            for seed in seeds:
                config = RunConfig.resolve(
                    values["stream"],
                    row["method"],
                    values.get("preset"),
                    seed,
                    runs_at_once=runs_at_once,
                    **{**machine, **changes},
                )
                judged = values.get("judged", False) and method(config.method).gan
                rows.append(Row(row["name"], config, row.get("purpose", ""), judged))
        except UsageError as error:
            raise UsageError(f"row {shown(called)}: {error}") from error
    return Study(values["title"], tuple(rows), values.get("reference"), values.get("ceiling"))


def settings_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The changes of a study or a row, which must be settings of a run."""
    changes: dict[str, Any] = values.get("changes", {})
    for name in changes:
        if name not in FIELDS:
            raise UsageError(f"{shown(name)} in changes is no setting of a run (see `ordisco run --help`)")
    return changes


def rows_of(rows: str | list[Any], shared: Mapping[str, Any]) -> list[Any]:
    """The list itself, the shared one of that name, or a row for every method."""
    if isinstance(rows, list):
        return rows
    found = shared.get(rows)
    if isinstance(found, list):
        return found
    if rows == EVERY:
        return [{"name": row.title, "method": row.name} for row in METHODS.values()]
    known = ", ".join(shared) or "none"
    raise UsageError(
        f"rows = {shown(rows)} is not allowed: a list of rows, the name of one in [rows] ({known}), or {EVERY!r}"
    )


def seeds_of(seeds: int | list[Any]) -> list[int]:
    """So many seeds from 0 on, or those of the list."""
    found = list(range(min(seeds, MOST_ROWS + 1))) if isinstance(seeds, int) else seeds
    if not found or any(type(seed) is not int for seed in found) or len(set(found)) < len(found):
        raise UsageError(f"seeds = {shown(seeds)} is not allowed: a number from 1, or a list of different seeds")
    return found


def check_fields(values: Any, known: Mapping[str, tuple[type, ...]], needed: tuple[str, ...]) -> None:
    """Refuse what is not a table, an unknown field, one that is missing, and one of another type."""
    if not isinstance(values, dict):
        raise UsageError(f"{shown(values)} is not allowed: a table such as {{ name = …, method = … }}")
    for name in needed:
        if name not in values:
            raise UsageError(f"the field {name!r} is missing")
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"the field {shown(name)} is not allowed: one of {', '.join(known)}")
        if not isinstance(value, known[name]) or (isinstance(value, bool) and bool not in known[name]):
            raise UsageError(
                f"{name} = {shown(value)} is not allowed: {' or '.join(WORDS[kind] for kind in known[name])}"
            )
