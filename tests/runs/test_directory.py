"""The run directory: settings, metrics, atomic files, one writer at a time."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ordisco.errors import OrdiscoError
from ordisco.files import write_atomically
from ordisco.runs.directory import RunDirectory, default_path
from ordisco.runs.metrics import finite_or_none

SETTINGS = {"method": "ordisco", "seed": 0, "rate": 0.1, "none": None, "gan": {"alpha": 0.5, "extra": None}}


def manifest(path):
    path.write_text("{}")


@pytest.fixture
def run(tmp_path):
    with RunDirectory.create(tmp_path / "run", SETTINGS, manifest) as run:
        yield run


def one_line(caught):
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_settings_come_back_without_none(run):
    assert run.stream_file.read_text() == "{}"
    expected = {"method": "ordisco", "seed": 0, "rate": 0.1, "gan": {"alpha": 0.5}}
    assert RunDirectory.open(run.path).read_settings() == expected


def test_a_taken_directory_is_refused_with_the_way_out(run):
    run.close()
    with pytest.raises(OrdiscoError) as caught:
        RunDirectory.create(run.path, {}, manifest)
    assert f"`ordisco resume {run.path}`" in one_line(caught)
    assert "--out" in str(caught.value)
    assert run.read_settings()["method"] == "ordisco"


def test_a_foreign_directory_is_left_alone(tmp_path):
    (tmp_path / "photo.jpg").write_text("x")
    with pytest.raises(OrdiscoError, match=r"not empty \(it has photo.jpg\)"):
        RunDirectory.create(tmp_path, {}, manifest)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def test_a_half_created_directory_can_be_created_again(tmp_path):
    def failing(path):
        path.write_text("{")
        raise OrdiscoError("no such stream")

    with pytest.raises(OrdiscoError, match="no such stream"):
        RunDirectory.create(tmp_path / "run", SETTINGS, failing)
    with pytest.raises(OrdiscoError, match=r"not a run directory: it has no settings.toml"):
        RunDirectory.open(tmp_path / "run")
    RunDirectory.create(tmp_path / "run", SETTINGS, manifest).close()


def test_what_is_not_a_run_is_one_line(tmp_path):
    with pytest.raises(OrdiscoError, match=r"no run directory at .*nowhere"):
        RunDirectory.resume(tmp_path / "nowhere")
    (tmp_path / "settings.toml").write_text("a = [")
    with pytest.raises(OrdiscoError, match="not valid TOML") as caught:
        RunDirectory.open(tmp_path).read_settings()
    one_line(caught)
    (tmp_path / "file").write_text("")
    with pytest.raises(OrdiscoError, match=r"cannot use .*Not a directory"):
        RunDirectory.create(tmp_path / "file", {}, manifest)
    with pytest.raises(OrdiscoError, match=r"cannot .*Not a directory"):
        RunDirectory.create(tmp_path / "file" / "run", {}, manifest)


def test_metrics_are_lines_and_can_be_cut_back(run):
    assert run.metrics.mark()["metrics_size"] == 0
    assert run.metrics.read() == []
    run.metrics.append({"step": 1, "loss": 0.1})
    size = run.metrics.mark()["metrics_size"]
    assert size == len('{"step": 1, "loss": 0.1}\n')
    run.metrics.append({"step": 2, "loss": float("nan"), "nested": [{"x": float("-inf")}], "name": "é"})
    assert run.metrics.read()[1] == {"step": 2, "loss": None, "nested": [{"x": None}], "name": "é"}
    run.metrics.truncate(size)
    run.metrics.append({"step": 3})
    assert run.metrics.read() == [{"step": 1, "loss": 0.1}, {"step": 3}]
    run.metrics.truncate(0)
    assert run.metrics.read() == []


def test_a_line_cut_short_by_a_crash(run):
    run.metrics.append({"step": 1})
    size = run.metrics.mark()["metrics_size"]
    with run.metrics.file.open("a") as file:
        file.write('{"step": 2, "lo')
    assert run.metrics.read() == [{"step": 1}]
    run.metrics.truncate(size)
    run.metrics.append({"step": 2})
    assert run.metrics.read() == [{"step": 1}, {"step": 2}]


def test_changed_metrics_are_told(run):
    run.metrics.append({"step": 1})
    for count in (run.metrics.mark()["metrics_size"] - 3, 1000):
        with pytest.raises(OrdiscoError, match=r"metrics.jsonl was changed") as caught:
            run.metrics.truncate(count)
        one_line(caught)
    assert run.metrics.read() == [{"step": 1}]
    run.metrics.file.write_text('{"step": 1}\nnonsense\n{"step": 2}\n')
    with pytest.raises(OrdiscoError, match="line 2 is not JSON"):
        run.metrics.read()


def test_a_full_disk_leaves_whole_lines(run, monkeypatch):
    run.metrics.append({"step": 1})
    real = os.write

    def short(descriptor, data):
        if len(data) < 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, data[:4])

    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OrdiscoError, match=r"metrics.jsonl: No space left"):
        run.metrics.append({"step": 22222})
    monkeypatch.undo()
    assert run.metrics.file.read_text() == '{"step": 1}\n'


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_file_is_replaced_whole_or_not_at_all(run, monkeypatch, call):
    run.write_text("samples/a.txt", "old")

    def failing(*args, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, failing)
    with pytest.raises(OrdiscoError, match=r"cannot write .*a\.txt: No space left"):
        run.write_text("samples/a.txt", "new")
    monkeypatch.undo()
    assert [(path.name, path.read_text()) for path in (run.path / "samples").iterdir()] == [("a.txt", "old")]
    assert run.write_text("samples/a.txt", "new").read_text() == "new"


def test_new_files_obey_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_resume_sweeps_what_a_crash_left(run):
    run.close()
    leftover = run.path / "samples" / ".a.png.partial"
    leftover.parent.mkdir()
    leftover.write_text("half")
    RunDirectory.resume(run.path).close()
    assert not leftover.exists()


def test_two_writers_cannot_share_a_directory(run):
    with pytest.raises(OrdiscoError, match="another run is writing into") as caught:
        RunDirectory.resume(run.path)
    one_line(caught)
    assert RunDirectory.open(run.path).read_settings()["seed"] == 0  # reading is free
    run.close()
    RunDirectory.resume(run.path).close()


def test_the_lock_ends_with_a_killed_process(tmp_path):
    code = """
import sys, time
from pathlib import Path
from ordisco.runs.directory import RunDirectory
run = RunDirectory.create(Path(sys.argv[1]), {}, lambda path: path.write_text("{}"))
print("locked", flush=True)
time.sleep(60)
"""
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(OrdiscoError, match="another run is writing into"):
            RunDirectory.resume(tmp_path / "run")
        process.send_signal(signal.SIGKILL)
        process.wait()
    RunDirectory.resume(tmp_path / "run").close()


def test_default_names(tmp_path):
    first = default_path("digits", "ordisco", 0, tmp_path)
    assert first == tmp_path / "digits-ordisco-seed0"
    first.mkdir()
    assert default_path("digits", "ordisco", 0, tmp_path).name == "digits-ordisco-seed0-2"
    (tmp_path / "digits-ordisco-seed0-2").mkdir()
    assert default_path("digits", "ordisco", 0, tmp_path).name == "digits-ordisco-seed0-3"
    assert default_path("../my images", "smb+umb", 7, tmp_path) == tmp_path / "my-images-smb+umb-seed7"
    assert default_path("digits", "ordisco", 1) == Path("runs/digits-ordisco-seed1")


def test_rundir_needs_no_torch():
    code = "import sys, ordisco.runs.directory; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_nested_records_are_plain_json(run):
    run.metrics.append({"tuple": (1, 2.5), "none": None})
    assert json.loads(run.metrics.file.read_text()) == {"tuple": [1, 2.5], "none": None}
    assert finite_or_none(True) is True
