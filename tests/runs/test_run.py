"""What a run leaves behind, and what ends it early."""

import builtins
import json
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import torch
from PIL import Image

import ordisco
from ordisco.cli import main
from ordisco.evaluation.accuracy import assess
from ordisco.learner.learner import TRACE, Learner
from ordisco.runs import estimate
from ordisco.runs import run as run_module
from ordisco.runs.config import RunConfig
from ordisco.runs.directory import RunDirectory
from ordisco.runs.summary import draw_samples
from tiny import STEPS, STREAM, TINY, arguments, call, one_line, records, without_figures


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A whole run of ORDisCo, two tasks of two classes."""
    path = tmp_path_factory.mktemp("finished") / "run"
    assert main(arguments(path)) == 0
    return path


@pytest.mark.slow
def test_the_directory_holds_what_the_run_was_and_did(finished):
    files = {str(file.relative_to(finished)) for file in finished.rglob("*") if file.is_file()}
    assert files == {
        ".lock",
        "settings.toml",
        "stream.json",
        "metrics.jsonl",
        *(
            f"checkpoints/step-{step:010d}/{name}"
            for step in (STEPS, 2 * STEPS)
            for name in ("state.json", "tensors.safetensors")
        ),
        "samples/increment-01.png",
        "samples/increment-02.png",
        "figures/accuracy.png",
        "figures/confusion.png",
        "summary.md",
        "summary.json",
    }


def test_the_settings_come_back_as_they_were_given(finished):
    config = RunConfig.from_dict(tomllib.loads((finished / "settings.toml").read_text()))
    assert (config.method, config.preset, config.seed, config.stream_name) == ("ordisco", "demo", 0, STREAM)
    assert config.learner == ordisco.preset("demo").replace(
        steps=STEPS, c_width=4, g_width=4, d_width=4, z_dim=4, batch_labeled=8, batch_unlabeled=8, batch_generated=8
    )
    assert config.stream.classes == "0,1,2,3"
    assert config.machine.threads == 1
    assert RunConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_an_increment_record_tells_what_the_paper_asks(finished):
    for index, record in enumerate(records(finished), start=1):
        assert record["increment"] == index
        assert record["classes_seen"] == 2 * index
        assert record["labeled"] == 2
        confusion = np.array(record["confusion"])
        assert confusion.shape == (4, 4)
        assert (confusion.sum(1) > 0).tolist() == [label < 2 * index for label in range(4)]  # classes seen only
        assert record["accuracy"] == confusion.trace() / confusion.sum()
        assert list(record["per_class"]) == ["0", "1", "2", "3"][: 2 * index]
        for label, share in enumerate(record["per_class"].values()):
            assert share == confusion[label, label] / confusion[label].sum()
        assert 0 <= record["pseudo_label_accuracy"] <= 1
        assert record["trusted_share"] is None  # mean teacher trusts every target
        assert (record["penalty_ratio"] is None) == (index == 1)  # Eq. 8 starts with the second increment
        assert record["generated_accuracy"] is None  # no judge was given
        assert 0 < record["seconds"] <= record["total_seconds"]
        assert record["peak_memory_bytes"] > 10_000_000
        assert record["kept_bytes"] == sum(record["kept"].values())
        # 64 bytes of an 8×8 image, 8 of its label, 2 of its increment; two labels an increment, nothing else is kept
        assert record["kept"]["labeled"] == 74 * 2 * index
        assert record["kept"]["unlabeled"] == 0
    assert len(records(finished)) == 2
    assert sum(record["images"] for record in records(finished)) == 80


def test_step_records_are_sparse(finished, tmp_path):
    steps = records(finished, "step")
    assert [(record["increment"], record["step"]) for record in steps] == [(1, STEPS), (2, STEPS)]
    assert {"supervised", "discriminator", "generator"} < steps[0].keys()
    assert "penalty" not in steps[0]  # Eq. 8 starts with the second increment
    assert steps[1]["penalty"] > 0
    run = tmp_path / "run"
    assert main(arguments(run, "--max-steps", str(TRACE + 3), "--method", "st", steps=2 * TRACE)) == 0
    assert [record["step"] for record in records(run, "step")] == [TRACE]


def pixels(path):
    with Image.open(path) as picture:
        return np.asarray(picture.convert("L"))


def test_pictures_and_summary(finished):
    first, second = (pixels(finished / "samples" / f"increment-0{index}.png") for index in (1, 2))
    assert second.shape[1] == first.shape[1]
    assert len(second) > 1.8 * len(first)  # a row a class
    for name in ("accuracy", "confusion"):
        assert pixels(finished / "figures" / f"{name}.png").std() > 5
    summary = json.loads((finished / "summary.json").read_text())
    accuracies = [record["accuracy"] for record in records(finished)]
    assert summary["accuracies"] == accuracies
    assert summary["final_accuracy"] == accuracies[-1]
    assert summary["mean_accuracy"] == pytest.approx(sum(accuracies) / 2)
    assert (summary["method"], summary["stream"], summary["scenario"]) == ("ordisco", STREAM, "new-class")
    assert summary["code"]["version"]
    assert summary["machine"]["processor"]
    assert summary["machine"]["torch"]
    text = (finished / "summary.md").read_text()
    assert f"- final accuracy: {100 * accuracies[-1]:.1f} %\n" in text
    for link in ("figures/accuracy.png", "figures/confusion.png", "samples/increment-02.png"):
        assert f"(<{link}>)" in text


def test_the_terminal_is_told_what_happens(tmp_path, capsys):
    path = tmp_path / "run"
    code, out, err = call(capsys, *arguments(path, "--method", "smb"))
    assert (code, err) == (0, "")
    first, *between, last = out.splitlines()  # where steps are slow, they are among those between
    assert first == f"SMB on {STREAM}, seed 0: 2 increments of {STEPS} steps"
    done = [line for line in between if "  accuracy " in line]
    assert [line.split("  ")[0] for line in done] == ["increment 1/2", "increment 2/2"]
    assert "pseudo-labels " in done[-1]
    assert last == f"everything is in {path}; start with {path / 'summary.md'}"
    assert not (path / "samples").exists()  # no generator


def test_slow_steps_are_shown_between_the_records(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(run_module, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr("ordisco.report.terminal.PLAIN_INTERVAL", 0.0)
    out = call(capsys, *arguments(tmp_path / "run", "--max-steps", "2"))[1]
    assert f"increment 1/2  step 1/{STEPS}  supervised " in out
    assert " images/s" in out


def test_offline_replay_counts_its_growing_increments(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    monkeypatch.setattr(run_module, "SLOW_SECONDS", 0.0)
    monkeypatch.setattr("ordisco.report.terminal.PLAIN_INTERVAL", 0.0)
    code, out, _ = call(capsys, *arguments(tmp_path / "run", "--method", "offline-last", steps=2))
    assert code == 0
    assert "2 increments of 2 to 4 steps" in out
    assert "increment 2/2  step 3/4" in out


OTHERS = ("jt", "smb-mof", "smb+umb+uc", "ewc-sl+ul", "si-sl", "mas-sl", "offline-all")


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.slow
def test_other_methods_run_and_resume(tmp_path, capsys, monkeypatch, name):
    """One of each kind of memory, head, penalty and replay; figures are left out to save time."""
    without_figures(monkeypatch)
    run = tmp_path / "run"
    code, out, err = call(capsys, *arguments(run, "--method", name, "--max-steps", "3", steps=2))
    assert (code, err) == (0, "")
    assert "stopped after 3 steps as asked: accuracy " in out
    code, _, err = call(capsys, "resume", run)
    assert (code, err) == (0, "")
    assert [record["increment"] for record in records(run)] == [1, 2]


def test_max_steps_stops_saved(tmp_path, capsys):
    run = tmp_path / "run"
    code, out, err = call(capsys, *arguments(run, "--max-steps", "1"))
    assert (code, err) == (0, "")
    assert "stopped after 1 step as asked: accuracy " in out
    assert out.endswith(f" on 72 test images\ngo on with: ordisco resume {run}\n")
    assert [file.name for file in (run / "checkpoints").iterdir()] == ["step-0000000001"]
    assert not (run / "summary.json").exists()


def test_max_steps_beyond_the_end_changes_nothing(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    out = call(capsys, *arguments(tmp_path / "run", "--method", "st", "--max-steps", "99", steps=1))[1]
    assert "everything is in" in out


def test_trusted_pseudo_labels_are_recorded(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    run, loss = tmp_path / "run", ("--unlabeled-loss", "fixmatch", "--threshold", "0.0")
    assert call(capsys, *arguments(run, "--method", "st", *loss, steps=1))[0] == 0
    for record in records(run):
        assert record["trusted_share"] == 1  # every label is at least 0 % sure
        assert record["trusted_accuracy"] == record["pseudo_label_accuracy"]


def test_a_dry_run_tells_and_writes_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "run", *TINY, "--steps", "7", "--dry-run", "--method", "ordisco", "--method", "smb")
    assert (code, err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    told = out.split('method = "smb"')
    assert len(told) == 2
    settings = tomllib.loads(out[: out.index("# ORDisCo on")])
    assert settings["learner"]["step"]["steps"] == 7
    assert settings["stream"]["dataset"] == "digits"
    for net in "CGD":
        assert f"# {net}: " in told[0]
    assert "# G: " not in told[1]
    assert " ms a step × 14 steps: about " in out


def test_a_slow_step_is_measured_once(capsys, monkeypatch):
    monkeypatch.setattr(estimate, "SLOW", 0.0)
    steps = []
    monkeypatch.setattr(Learner, "step", lambda learner: steps.append(learner))
    assert call(capsys, "run", *TINY, "--dry-run")[0] == 0
    assert len(steps) == 1


def test_a_reader_that_has_had_enough_does_not_end_the_run():
    """`ordisco run | head -1`."""
    command = [sys.executable, "-c", PIPE]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "went on\n")


PIPE = """
import os, sys
from ordisco.report.terminal import make_display
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(reader)
display = make_display()
display.message("one")
display.message("two")
print("went on", file=sys.stderr)
"""


@pytest.mark.slow
def test_a_judge_tells_how_many_samples_are_what_they_should_be(finished, tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    run = tmp_path / "run"
    code, out, _ = call(capsys, *arguments(run, "--judge", finished))
    assert code == 0
    judge, learner = ordisco.load_learner(finished), ordisco.load_learner(run)
    labels = learner.classes * 250
    right = judge.predict(learner.sample(torch.tensor(labels), seed=0)).tolist()
    expected = sum(guess == label for guess, label in zip(right, labels, strict=True)) / 1000
    assert records(run)[-1]["generated_accuracy"] == expected
    assert all(record["generated_accuracy"] is not None for record in records(run))  # after every increment
    for mine, its in zip(records(run), records(finished), strict=True):  # and no other number depends on it
        assert (mine["confusion"], mine["penalty_ratio"]) == (its["confusion"], its["penalty_ratio"])
    assert f"generated {100 * expected:.1f} %" in out
    assert "| generated |" in (run / "summary.md").read_text()


def test_load_learner_predicts_and_samples_as_the_run_did(finished):
    learner = ordisco.load_learner(str(finished))
    stream = ordisco.build_stream(
        RunConfig.from_dict(tomllib.loads((finished / "settings.toml").read_text())).stream, STREAM
    )
    confusion = assess(learner, stream.test_after(-1), 4).confusion
    assert confusion.tolist() == records(finished)[-1]["confusion"]
    draw_samples(RunDirectory(finished.parent / "again"), learner, stream, 1)
    again = finished.parent / "again" / "samples" / "increment-02.png"
    assert again.read_bytes() == (finished / "samples" / "increment-02.png").read_bytes()


def test_tensorboard_gets_losses_and_accuracy_also_after_a_resume(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = tmp_path / "run"
    assert call(capsys, *arguments(run, "--tensorboard", "--max-steps", str(STEPS + 1)))[0] == 0
    assert call(capsys, "resume", run)[0] == 0
    events = event_accumulator.EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    losses = events.Scalars("loss/supervised")
    assert [event.step for event in losses] == [STEPS, 2 * STEPS]
    assert losses[1].value == pytest.approx(records(run, "step")[1]["supervised"])
    assert [event.value for event in events.Scalars("accuracy")] == pytest.approx(
        [record["accuracy"] for record in records(run)]
    )


def test_tensorboard_that_is_not_installed_is_one_line(tmp_path, capsys, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if "tensorboard" in name:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *args, **options)

    for name in [name for name in sys.modules if "tensorboard" in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    code, _, err = call(capsys, *arguments(tmp_path / "run", "--tensorboard"))
    assert code == 1
    assert one_line(err) == "ordisco: error: tensorboard is not installed: pip install 'ordisco[tensorboard]'"
    assert not (tmp_path / "run").exists()


def test_own_images_can_be_resumed_from_elsewhere(tmp_path, capsys, monkeypatch):
    without_figures(monkeypatch)
    rng = np.random.default_rng(0)
    for folder, count in (("cat", 2), ("dog", 2), ("unlabeled", 6), ("test/cat", 2), ("test/dog", 2)):
        (tmp_path / "mine" / folder).mkdir(parents=True)
        for index in range(count):
            image = Image.fromarray(rng.integers(0, 255, (8, 8), dtype=np.uint8))
            image.save(tmp_path / "mine" / folder / f"{index}.png")
    monkeypatch.setenv("ORDISCO_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    small = ("--increments", "2", "--size", "8", "--steps", "2", *TINY[7:])
    code, _, err = call(capsys, "run", "mine", *small, "--method", "smb", "--max-steps", "1", "--out", "run")
    assert (code, err) == (0, "")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    code, _, err = call(capsys, "resume", tmp_path / "run")
    assert (code, err) == (0, "")
    for record in records(tmp_path / "run"):
        assert (record["images"], record["labeled"]) == (5, 2)
        assert record["per_class"].keys() == {"cat", "dog"}
        assert record["pseudo_label_accuracy"] is None  # nobody knows the truth
