"""The file of answers: a CSV of path,label,answer that `ordisco learn` takes, a line an answer.

A line is on the disk before the answer counts. What a crash left of half a line is cut off when the file is opened
again. While nobody labels, the images that have no answer stand at the end, so that the file is the whole delivery.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import filelock

from ordisco.errors import OrdiscoError
from ordisco.files import open_plain, read_plain, text_bytes, told_in_one_line, write_all, write_atomically

HEAD = ("path", "label", "answer")
GIVEN, SKIPPED, NONE = "given", "skipped", "none"
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Answer:
    """What was said of an image; no label: it was skipped."""

    path: str
    label: str | None

    def row(self) -> bytes:
        """Its line."""
        return line(self.path, self.label or "", SKIPPED if self.label is None else GIVEN)


def line(*fields: str) -> bytes:
    """A line of CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text_bytes(text.getvalue())


def can_be_listed(path: str) -> bool:
    """Can the file's name stand in such a list, and be found again?"""
    return path.isprintable() and path == path.strip()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else writes the file meanwhile; a crash gives up the lock."""
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), timeout=0)
    with told_in_one_line("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except filelock.Timeout:
            raise OrdiscoError(f"{path} is being written by another `ordisco label`: close that one first") from None
    try:
        yield
    finally:
        lock.release()


class AnswerFile:
    """The file, open for the next answer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: list[Answer] = read_answers(path)
        lines = [answer.row() for answer in self.answers]
        self._ends = [len(line(*HEAD))]  # how long the file is after each answer
        for each in lines:
            self._ends.append(self._ends[-1] + len(each))
        write_atomically(path, line(*HEAD) + b"".join(lines))
        with told_in_one_line("write", path):
            self._file = open_plain(path, os.O_WRONLY)

    def add(self, answer: Answer) -> None:
        """Write an answer and wait until the disk has it; after a failure the file is as before."""
        data = answer.row()
        with told_in_one_line("write", self.path):
            try:
                os.lseek(self._file, self._ends[-1], os.SEEK_SET)
                write_all(self._file, data)
                os.fsync(self._file)
            except OSError:
                os.ftruncate(self._file, self._ends[-1])
                raise
        self.answers.append(answer)
        self._ends.append(self._ends[-1] + len(data))

    def take_back(self) -> Answer:
        """Cut off the last answer."""
        with told_in_one_line("write", self.path):
            os.ftruncate(self._file, self._ends[-2])
            os.fsync(self._file)
        self._ends.pop()
        return self.answers.pop()

    def close(self, without_answer: Sequence[str]) -> None:
        """Add the images that have no answer and close the file; a second call does nothing."""
        if self._file < 0:
            return
        os.close(self._file)
        self._file = -1
        rest = [line(path, "", NONE) for path in without_answer]
        write_atomically(self.path, b"".join([line(*HEAD), *(answer.row() for answer in self.answers), *rest]))


def read_answers(path: Path) -> list[Answer]:
    """The answers of a file, in their order; none where there is no file."""
    if not os.path.lexists(path):
        return []
    with told_in_one_line("read", path):
        data = read_plain(path, MOST_BYTES)
    whole = data[: data.rfind(b"\n") + 1].decode("utf-8", "surrogateescape")
    try:
        rows = list(csv.reader(io.StringIO(whole, newline=""), strict=True))
    except csv.Error as error:
        raise OrdiscoError(f"{path}: cannot be read as CSV ({error}); give another --out") from error
    if data and (not rows or tuple(rows[0]) != HEAD):
        raise OrdiscoError(
            f"{path}: its first line is not {','.join(HEAD)}, so it is no list of answers: give another --out"
        )
    answers: dict[str, Answer] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(HEAD) or row[2] not in (GIVEN, SKIPPED, NONE) or (row[2] == GIVEN) != bool(row[1]):
            raise OrdiscoError(f"{path}, line {number}: not an answer; mend the line, or give another --out")
        if row[0] in answers:
            raise OrdiscoError(f"{path}, line {number}: a second answer for {row[0]}; take one away")
        if row[2] != NONE:
            answers[row[0]] = Answer(row[0], row[1] or None)
    return list(answers.values())
