"""`ordisco data`: list the data sets, fetch them, check them."""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any

from ordisco.cli.options import path as path_of
from ordisco.errors import OrdiscoError, OrdiscoWarning, UsageError, readable
from ordisco.streams.catalogue import check_dataset
from ordisco.streams.settings import DATASETS
from ordisco.words import size


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its actions."""
    parser = subparsers.add_parser(
        "data",
        help="list, fetch and check the data sets",
        description="Say which data sets are there. `fetch` downloads them from their publishers; `check` "
        "compares the files with the publishers' checksums and decodes them.",
    )
    parser.add_argument("action", nargs="?", choices=("list", "fetch", "check"), default="list")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(DATASETS)}, or (check) a path")
    parser.add_argument(
        "--data-dir", type=path_of, help="folder of the data files (default: ORDISCO_DATA, else a cache)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--strict", action="store_true", help="check: an own image that cannot be decoded is an error")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Do what was asked; the exit code is 1 if a check found something wrong."""
    from ordisco.data.catalogue import entry_of
    from ordisco.data.sources import data_directory, obtain

    root = data_directory(args.data_dir)
    if args.action != "list" and not args.names:
        raise UsageError(f"name what to {args.action}: one or more of {', '.join(DATASETS)}")
    if args.action == "check":
        for name in args.names:
            check_dataset(name)
        rows = [_check(name, root, args.strict) for name in args.names]
    else:
        names = args.names or DATASETS
        for name in names:
            entry_of(name)  # refuses an unknown name before anything is fetched
        if args.action == "fetch":
            for name in names:
                obtain(name, root)
        rows = [_state(name, root) for name in names]
    _show(rows, args.json, f"data sets in {root}")
    return 1 if args.action == "check" and any("train" not in row for row in rows) else 0


def _state(name: str, root: Path) -> dict[str, Any]:
    from ordisco.data.catalogue import entry_of

    files = [root / source.filename for source in entry_of(name).sources]
    present = [path for path in files if os.path.isfile(path)]
    if not files:
        state = "embedded"
    else:
        state = "present" if len(present) == len(files) else "missing" if not present else "incomplete"
    return {
        "name": name,
        "state": state,
        "files": [{"path": str(path), "bytes": path.stat().st_size if path in present else None} for path in files],
        "decoded": len(list((root / "cache").glob(f"{name}-*.safetensors"))),
    }


def _check(name: str, root: Path, strict: bool) -> dict[str, Any]:
    """Checksums and a full decoding of one data set, whatever the cache holds."""
    from ordisco.data.load import load

    row: dict[str, Any] = _state(name, root) if name in DATASETS else {"name": name, "state": "present"}
    if row["state"] in ("missing", "incomplete"):
        return row
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OrdiscoWarning)
        try:
            dataset = load(name, root, strict=strict, download=False, fresh=True)
        except UsageError:
            raise
        except OrdiscoError as error:
            return row | {"state": "damaged", "notes": [str(error)]}
    if row["state"] != "embedded":
        row["state"] = "readable" if name not in DATASETS else "differs" if caught else "verified"
    return row | {
        "notes": [str(warning.message) for warning in caught],
        "train": len(dataset.train),
        "test": len(dataset.test),
        "classes": dataset.num_classes,
        "image_shape": list(dataset.image_shape),
        "sha256": dataset.checksum(),
    }


def _show(rows: list[dict[str, Any]], as_json: bool, title: str) -> None:
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title=Text(readable(title), style="table.title"))
    checked = any("train" in row for row in rows)
    for column in ("data set", "state", *(("train", "test", "classes", "shape") if checked else ("files",))):
        table.add_column(column)
    for row in rows:
        if checked:
            shape = "×".join(str(side) for side in row.get("image_shape", []))
            cells = [f"{row[key]:,}" if key in row else "" for key in ("train", "test", "classes")] + [shape]
        else:
            cells = ["\n".join(_file_text(file) for file in row.get("files", []))]
        table.add_row(*(Text(cell) for cell in (readable(row["name"]), row["state"], *cells)))
    console.print(table)
    for row in rows:
        for note in row.get("notes", []):
            console.print(readable(f"{row['name']}: {note}"), soft_wrap=True, highlight=False, markup=False)


def _file_text(file: dict[str, Any]) -> str:
    name = Path(file["path"]).name
    return f"{name}  {size(file['bytes'])}" if file["bytes"] is not None else f"{name}  (not there)"
