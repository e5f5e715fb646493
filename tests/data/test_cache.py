"""A full disk or an interruption while the decoded images are kept: the data are used, and nothing stays behind."""

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
from safetensors import SafetensorError
from test_own import make_folder

from ordisco.data.load import load
from ordisco.errors import OrdiscoWarning

FULL = OSError(errno.ENOSPC, "No space left on device")


def partly(error: BaseException) -> Callable[..., None]:
    """A `save_file` that writes a part of the file and then fails."""

    def save(parts: object, file: str, metadata: object = None) -> None:
        Path(file).write_bytes(b"a part of it")
        raise error

    return save


@pytest.mark.parametrize("error", [FULL, SafetensorError("I/O error: No space left on device (os error 28)")])
def test_a_full_disk_is_told_and_the_images_are_used(
    tmp_path: Path, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, root = make_folder(tmp_path), tmp_path / "data"
    monkeypatch.setattr(safetensors.torch, "save_file", partly(error))
    for _ in range(2):
        with pytest.warns(OrdiscoWarning, match=r"cannot keep .*No space left on device.*; decoded each time") as told:
            assert len(load(str(folder), root, size=8).train) == 14
        assert "\n" not in str(told[0].message)
        assert not list((root / "cache").iterdir())
    monkeypatch.undo()
    load(str(folder), root, size=8)
    [kept] = (root / "cache").iterdir()
    assert kept.suffix == ".safetensors"


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safetensors.torch, "save_file", partly(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        load(str(make_folder(tmp_path)), tmp_path / "data", size=8)
    assert not list((tmp_path / "data" / "cache").iterdir())


@pytest.mark.slow
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The operating system refuses the bytes in the middle of the file, as a full disk does."""
    resource = pytest.importorskip("resource")
    assert resource.RLIMIT_FSIZE
    folder, root = make_folder(tmp_path), tmp_path / "data"
    code = (
        "import resource, sys, warnings; from ordisco.data.load import load;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096));"
        "warnings.simplefilter('always');"
        "print(len(load(sys.argv[1], sys.argv[2], size=32).train))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder), str(root)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "14\n")
    assert "cannot keep the decoded images" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((root / "cache").iterdir())


def test_a_cache_without_checksums_is_not_used(tmp_path: Path) -> None:
    folder, root = make_folder(tmp_path), tmp_path / "data"
    right = load(str(folder), root, size=8).checksum()
    [kept] = (root / "cache").iterdir()
    parts = safetensors.torch.load_file(kept)
    parts["train_images"] += 1
    safetensors.torch.save_file(parts, kept, {"ordisco": '{"classes": ["cat", "dog"], "notes": [], "crc": {}}'})
    assert load(str(folder), root, size=8).checksum() == right


@pytest.mark.parametrize("name", ["a\nb", "x" * 250, "\udcff", "[red]"])
def test_the_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    folder = make_folder(tmp_path).rename(tmp_path / name)
    first = load(str(folder), tmp_path / "data", size=8).checksum()
    [kept] = (tmp_path / "data" / "cache").iterdir()
    assert len(kept.name) < 100
    assert load(str(folder), tmp_path / "data", size=8).checksum() == first
