"""What is labelled, what is next and what was said: the state behind the page, without a word of HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.label.answers import Answer, AnswerFile

LONGEST_NAME = 100  # characters of a class's name


@dataclass(frozen=True)
class Guess:
    """What the model takes an image for."""

    label: str
    confidence: float


class NotNow(OrdiscoError):
    """An answer that does not fit: the page shows something else by now."""


class Session:
    """The images in the order in which they are shown, and the answers so far.

    An image is known by its number, its place in `paths`; names of files never leave the session.
    """

    def __init__(
        self,
        paths: Sequence[str],
        order: Sequence[int],
        classes: Sequence[str],
        guesses: Mapping[int, Guess],
        file: AnswerFile,
    ) -> None:
        self.paths, self._order, self._known, self._guesses, self._file = (
            list(paths),
            list(order),
            list(classes),
            guesses,
            file,
        )
        number_of = {path: number for number, path in enumerate(self.paths)}
        self._said: dict[int, Answer] = {}  # in the order of the answers
        for answer in file.answers:
            if answer.path not in number_of:
                raise OrdiscoError(
                    f"{file.path}: it has an answer for {answer.path}, which is no image here: give another --out"
                )
            self._said[number_of[answer.path]] = answer
        self._next = 0

    @property
    def classes(self) -> list[str]:
        """The model's classes, then those that came up here."""
        return list(dict.fromkeys([*self._known, *(each.label for each in self._said.values() if each.label)]))

    @property
    def current(self) -> int | None:
        """The number of the image to be labelled; None when all are."""
        while self._next < len(self._order) and self._order[self._next] in self._said:
            self._next += 1
        return self._order[self._next] if self._next < len(self._order) else None

    def say(self, number: int, label: str | None) -> None:
        """Answer for the image that is shown; None skips it. The answer is on the disk when this returns."""
        if number != self.current:
            raise NotNow("another image is shown by now")
        answer = Answer(self.paths[number], None if label is None else self.name_of(label))
        self._file.add(answer)
        self._said[number] = answer

    def undo(self) -> None:
        """Take back the last answer and show its image again."""
        if not self._said:
            raise NotNow("there is no answer to take back")
        number = next(reversed(self._said))
        self._file.take_back()
        del self._said[number]
        place = self._order.index(number)
        del self._order[place]
        self._next -= place < self._next
        self._order.insert(self._next, number)

    def name_of(self, label: str) -> str:
        """The class that a text means: a known one, whatever its case, or a new one."""
        from ordisco.data.dataset import folded  # which needs torch, and the page does not

        if not folded(label):
            raise OrdiscoError("a class needs a name")
        if len(label) > LONGEST_NAME or not label.strip().isprintable():
            raise OrdiscoError(f"a name has at most {LONGEST_NAME} characters, all printable")
        return next((name for name in self.classes if folded(name) == folded(label)), label.strip())

    def without_answer(self) -> list[str]:
        """The images that were not shown yet, in the order of their files."""
        return [path for number, path in enumerate(self.paths) if number not in self._said]

    def close(self) -> None:
        """Leave the file as a whole delivery."""
        self._file.close(self.without_answer())

    def state(self) -> dict[str, Any]:
        """What the page shows."""
        current, classes = self.current, self.classes
        counts = dict.fromkeys(classes, 0)
        for answer in self._said.values():
            if answer.label is not None:
                counts[answer.label] += 1
        guess = None if current is None else self._guesses.get(current)
        upcoming = [number for number in self._order[self._next : self._next + 8] if number not in self._said]
        return {
            "image": current,
            "ahead": upcoming[1:4],
            "done": len(self._said),
            "skipped": sum(answer.label is None for answer in self._said.values()),
            "total": len(self.paths),
            "classes": [{"name": name, "count": count} for name, count in counts.items()],
            "guess": None if guess is None else {"label": guess.label, "confidence": guess.confidence},
            "last": None if not self._said else _last(next(reversed(self._said.items()))),
        }


def _last(said: tuple[int, Answer]) -> dict[str, Any]:
    number, answer = said
    return {"image": number, "label": answer.label}
