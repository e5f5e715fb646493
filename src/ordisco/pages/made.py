"""How something was made, in words: commands, code, machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordisco.report.html import Html, join, tag

NONE = "—"


def facts_table(facts: Mapping[str, str]) -> Html:
    """A row a fact."""
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in facts.items()]
    return tag("table", tag("tbody", join(rows)), class_="facts")


def code_words(codes: Sequence[Any]) -> str:
    """`0.2.0, commit 1a2b…, changed` of each; what is no code is passed over, as it was read from a file."""
    found = []
    for code in codes:
        if isinstance(code, Mapping):
            commit = f", commit {code['commit']}" if code.get("commit") else ""
            found.append(f"ordisco {code.get('version')}{commit}" + (", changed" if code.get("dirty") else ""))
    return "; ".join(found) or NONE


def machine_words(machines: Sequence[Any]) -> str:
    """`AMD EPYC, 1 thread, 32-true, torch 2.13, Python 3.11` of each."""
    found = []
    for machine in machines:
        if isinstance(machine, Mapping):
            threads = machine.get("threads")
            words = (
                machine.get("processor"),
                None if threads is None else f"{threads} thread{'' if threads == 1 else 's'}",
                machine.get("precision"),
                machine.get("torch") and f"torch {machine['torch']}",
                machine.get("python") and f"Python {machine['python']}",
            )
            found.append(", ".join(str(word) for word in words if word))
    return "; ".join(found) or NONE
