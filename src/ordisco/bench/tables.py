"""A report as Markdown tables, ready for `docs/benchmarks.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordisco.bench import here
from ordisco.bench.values import Report, Sections
from ordisco.report.table import markdown_table


def tables(report: Report) -> str:
    """Sections of the same rows stand side by side; the machine is named below."""
    parts = [table(title, columns) for title, columns in side_by_side(report.sections)]
    return "\n".join([*parts, here.words(report.machine)])


def side_by_side(sections: Sections) -> list[tuple[str, Sections]]:
    """The sections in groups by the word before the colon: `step: small, 1 thread` and `step: demo, 1 thread`."""
    groups: dict[str, Sections] = {}
    for title, rows in sections.items():
        kind, _, of = title.partition(": ")
        groups.setdefault(kind, {})[of] = rows
    return list(groups.items())


def table(title: str, columns: Sections) -> str:
    """A row a measurement, a column a section."""
    names = dict.fromkeys(name for rows in columns.values() for name in rows)
    cells = [[name, *(str(rows[name]) if name in rows else "—" for rows in columns.values())] for name in names]
    return markdown_table([title, *columns], cells)


def profile_tables(results: Mapping[str, Sequence[Mapping[str, Any]]], rows: int = 12) -> str:
    """The longest operations of each preset's step, and the sum of the others."""
    parts = []
    for name, operations in results.items():
        first, rest = operations[:rows], operations[rows:]
        others = {key: sum(part[key] for part in rest) for key in ("share", "seconds", "calls")}
        cells = [
            [part["name"], f"{100 * part['share']:.1f} %", f"{1000 * part['seconds']:.2f}", f"{part['calls']:.0f}"]
            for part in [*first, {"name": f"{len(rest)} others", **others}]
        ]
        parts.append(markdown_table([f"{name}, operation", "share of the step", "milliseconds", "calls"], cells))
    return "\n".join(parts)
