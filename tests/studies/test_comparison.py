"""Several methods and seeds on one stream: the table, the figure, and going on in between."""

import json
import os
import shutil
import signal

import pytest

from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.learner.learner import Learner
from ordisco.runs.directory import RunDirectory
from ordisco.runs.run import Run
from ordisco.studies import comparison, engine
from ordisco.studies.comparison import Comparison
from tiny import STREAM, arguments, assert_same_outcome, call, one_line, records, without_figures

BOTH = ("--method", "ordisco", "--method", "smb")


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """ORDisCo and SMB, two seeds each."""
    path = tmp_path_factory.mktemp("compared") / "both"
    assert main(arguments(path, *BOTH, "--seeds", "2", "--seed", "5", steps=2)) == 0
    return path


@pytest.mark.slow
def test_each_run_has_its_directory(compared):
    assert sorted(path.name for path in compared.iterdir()) == [
        "comparison.md",
        "comparison.png",
        "ordisco-seed5",
        "ordisco-seed6",
        "smb-seed5",
        "smb-seed6",
        "study.json",
    ]


def test_a_seed_gives_all_methods_the_same_stream(compared):
    manifests = {run.name: (run / "stream.json").read_bytes() for run in compared.glob("*-seed*")}
    assert manifests["ordisco-seed5"] == manifests["smb-seed5"]
    assert manifests["ordisco-seed5"] != manifests["ordisco-seed6"]


def test_a_run_of_a_comparison_is_the_run_alone(compared, tmp_path, capsys):
    assert call(capsys, *arguments(tmp_path / "run", "--method", "smb", "--seed", "6", steps=2))[0] == 0
    assert_same_outcome(tmp_path / "run", compared / "smb-seed6")


def test_the_table_is_made_of_the_runs(compared):
    content = json.loads((compared / "study.json").read_text())
    assert content["methods"] == ["ordisco", "smb"]
    assert content["seeds"] == [5, 6]
    assert content["config"]["stream_name"] == STREAM
    for result, name, title in zip(content["results"], content["methods"], ("ORDisCo", "SMB"), strict=True):
        runs = [records(compared / f"{name}-seed{seed}") for seed in (5, 6)]
        assert result["method"] == title
        assert result["accuracies"] == [[record["accuracy"] for record in run] for run in runs]
        assert result["seconds"] == pytest.approx(sum(run[-1]["total_seconds"] for run in runs) / 2)
        assert result["kept_bytes"] == max(run[-1]["kept_bytes"] for run in runs)
    text = (compared / "comparison.md").read_text()
    assert text.startswith(f"# {STREAM}, preset demo, seeds 5 to 6\n")
    assert "(<comparison.png>)" in text
    assert "(<ordisco-seed5/samples/increment-02.png>)" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4
    final = [100 * seed[-1] for seed in content["results"][0]["accuracies"]]
    cells = [cell.strip() for cell in table[2].split("|")]
    assert cells[1:4] == ["ORDisCo", "2", f"{sum(final) / 2:.1f} ± {abs(final[0] - final[1]) / 2**0.5:.1f} %"]


def test_resuming_a_finished_comparison_shows_it_again(compared, capsys):
    before = (compared / "comparison.md").read_text()
    code, out, err = call(capsys, "resume", compared)
    assert (code, err) == (0, "")
    assert out.count("finished before, in") == 4
    assert [line for line in before.splitlines() if line.startswith("|")][2] in out.splitlines()
    assert f"table and curves: {compared / 'comparison.md'}" in out
    assert f"generated images: {compared / 'ordisco-seed5' / 'samples' / 'increment-02.png'}" in out
    assert (compared / "comparison.md").read_text() == before


@pytest.mark.parametrize("moment", ["between the runs", "after the last step of the first"])
@pytest.mark.slow
def test_a_comparison_stopped_between_two_runs_goes_on(tmp_path, capsys, monkeypatch, moment):
    without_figures(monkeypatch)
    path = tmp_path / "both"
    new_run, close_increment = engine.new_run, Run.close_increment

    def interrupted(config, *others):
        if config.method == "smb":
            raise KeyboardInterrupt
        return new_run(config, *others)

    def signalled(run, index, ratio):
        close_increment(run, index, ratio)
        if index == len(run.stream) - 1:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        if moment == "between the runs":
            patch.setattr(engine, "new_run", interrupted)
        else:
            patch.setattr(Run, "close_increment", signalled)
        code, _, err = call(capsys, *arguments(path, "--method", "st", "--method", "smb", steps=1))
    assert code == 130
    assert one_line(err).endswith(f"go on with: ordisco resume {path}")
    assert not (path / "smb-seed0").exists()
    summary = path / "st-seed0" / "summary.json"
    before = summary.stat().st_mtime_ns
    code, out, err = call(capsys, "resume", path)
    assert (code, err) == (0, "")
    assert "ST, seed 0: finished before" in out
    assert summary.stat().st_mtime_ns == before
    assert (path / "comparison.png").exists()


def test_a_comparison_stopped_inside_a_run_goes_on_there(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    path = tmp_path / "both"
    code, out, err = call(capsys, *arguments(path, "--method", "st", "--method", "smb", "--max-steps", "1", steps=2))
    assert (code, err) == (0, "")
    assert out.count("stopped after 1 step as asked") == 2
    assert out.endswith(f"go on with: ordisco resume {path}\n")
    assert not (path / "comparison.md").exists()
    code, out, _ = call(capsys, "resume", path, "--jobs", "1")
    assert code == 0
    assert out.count("going on after step 1 of 4") == 2
    assert (path / "comparison.md").exists()


def test_a_signal_inside_a_run_names_the_comparison(tmp_path, capsys, monkeypatch):
    step = Learner.step

    def with_signal(learner):
        os.kill(os.getpid(), signal.SIGTERM)
        step(learner)

    monkeypatch.setattr(Learner, "step", with_signal)
    code, _, err = call(capsys, *arguments(tmp_path / "both", *BOTH))
    assert code == 130
    assert one_line(err) == (
        f"ordisco: stopped by SIGTERM, all is saved; go on with: ordisco resume {tmp_path / 'both'}"
    )


def test_a_taken_directory_is_refused(compared, tmp_path, capsys):
    code, out, err = call(capsys, *arguments(compared, *BOTH))
    assert (code, out) == (1, "")
    assert f"{compared} is not empty: continue it with `ordisco resume {compared}`" in one_line(err)
    (tmp_path / "photo.jpg").write_text("")
    code, _, err = call(capsys, *arguments(tmp_path, *BOTH))
    assert one_line(err) == f"ordisco: error: {tmp_path} is not empty: choose another --out"
    code, _, err = call(capsys, *arguments(tmp_path / "photo.jpg", *BOTH))
    assert code == 1
    assert "Not a directory" in one_line(err)


def test_a_run_of_a_comparison_that_someone_else_makes_is_left_alone(tmp_path, capsys):
    path = tmp_path / "both"
    assert call(capsys, *arguments(path, "--method", "st", "--method", "smb", "--max-steps", "1"))[0] == 0
    with RunDirectory.resume(path / "st-seed0"):
        code, _, err = call(capsys, "resume", path, "--jobs", "1")
    assert code == 1
    assert "another run is writing into" in one_line(err)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"methods": []}', '{"config": {}, "methods": [], "seeds": []}'])
def test_a_damaged_comparison_is_one_line(tmp_path, capsys, text):
    (tmp_path / comparison.FILE).write_text(text)
    code, _, err = call(capsys, "resume", tmp_path)
    assert code == 1
    assert "study.json is damaged" in one_line(err)


def test_a_comparison_comes_back_as_it_was(compared):
    loaded = Comparison.load(compared)
    assert loaded.methods == ("ordisco", "smb")
    assert loaded.seeds == (5, 6)
    assert loaded.config.learner.step.steps == 2
    assert loaded.config_of("smb", 6).seed == 6


def test_a_comparison_of_an_earlier_version_is_named(tmp_path, capsys):
    (tmp_path / "comparison.json").write_text("{}")
    code, out, err = call(capsys, "resume", tmp_path)
    assert (code, out) == (1, "")
    assert one_line(err).startswith(f"ordisco: error: {tmp_path} holds a comparison of ordisco 0.1.0, which only that")
    code, _, err = call(capsys, *arguments(tmp_path, *BOTH))
    assert code == 1
    assert "is not empty" in one_line(err)


def test_a_comparison_that_is_deleted_begins_no_further_run(tmp_path, capsys, monkeypatch):
    path, step = tmp_path / "both", Learner.step

    def deleting(learner):
        if learner.method.name == "st":
            shutil.rmtree(path, ignore_errors=True)
        step(learner)

    monkeypatch.setattr(Learner, "step", deleting)
    code, _, err = call(capsys, *arguments(path, "--method", "st", "--method", "smb", steps=1))
    assert code == 1
    assert "2 of 2 runs failed (st-seed0: " in one_line(err)
    assert "was deleted or replaced while the run was writing into it" in err
    assert not path.exists()


def test_a_run_that_fails_leaves_the_others_alone(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    path, new_run = tmp_path / "both", engine.new_run

    def failing(config, *others):
        if config.method == "st":
            raise OrdiscoError("no room")
        return new_run(config, *others)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "new_run", failing)
        code, out, err = call(capsys, *arguments(path, "--method", "st", "--method", "smb", steps=1))
    assert code == 1
    assert "st-seed0: failed: no room" in out
    assert one_line(err) == (
        f"ordisco: error: 1 of 2 runs failed (st-seed0: no room); what is done stays, go on with: ordisco resume {path}"
    )
    assert (path / "smb-seed0" / "summary.json").exists()
    assert call(capsys, "resume", path, "--jobs", "1")[0] == 0
    assert (path / "comparison.md").exists()
