"""Generated images as a folder."""

from pathlib import Path

import pytest

from conftest import increment_of, make_learner
from ordisco.data.own import list_images
from ordisco.data.picture import decode
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.model import samples
from ordisco.model.samples import folder_names, write_samples


@pytest.fixture(scope="module")
def learner() -> Learner:
    made = make_learner()
    made.learn(increment_of([4, 1, 4, 1], [1, 4]))
    return made


def test_a_folder_of_samples_can_be_read_again(learner: Learner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(samples, "CHUNK", 4)
    out = tmp_path / "drawn"
    write_samples(out, learner, ["one", "a/b"], count=10)
    assert sorted(path.name for path in out.iterdir()) == ["class-2", "labels.csv", "one"]
    listed = list_images(out / "labels.csv")
    assert [image.label for image in listed] == ["one"] * 10 + ["a/b"] * 10
    decoded = [decode(image.path, 8) for image in listed]
    assert all(grey for _, grey in decoded)
    assert len({pixels.tobytes() for pixels, _ in decoded}) == 20  # no noise drawn twice
    assert len(list_images(out)) == 20
    again = tmp_path / "again"
    again.mkdir()  # empty, so it may be taken
    write_samples(again, learner, ["one", "a/b"], count=10)
    assert (again / "one/07.png").read_bytes() == (out / "one/07.png").read_bytes()


def test_what_is_there_is_not_overwritten(learner: Learner, tmp_path: Path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OrdiscoError, match="exists already"):
        write_samples(tmp_path, learner, ["a", "b"], count=1)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_method_without_a_generator_has_no_samples(tmp_path: Path):
    with pytest.raises(OrdiscoError, match="no generator"):
        write_samples(tmp_path / "out", make_learner("smb"), [], count=1)


def test_no_name_leaves_the_folder_or_hides_another():
    names = ["ok", "../up", "OK", "class-5", "con:", "unlabeled", ".hidden", "class-8", "a" * 300, "tab\t"]
    found = folder_names(names)
    assert found == [
        "ok",
        "class-2",
        "class-3",
        "class-5",
        "class-5-",
        "class-6",
        "class-7",
        "class-8",
        "class-9",
        "class-10",
    ]
    assert len(set(found)) == len(names)
