"""The summary of a run in Markdown: what it was, a row an increment, its figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ordisco.errors import one_line
from ordisco.evaluation.record import IncrementRecord
from ordisco.report.table import markdown_table
from ordisco.words import duration, percent, size

# key of an increment's record → heading and form; what no record has is left out
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "increment": ("increment", str),
    "classes_seen": ("classes", str),
    "accuracy": ("accuracy", percent),
    "pseudo_label_accuracy": ("pseudo-labels", percent),
    "trusted_share": ("trusted", percent),
    "trusted_accuracy": ("right of these", percent),
    "penalty_ratio": ("penalty / loss", "{:.1e}".format),
    "generated_accuracy": ("generated", percent),
    "seconds": ("time", duration),
    "peak_memory_bytes": ("peak memory", size),
    "kept_bytes": ("kept", size),
}


def run_summary_markdown(
    title: str,
    facts: Mapping[str, str],
    records: Sequence[IncrementRecord],
    figures: Sequence[tuple[str, str]] = (),
) -> str:
    """A heading, facts as a list, a table with a row an increment, and (caption, relative path) figures."""
    parts = [f"# {one_line(title)}\n"]
    if facts:
        parts.append("".join(f"- {name}: {one_line(value)}\n" for name, value in facts.items()))
    columns = [key for key in COLUMNS if any(getattr(record, key) is not None for record in records)]
    if columns:
        rows = [[cell(getattr(record, key), COLUMNS[key][1]) for key in columns] for record in records]
        parts.append(markdown_table([COLUMNS[key][0] for key in columns], rows))
    parts += [f"![{caption}](<{path}>)\n" for caption, path in figures]
    return "\n".join(parts)


def cell(value: Any, form: Callable[[Any], str]) -> str:
    """The value in its form, or a dash where there is none."""
    return "–" if value is None else form(value)
