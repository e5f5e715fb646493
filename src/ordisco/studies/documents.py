"""Tables in Markdown documents, filled from results.

A block begins with a line `<!-- KIND NAME -->` and ends with a line `<!-- end -->`; between them is what the results
give now. KIND is `study`, or `paper` for an item of the paper. After the NAME of a study may follow `--only A, B`,
`--seeds 0, 1`, `--against ROW`, `--over 2-4`, `--reach PERCENT`, `--each MEASURE` for a table with a column an
increment, `--frontier STEPS` for one with a row a method, `--measures none` for one of accuracy, seconds and bytes
alone, and `--results FOLDER`, a folder of other results of the same rows, such as those of earlier code, below the
results.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ordisco.errors import OrdiscoError, UsageError
from ordisco.files import read_plain, text_bytes, text_of, told_in_one_line, write_atomically
from ordisco.studies.each import check_measure, each_increment
from ordisco.studies.frontier import frontier_table
from ordisco.studies.results import Results
from ordisco.studies.study import Study
from ordisco.studies.table import Span, accuracy_of, grouped, table_of

END = "<!-- end -->"
OPTIONS = ("only", "seeds", "against", "over", "reach", "each", "frontier", "measures", "results")


@dataclass(frozen=True)
class Block:
    """What a block asks for."""

    study: str
    only: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    against: str | None = None
    over: Span | None = None
    reach: float | None = None
    each: str | None = None
    frontier: int | None = None
    measures: bool = True
    results: str | None = None

    @staticmethod
    def read(words: str) -> Block:
        """`NAME --only A, B --against C`."""
        name, *parts = re.split(r"\s+--(?=[a-z]+\b)", words)
        given: dict[str, str] = {}
        for part in parts:
            option, _, value = part.partition(" ")
            if option not in OPTIONS or not value.strip() or option in given:
                raise UsageError(f"--{part} is not allowed: one of {', '.join(f'--{known}' for known in OPTIONS)}")
            given[option] = value.strip()
        seeds = listed(given.get("seeds"))
        if seeds is not None and not all(seed.isdecimal() for seed in seeds):
            raise UsageError(f"--seeds {given['seeds']} is not allowed: numbers with commas between them")
        return Block(
            name,
            listed(given.get("only")),
            None if seeds is None else tuple(int(seed) for seed in seeds),
            given.get("against"),
            Span.read(given["over"]) if "over" in given else None,
            accuracy_of(given["reach"]) if "reach" in given else None,
            check_measure(given["each"]) if "each" in given else None,
            budget(given["frontier"]) if "frontier" in given else None,
            measured(given.get("measures")),
            given.get("results"),
        )

    def table(self, study: Study, results: Results) -> str:
        """The table in Markdown, without times by the clock; one for each stream under its name."""
        study = study.against(self.against)
        results = results if self.results is None else Results(results.path / self.results)
        streams = grouped(results.read_all(study.chosen(self.only, self.seeds)))
        if not streams:
            raise OrdiscoError("it has no results yet")
        parts = []
        for stream, groups in streams.items():
            heading = [f"{stream}:\n"] if len(streams) > 1 else []
            if self.each is not None:
                table = each_increment(groups, self.each)
            elif self.frontier is not None:
                table = frontier_table(groups, self.frontier, study.reference)
            else:
                table = table_of(groups, study.reference, study.ceiling, self.over, False, self.reach, self.measures)
            parts += [*heading, table.markdown()]
        return "\n".join(parts)


def budget(text: str) -> int:
    """The steps of a frontier."""
    if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
        raise UsageError(f"--frontier {text} is not allowed: a number of steps, such as 300")
    return int(text)


def measured(text: str | None) -> bool:
    """Does a table tell of pseudo-labels, penalties and samples, too?"""
    if text not in (None, "none"):
        raise UsageError(f"--measures {text} is not allowed: none, or left out")
    return text is None


def listed(text: str | None) -> tuple[str, ...] | None:
    """The parts between commas; one that has a comma itself stands in double quotes."""
    return None if text is None else tuple(part.strip() for part in next(csv.reader([text], skipinitialspace=True)))


def fill(document: Path, kind: str, content: Callable[[str], str], check: bool = False) -> list[str]:
    """Put the current content into the blocks of one kind; gives the blocks that were out of date.

    `content` makes the Markdown of a block from the words after its kind. With `check` nothing is written.
    """
    begins = re.compile(rf"^<!-- *{kind} +(?P<words>.*?) *-->$", re.MULTILINE)
    with told_in_one_line("read", document):
        before = text_of(read_plain(document))
    text, stale, place = [], [], 0
    while begin := begins.search(before, place):
        words = begin["words"]
        end, following = before.find(f"\n{END}\n", begin.end()) + 1, begins.search(before, begin.end())
        if not end or (following and following.start() < end):
            raise UsageError(f"{document}: the block `{kind} {words}` has no {END}")
        try:
            now = f"\n\n{content(words)}\n"
        except OrdiscoError as error:
            raise type(error)(f"{document}, block `{kind} {words}`: {error}") from error
        if before[begin.end() : end] != now:
            stale.append(words)
        text += [before[place : begin.end()], now]
        place = end
    if not text:
        raise UsageError(f"{document} has no block `<!-- {kind} NAME -->`")
    if stale and not check:
        write_atomically(document, text_bytes("".join([*text, before[place:]])))
    return stale


def fill_studies(document: Path, study: Callable[[str], Study], results: Results, check: bool = False) -> list[str]:
    """Put the current tables of studies into a document."""

    def content(words: str) -> str:
        block = Block.read(words)
        return block.table(study(block.study), results)

    return fill(document, "study", content, check)


def tell(document: Path, kind: str, stale: list[str], check: bool) -> int:
    """Say what was written, or what is out of date, which is an exit code of 1."""
    if not check:
        print(f"{document}: {len(stale)} tables written")
        return 0
    for words in stale:
        print(f"{document}: the block `{kind} {words}` is out of date: fill it without --check")
    return 1 if stale else 0
