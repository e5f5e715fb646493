"""What is shown next, and what was said."""

from pathlib import Path

import pytest

from ordisco.errors import OrdiscoError
from ordisco.label.answers import Answer, AnswerFile, read_answers
from ordisco.label.session import Guess, NotNow, Session

PATHS = ["a.png", "b.png", "c.png", "d.png"]


def session(folder: Path, order: tuple[int, ...] = (2, 0, 1, 3)) -> Session:
    guesses = {2: Guess("shoe", 0.75)}
    return Session(PATHS, order, ["boot", "shoe"], guesses, AnswerFile(folder / "labels.csv"))


def test_the_order_is_kept_and_every_answer_is_saved(tmp_path: Path):
    mine = session(tmp_path)
    assert mine.current == 2
    assert mine.state() == {
        "image": 2,
        "ahead": [0, 1, 3],
        "done": 0,
        "skipped": 0,
        "total": 4,
        "classes": [{"name": "boot", "count": 0}, {"name": "shoe", "count": 0}],
        "guess": {"label": "shoe", "confidence": 0.75},
        "last": None,
    }
    mine.say(2, "shoe")
    mine.say(0, None)
    mine.say(1, " clog ")
    assert read_answers(tmp_path / "labels.csv") == [
        Answer("c.png", "shoe"),
        Answer("a.png", None),
        Answer("b.png", "clog"),
    ]
    state = mine.state()
    assert (state["image"], state["done"], state["skipped"], state["ahead"]) == (3, 3, 1, [])
    assert state["classes"][1:] == [{"name": "shoe", "count": 1}, {"name": "clog", "count": 1}]
    assert state["last"] == {"image": 1, "label": "clog"}
    mine.say(3, "CLOG")
    assert mine.state()["classes"][2] == {"name": "clog", "count": 2}
    assert mine.current is None


def test_an_answer_for_another_image_changes_nothing(tmp_path: Path):
    mine = session(tmp_path)
    mine.say(2, "shoe")
    before = mine.state()
    for number in (2, 3, -1, 99):
        with pytest.raises(NotNow):
            mine.say(number, "boot")
    assert mine.state() == before


def test_undo_goes_back_as_far_as_one_likes(tmp_path: Path):
    mine = session(tmp_path)
    states = []
    for number, label in ((2, "new"), (0, None), (1, "boot"), (3, "shoe")):
        states.append(mine.state())
        mine.say(number, label)
    for state in reversed(states):
        mine.undo()
        assert mine.state() == state
    with pytest.raises(NotNow, match="no answer"):
        mine.undo()
    assert read_answers(tmp_path / "labels.csv") == []


def test_a_second_session_goes_on_where_the_first_ended(tmp_path: Path):
    first = session(tmp_path)
    first.say(2, "clog")
    first.say(0, "shoe")
    first.close()
    second = session(tmp_path, order=(3, 1, 0, 2))
    assert (second.current, second.state()["done"]) == (3, 2)
    assert [each["name"] for each in second.state()["classes"]] == ["boot", "shoe", "clog"]
    second.undo()  # of what the first session said last
    assert second.current == 0
    second.say(0, "boot")
    assert second.current == 3
    second.close()
    rows = (tmp_path / "labels.csv").read_text().splitlines()
    assert rows[1:] == ["c.png,clog,given", "a.png,boot,given", "b.png,,none", "d.png,,none"]


@pytest.mark.parametrize("label", ["", "  ", "a" * 101, "a\nb", "a\0"])
def test_names_that_are_none(label: str, tmp_path: Path):
    mine = session(tmp_path)
    with pytest.raises(OrdiscoError, match="name"):
        mine.say(2, label)
    assert mine.state()["done"] == 0


def test_answers_for_other_images_are_not_mixed_in(tmp_path: Path):
    file = AnswerFile(tmp_path / "labels.csv")
    file.add(Answer("elsewhere.png", "shoe"))
    with pytest.raises(OrdiscoError, match=r"elsewhere\.png, which is no image here"):
        session(tmp_path)


def test_ten_thousand_images(tmp_path: Path):
    paths = [f"{index:05d}.png" for index in range(10_000)]
    mine = Session(paths, range(10_000), ["a"], {}, AnswerFile(tmp_path / "labels.csv"))
    for number in range(300):
        mine.say(number, "a")
    assert mine.state()["image"] == 300
    assert (tmp_path / "labels.csv").stat().st_size < 300 * 25  # an answer costs a line, not a file
