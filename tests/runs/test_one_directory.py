"""A run directory is one directory: no link, device or pipe is followed, and its loss or change is noticed."""

import os
import shutil

import pytest

from ordisco import files
from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.runs import checkpoint, unchanged
from ordisco.runs.directory import RunDirectory, resume_command
from ordisco.studies.comparison import Comparison
from tiny import arguments, call, one_line, records, without_figures


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run in the middle of its second increment."""
    path = tmp_path_factory.mktemp("begun") / "run"
    assert main(arguments(path, "--max-steps", "8")) == 0
    return path


@pytest.fixture
def run(begun, tmp_path):
    shutil.copytree(begun, tmp_path / "run")
    return tmp_path / "run"


# ---------------------------------------------------------------------- links, devices, pipes

NAMES = ("settings.toml", "stream.json", "metrics.jsonl", "summary.json", "summary.md", ".lock")
FOLDERS = ("checkpoints", "samples", "figures", "tensorboard", "samples/increment-01.png")


@pytest.mark.parametrize("name", [*NAMES, *FOLDERS])
@pytest.mark.slow
def test_a_link_inside_is_refused_and_its_target_left_alone(tmp_path, capsys, run, name):
    target, place = tmp_path / "elsewhere", run / name
    if place.exists():
        place.rename(target)
    else:
        target.mkdir() if name in FOLDERS else target.write_text("mine")
    everything = {file: file.is_file() and file.read_bytes() for file in (target, *target.rglob("*"))}
    place.symlink_to(target)
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert f"{place} is a symbolic link" in one_line(err)
    assert {file: file.is_file() and file.read_bytes() for file in (target, *target.rglob("*"))} == everything


@pytest.mark.parametrize("name", ["settings.toml", "metrics.jsonl", "checkpoints/step-0000000008/state.json"])
def test_a_pipe_or_a_dangling_link_inside_is_refused_without_waiting(tmp_path, capsys, run, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert "is a pipe" in one_line(err)
    (run / name).unlink()
    (run / name).symlink_to(tmp_path / "nothing")
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert "is a symbolic link" in one_line(err)
    assert not (tmp_path / "nothing").exists()


def test_a_new_run_does_not_follow_links_that_wait_for_it(tmp_path, capsys):
    for name in (".lock", "stream.json"):
        run = tmp_path / name.strip(".")
        run.mkdir()
        (run / name).symlink_to(tmp_path / "target")
        code, _, err = call(capsys, *arguments(run))
        assert code == 1
        assert "is a symbolic link" in one_line(err)
    assert not (tmp_path / "target").exists()


def test_the_directory_itself_may_be_a_link(tmp_path, capsys, monkeypatch, run):
    without_figures(monkeypatch)
    (tmp_path / "link").symlink_to(run)
    code, _, err = call(capsys, "resume", tmp_path / "link")
    assert (code, err) == (0, "")
    assert (run / "summary.json").exists()


@pytest.mark.slow
def test_links_that_appear_during_a_run_are_not_followed(tmp_path, capsys, monkeypatch):
    """Folders and metrics.jsonl; other files are replaced by rename, which does not follow."""
    finish, outside = Learner.finish, tmp_path / "outside"
    outside.mkdir()
    for name in ("samples", "checkpoints", "metrics.jsonl"):
        run = tmp_path / f"run-{name}"

        def with_link(learner, place=run / name):
            if place.exists():
                place.rename(place.with_name("away"))
            place.symlink_to(outside)
            finish(learner)

        monkeypatch.setattr(Learner, "finish", with_link)
        code, _, err = call(capsys, *arguments(run, steps=1))
        assert code == 1
        assert f"{run / name}" in one_line(err)
        assert "symbolic link" in err
        assert list(outside.iterdir()) == []


def test_a_comparison_reads_no_link_and_no_strange_name(tmp_path, capsys, run):
    comparison = tmp_path / "many"
    code, _, _ = call(capsys, *arguments(comparison, "--method", "st", "--method", "smb", "--max-steps", "1"))
    assert code == 0
    file = comparison / "study.json"
    good = file.read_text()
    file.write_text(good.replace('"st",', '"../st",', 1))
    with pytest.raises(OrdiscoError, match=r"study.json is damaged: method = '../st' is not allowed"):
        Comparison.load(comparison)
    file.write_text(good.replace('"c_width": 4', '"c_width": 5'))
    with pytest.raises(OrdiscoError, match=r"study.json is damaged: its checksum is wrong"):
        Comparison.load(comparison)
    file.write_text(good)
    shutil.rmtree(comparison / "st-seed0")
    (comparison / "st-seed0").symlink_to(run)
    with pytest.raises(OrdiscoError, match="st-seed0 is a symbolic link, not a directory of its own"):
        Comparison.load(comparison)
    (comparison / "st-seed0").unlink()
    file.rename(tmp_path / "study.json")
    file.symlink_to(tmp_path / "study.json")
    code, _, err = call(capsys, "resume", comparison)
    assert code == 1
    assert "it is a symbolic link" in one_line(err)


# ---------------------------------------------------------------------- plain files


def test_files_are_read_and_added_to_only_if_they_are_plain(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    assert files.read_plain(tmp_path / "file") == b"x"
    for name in ("link", "pipe", "device"):
        for flags in (os.O_RDONLY, os.O_WRONLY | os.O_APPEND):
            with pytest.raises(OSError, match="not a plain file"):
                files.open_plain(tmp_path / name, flags)
    with pytest.raises(OSError, match="not a plain file"):
        files.open_plain(tmp_path)
    if os.path.exists("/dev/zero"):
        with pytest.raises(OSError, match="it is a device, not a plain file"):
            files.read_plain(files.Path("/dev/zero"))
    with pytest.raises(OSError, match="it has 1 bytes, more than 0"):
        files.read_plain(tmp_path / "file", 0)


def test_names_aside_are_random_and_made_exclusively(tmp_path, monkeypatch):
    first, second = files.aside(tmp_path / "a"), files.aside(tmp_path / "a")
    assert first != second
    assert first.name.startswith(".a.")
    assert first.name.endswith(".partial")
    monkeypatch.setattr(files, "aside", lambda path: first)
    first.symlink_to(tmp_path / "target")
    with pytest.raises(OrdiscoError, match=r"cannot write .*/a: File exists"):
        files.write_atomically(tmp_path / "a", b"data")
    assert not (tmp_path / "target").exists()


def test_leftovers_go_but_not_what_they_point_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".a.partial").symlink_to(tmp_path / "kept")
    (folder / ".step-1.123.partial").mkdir()
    (folder / ".step-1.123.partial" / "half").write_text("")
    (folder / ".b.456.partial").write_text("")
    (folder / "c.partial").write_text("")
    files.remove_leftovers(folder)
    assert [path.name for path in folder.iterdir()] == ["c.partial"]
    assert (tmp_path / "kept" / "file").exists()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match="it is a symbolic link, not a directory"):
        files.make_directory(tmp_path / "link")


# ---------------------------------------------------------------------- settings and metrics


@pytest.mark.slow
def test_settings_that_change_no_number_may_be_changed(capsys, monkeypatch, run, tmp_path):
    without_figures(monkeypatch)
    file = run / "settings.toml"
    text = file.read_text().replace("checkpoint_seconds = 60.0", f'checkpoint_seconds = 5.0\ndata_dir = "{tmp_path}"')
    file.write_text(text + "# a note\n")
    code, _, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")


def test_settings_changed_before_the_first_checkpoint_are_told_too(capsys, run):
    shutil.rmtree(run / "checkpoints")
    text = (run / "settings.toml").read_text()
    (run / "settings.toml").write_text(text.replace("c_lr = ", "# c_lr = "))
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert f"{run / 'settings.toml'} was changed: its checksum is another; put it back" in one_line(err)


def test_what_may_change():
    before = {"seed": 1, "machine": {"data_dir": "/a", "threads": 1, "judge": None}, "stream": {"dataset": "/mine"}}
    moved = {"seed": 1, "machine": {"data_dir": "/b", "threads": 1}, "stream": {"dataset": "/yours"}}
    assert unchanged.difference(moved, before) is None
    assert unchanged.checksum(moved) == unchanged.checksum(before)
    for change, words in (
        ({"seed": True}, "seed is True, it was 1"),
        ({"stream": {"dataset": "digits"}}, "stream.dataset is 'digits', it was 'a path'"),
        ({"machine": {"threads": 2}}, "machine.threads is 2, it was 1"),
        ({"machine": {}}, "machine.threads is missing, it was 1"),
    ):
        assert unchanged.difference(before | change, before) == words
        assert unchanged.checksum(before | change) != unchanged.checksum(before)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data.replace(b'"step"', b'"stop"', 1), "the checksum of its first"),
        (lambda data: b"x" + data[1:], "line 1 is not JSON"),
        (lambda data: b"5" + b" " * (data.index(b"\n") - 1) + data[data.index(b"\n") :], "line 1 is not a record"),
        (lambda data: data[:-3], "metrics.jsonl was changed: the checkpoint remembers"),
    ],
)
def test_damaged_metrics_are_told_at_once(capsys, monkeypatch, run, damage, message):
    monkeypatch.setattr(Learner, "step", lambda learner: pytest.fail("it trains"))
    file = run / "metrics.jsonl"
    file.write_bytes(damage(file.read_bytes()))
    code, _, err = call(capsys, "resume", run)
    assert code == 1
    assert message in one_line(err)


def test_metrics_changed_during_the_run_are_told(tmp_path, capsys, monkeypatch):
    run, finish = tmp_path / "run", Learner.finish

    def with_change(learner):
        (run / "metrics.jsonl").write_text("")
        finish(learner)

    monkeypatch.setattr(Learner, "finish", with_change)
    code, _, err = call(capsys, *arguments(run, "--method", "st", steps=1))
    assert code == 1
    assert "metrics.jsonl was changed during the run" in one_line(err)


@pytest.mark.slow
def test_a_finished_run_without_its_records_is_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ordisco.runs.summary.accuracy_curves", lambda *args: None)
    path = tmp_path / "many"
    options = ("--method", "st", "--method", "smb")
    without_figures(monkeypatch)
    assert call(capsys, *arguments(path, *options, steps=1))[0] == 0
    (path / "st-seed0" / "metrics.jsonl").write_text('{"kind": "increment"}\n')
    code, _, err = call(capsys, "resume", path)
    assert code == 1
    assert f"{path / 'st-seed0' / 'metrics.jsonl'} is damaged" in one_line(err)


# ---------------------------------------------------------------------- a directory that goes away


def move(run):
    run.rename(run.with_name("moved"))


def replace(run):
    shutil.copytree(run, run.with_name("copy"))
    shutil.rmtree(run)
    run.with_name("copy").rename(run)


def empty(run):
    for entry in run.iterdir():
        if entry.name != ".lock":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


@pytest.mark.parametrize("loss", [shutil.rmtree, move, replace, empty])
@pytest.mark.parametrize("moment", ["step", "finish"])
def test_a_directory_that_is_lost_during_a_run_is_noticed(tmp_path, capsys, monkeypatch, loss, moment):
    run, real = tmp_path / "run", getattr(Learner, moment)

    def with_loss(learner):
        if learner.increments == 1:
            loss(run)
        real(learner)

    monkeypatch.setattr(Learner, moment, with_loss)
    code, out, err = call(capsys, *arguments(run, "--method", "smb", steps=1))
    assert code == 1
    assert f"{run} was deleted or replaced while the run was writing into it" in one_line(err)
    assert "everything is in" not in out
    if loss in (shutil.rmtree, move):
        assert not run.exists()


def test_a_directory_that_is_lost_at_the_very_end_is_noticed(tmp_path, capsys, monkeypatch):
    run = tmp_path / "run"
    monkeypatch.setattr("ordisco.runs.run.write_summary", lambda directory, *others: shutil.rmtree(directory.path))
    code, out, err = call(capsys, *arguments(run, "--method", "st", steps=1))
    assert code == 1
    assert "was deleted" in one_line(err)
    assert "everything is in" not in out


# ---------------------------------------------------------------------- names that are not UTF-8


def test_names_that_are_not_utf8_are_written_and_read(tmp_path):
    odd = os.fsdecode(b"caf\xe9")
    settings = {"stream": {"dataset": str(tmp_path / odd)}}
    with RunDirectory.create(tmp_path / odd, settings, lambda path: path.write_text("{}")) as run:
        run.metrics.append({"per_class": {odd: 1.0, "é": 0.5}})
        assert run.metrics.read() == [{"per_class": {odd: 1.0, "é": 0.5}}]
        assert run.read_settings(settings) == run.read_settings() == settings
        run.write_text("summary.md", f"# {odd}\n")
        checkpoint.save(run.checkpoints, 1, {}, {"settings": settings})
    assert (tmp_path / odd / "summary.md").read_bytes() == b"# caf\xe9\n"
    assert resume_command(run.path) == f"ordisco resume $'{tmp_path}/caf\\xe9'"


@pytest.mark.slow
def test_a_run_of_odd_names(tmp_path, capsys, monkeypatch):
    run = tmp_path / os.fsdecode(b"r\xff\xc3\xa9 n")
    assert call(capsys, *arguments(run, "--max-steps", "1", steps=1))[0] == 0
    without_figures(monkeypatch)
    code, out, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert "everything is in" in out
    assert len(records(run)) == 2
    code, _, err = call(capsys, *arguments(tmp_path / os.fsdecode(b"t\xff"), "--tensorboard"))
    assert code == 1
    assert "tensorboard" in one_line(err).lower()
