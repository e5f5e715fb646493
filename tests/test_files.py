"""What is written aside has its name at the end or leaves nothing; what is not JSON is one kind of error."""

from pathlib import Path

import pytest

from ordisco import files
from ordisco.errors import OrdiscoError


def write(path: Path, folder: bool) -> None:
    if folder:
        path.mkdir()
    (path / "a" if folder else path).write_text("new")


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_written_aside_gets_its_name_at_the_end(tmp_path: Path, folder: bool) -> None:
    with files.written_aside(tmp_path / "x") as partial:
        write(partial, folder)
        assert not (tmp_path / "x").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("error", [OSError("full"), KeyboardInterrupt()])
def test_after_a_failure_nothing_stays_behind(tmp_path: Path, folder: bool, error: BaseException) -> None:
    (tmp_path / "x").write_text("old")

    def fail() -> None:
        with files.written_aside(tmp_path / "x") as partial:
            write(partial, folder)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        files.json_of(data)


def test_only_a_directory_or_nothing_passes_for_one(tmp_path: Path) -> None:
    files.check_directory(tmp_path)
    files.check_directory(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(OrdiscoError, match="link is a symbolic link, not a directory of its own"):
        files.check_directory(tmp_path / "link")
