"""`ordisco study`: rows are made once, go on where they were, and leave one another alone."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import filelock
import pytest
import torch

from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.runs.directory import RunDirectory
from ordisco.runs.run import Run
from ordisco.runs.signals import Interrupted
from ordisco.studies import engine
from ordisco.studies.read import read_study
from ordisco.studies.results import note_code
from tiny import assert_same_outcome, call, one_line, without_figures
from tiny_study import BOTH, quick_judge, results_in, run_study, write_study  # noqa: F401

ONE = BOTH[:1]


@pytest.mark.usefixtures("quick_judge")
@pytest.mark.slow
def test_a_study_is_run_once_listed_drawn_and_its_generators_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_study(tmp_path, judged=True) == 0
    rows = read_study(tmp_path / "studies.toml", "s").rows
    made = results_in(tmp_path / "results")
    ours, smb = made["ordisco"], made["smb"]
    assert len(ours["accuracies"]) == 2
    assert ours["last_accuracy"] == ours["accuracies"][-1]
    assert ours["mean_accuracy"] == pytest.approx(sum(ours["accuracies"]) / 2)
    assert all(0 <= share <= 1 for share in ours["generated_accuracies"])
    assert smb["generated_accuracies"] == [None, None]
    assert (smb["command"], ours["command"]) == (rows[0].command, rows[1].command)
    assert smb["kept_bytes"] == sum(smb["kept"].values())
    assert set(smb["code"][0]) == {"version", "commit", "dirty"}
    assert smb["processor"]
    assert (smb["threads"], smb["precision"]) == (1, "32-true")
    assert str(tmp_path) not in json.dumps(made)

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()}
    capsys.readouterr()
    assert run_study(tmp_path, judged=True) == 0
    assert capsys.readouterr().out == ""
    assert run_study(tmp_path) == 0  # the judged result serves
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()} == before

    assert run_study(tmp_path, "--list", judged=True) == 0
    listed = capsys.readouterr().out
    assert "to do" not in listed
    assert f"ORDisCo, seed 0: {rows[1].command}  # better?" in listed
    assert run_study(tmp_path, "--table", judged=True) == 0
    table = capsys.readouterr().out
    assert "| ORDisCo" in table
    assert "samples by judge" in table
    assert run_study(tmp_path, "--plot", str(tmp_path / "s.png")) == 0
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")

    [finished] = (tmp_path / "work").glob("*ordisco*-judged")
    judges, out = tmp_path / "work" / "judges", tmp_path / "g"
    words = ["judge", str(finished), "--out", str(out), "--judges", str(judges), "--points", "50", "--drawn", "20"]
    assert main([*words, "--taught", "40"]) == 0
    report = json.loads((out / f"{finished.name}.json").read_text())
    assert len(list(judges.glob("digits-*"))) == 1  # the judge of the study is used again
    assert report["sample_accuracy"] == pytest.approx(sum(report["sample_accuracy_per_class"].values()) / 4)
    assert {row["reference"] for row in report["coverings"]} == {"test", "train"}
    assert all(0 <= row["coverage"] <= 1 for row in report["coverings"])
    assert (out / f"{finished.name}-tsne.png").exists()
    assert (out / f"{finished.name}-samples.png").exists()
    assert set(report["taught"]) == {"generated", "labelled"}
    told = capsys.readouterr().out
    assert "coverage by G" in told
    assert "nearness" in told
    assert len(report["nearness_per_class"]) == 4
    assert "taught by generated images" in told
    assert main(["judge", str(tmp_path / "work" / rows[0].key), "--out", str(out)]) == 1
    assert "has no generator" in one_line(capsys.readouterr().err)


def test_an_interrupted_row_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    assert run_study(tmp_path / "whole", rows=ONE) == 0
    step = Learner.step

    def stop_in_the_second_increment(learner: Learner) -> None:
        if learner.total_steps == 3:
            raise Interrupted("enough")
        step(learner)

    monkeypatch.setattr(Learner, "step", stop_in_the_second_increment)
    assert run_study(tmp_path / "parts", rows=ONE) == 130
    assert not (tmp_path / "parts" / "results").exists()
    steps: list[int] = []
    monkeypatch.setattr(Learner, "step", lambda learner: (steps.append(learner.total_steps), step(learner))[-1])
    assert run_study(tmp_path / "parts", rows=ONE) == 0
    assert steps == [2, 3]  # the first increment is not learned again
    whole, parts = (results_in(tmp_path / name / "results")["smb"] for name in ("whole", "parts"))
    assert parts["accuracies"] == whole["accuracies"]


@pytest.mark.slow
def test_rows_side_by_side_are_the_rows_one_after_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_study(tmp_path / "one") == 0
    capsys.readouterr()
    assert run_study(tmp_path / "two", "--jobs", "2") == 0
    out = capsys.readouterr().out
    assert out.startswith("2 runs, 2 at once\n")
    assert "SMB, seed 0: increment 2/2" in out
    one, two = (results_in(tmp_path / name / "results") for name in ("one", "two"))
    assert one.keys() == two.keys() == {"smb", "ordisco"}
    for method in one:
        assert one[method]["accuracies"] == two[method]["accuracies"]
        assert one[method]["settings"] == two[method]["settings"]
    for row in read_study(tmp_path / "one" / "studies.toml", "s").rows:
        assert_same_outcome(tmp_path / "two" / "work" / row.key, tmp_path / "one" / "work" / row.key)


def test_a_row_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    new_run = engine.new_run

    def failing(config: Any, *others: Any) -> Any:
        if config.method == "smb":
            raise OrdiscoError("the loss is nan")
        return new_run(config, *others)

    monkeypatch.setattr(engine, "new_run", failing)
    assert run_study(tmp_path) == 1
    told = capsys.readouterr()
    assert "SMB, seed 0: failed: the loss is nan" in told.out
    assert one_line(told.err) == (
        "ordisco: error: 1 of 2 runs failed (SMB, seed 0: the loss is nan); what is done stays, "
        "the same command goes on"
    )
    assert results_in(tmp_path / "results").keys() == {"ordisco"}


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.slow
def test_a_row_that_another_process_is_at_is_passed_over_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], jobs: str
) -> None:
    without_figures(monkeypatch)
    smb = read_study(write_study(tmp_path / "studies.toml"), "s").rows[0]
    (tmp_path / "work").mkdir()
    with filelock.FileLock(tmp_path / "work" / f".{smb.key}.lock"):
        assert run_study(tmp_path, "--jobs", jobs) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert "1 of 2 rows were left to another process: SMB, seed 0" in told.out
    assert results_in(tmp_path / "results").keys() == {"ordisco"}
    assert run_study(tmp_path) == 0
    assert results_in(tmp_path / "results").keys() == {"ordisco", "smb"}


def test_a_signal_after_the_last_step_of_a_row_stops_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    close_increment = Run.close_increment

    def signalled(run: Run, index: int, ratio: float | None) -> None:
        close_increment(run, index, ratio)
        if index == len(run.stream) - 1:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "close_increment", signalled)
        assert run_study(tmp_path) == 130
    assert one_line(capsys.readouterr().err) == "ordisco: stopped as asked after this run; the same command goes on"
    assert results_in(tmp_path / "results").keys() == {"smb"}


def test_a_finished_run_without_a_result_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    assert run_study(tmp_path, rows=ONE) == 0
    [file] = (tmp_path / "results").iterdir()
    before = json.loads(file.read_text())
    file.unlink()
    monkeypatch.setattr(Learner, "step", lambda learner: pytest.fail("it is learned again"))
    capsys.readouterr()
    assert run_study(tmp_path, rows=ONE) == 0
    assert "SMB, seed 0: finished before, in" in capsys.readouterr().out
    assert json.loads(file.read_text()) == before


@pytest.mark.slow
def test_rows_may_differ_in_what_the_machine_has_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    rows = [*ONE, {"name": "two threads", "method": "st", "changes": {"threads": 2}}]
    used, step, before = {}, Learner.step, torch.get_num_threads()

    def noted(learner: Learner) -> None:
        used[learner.method.name] = torch.get_num_threads()
        step(learner)

    monkeypatch.setattr(Learner, "step", noted)
    try:
        assert run_study(tmp_path, rows=rows) == 0
    finally:
        torch.set_num_threads(before)
    assert used == {"smb": 1, "st": 2}
    made = results_in(tmp_path / "results")
    assert (made["smb"]["threads"], made["st"]["threads"]) == (1, 2)
    assert made["st"]["command"].endswith("--threads 2")


def test_damaged_metrics_of_a_finished_row_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_figures(monkeypatch)
    assert run_study(tmp_path, rows=ONE) == 0
    [file] = (tmp_path / "results").iterdir()
    file.unlink()
    metrics = RunDirectory(tmp_path / "work" / file.stem).metrics.file
    metrics.write_text('{"kind": "increment"}\n')
    capsys.readouterr()
    assert run_study(tmp_path, rows=ONE) == 1
    assert "is damaged: not the record of an increment, increment is missing" in one_line(capsys.readouterr().err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["s", "--jobs", "0"], "jobs = 0 is not allowed: from 1 to 1024"),
        (["s", "--against", "SMB"], "--against is only for --table"),
        (["s", "--over", "1-2", "--list"], "--over is only for --table"),
        (["s", "--check"], "--check is only for --fill"),
        (["s", "--list", "--table"], "give one of --list, --table, --plot, --fill"),
        (["s", "--only", "smb"], "only = 'smb' is not allowed: one of SMB, ORDisCo"),
        (["s", "--seeds", "3"], "no row has one of these seeds"),
        (["s", "--table", "--against", "x"], "against = 'x' is not allowed"),
        (["s", "--table", "--over", "4-2"], "over = '4-2' is not allowed: increments such as 2-4"),
        (["s", "--table", "--reach", "three"], "reach = 'three' is not allowed: an accuracy in percent, such as 75"),
        (["s", "--table", "--reach", "nan"], "reach = 'nan' is not allowed"),
        (["s", "--fill", "x.md"], "--fill takes no NAME"),
        (["--table"], "NAME is missing: one of s"),
        (["s", "--job", "x"], "job = 'x' is not allowed"),
    ],
)
def test_wrong_words_for_a_study_are_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *args: None)
    file = write_study(tmp_path / "studies.toml")
    code, out, err = call(capsys, "study", file, *words)
    assert (code, out) == (2, "")
    assert message in one_line(err)
    assert list(tmp_path.iterdir()) == [file]


def test_code_is_noted_once(tmp_path: Path) -> None:
    a, b = {"commit": "a", "dirty": False}, {"commit": "b", "dirty": True}
    assert note_code(tmp_path / "run", a) == [a]
    assert note_code(tmp_path / "run", a) == [a]
    assert note_code(tmp_path / "run", b) == [a, b]
    (tmp_path / "run.code.json").write_text("{")
    with pytest.raises(OrdiscoError, match="is not JSON"):
        note_code(tmp_path / "run", a)
