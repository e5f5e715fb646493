"""The study runner, its statistics by hand, and what is said about generators, on tiny runs of the digits."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import blob_dataset, make_learner
from ordisco import judge
from ordisco.cli import main as ordisco_main
from ordisco.errors import OrdiscoError, UsageError
from ordisco.generator_quality import Images, coverings, sample_accuracy, seen_images
from ordisco.launch import load_learner
from ordisco.learner import Learner
from ordisco.methods import METHODS
from ordisco.presets import preset
from ordisco.settings import LearnerSettings
from ordisco.stopping import Interrupted
from ordisco.stream import Stream, new_class, new_instance
from tiny import without_figures

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))

import differences as compared
import generator
import judge as judge_script
import plot
import study
from paired import differences, gap_closed, interval
from results import Results, note_code
from rows import Row, Study, over_seeds
from studies import STUDIES
from table import points, study_table

TINY = {
    "steps": 2,
    "c_width": 4,
    "g_width": 4,
    "d_width": 4,
    "z_dim": 4,
    "batch_labeled": 8,
    "batch_unlabeled": 8,
    "batch_generated": 8,
}
DATA = {"increments": 1, "classes": "0,1,2,3", "max_images": 80}
QUICK_JUDGE = judge.JUDGE.replace(steps=60, batch_labeled=32, c_width=8, dropout=0.0, c_lr=1e-2, ema=0.8)


def tiny_row(name: str, method: str, **more: Any) -> Row:
    return Row(name, "digits-1-new-class", method, changes=TINY, stream_changes=DATA, **more)


TINY_STUDY = Study("Tiny", (tiny_row("SMB", "smb"), tiny_row("ORDisCo", "ordisco")), judged=True)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    without_figures(monkeypatch)
    monkeypatch.setattr(judge, "judge_settings", lambda images: QUICK_JUDGE)


# ---------------------------------------------------------------------- statistics


def test_interval_by_hand() -> None:
    # mean 2, s = 1, n = 3: the 97.5 % quantile of t with 2 degrees is 4.302653, so ± 4.302653 / √3.
    got = interval([1.0, 2.0, 3.0])
    assert got.mean == 2.0
    assert got.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert interval([1.0, 3.0]).half == pytest.approx(12.706205 * math.sqrt(2) / math.sqrt(2), rel=1e-6)
    assert interval([5.0]).half is None
    assert interval([4.0] * 5).half == 0.0


def test_differences_are_of_common_seeds() -> None:
    assert differences({0: 0.5, 1: 0.7, 2: 0.9}, {1: 0.6, 2: 0.5, 7: 0.1}) == pytest.approx([0.1, 0.4])
    assert differences({0: 1.0}, {1: 1.0}) == []


def test_gap_closed_by_hand() -> None:
    low, high = {0: 0.4, 1: 0.6, 2: 0.1}, {0: 0.8, 1: 0.8}
    gap = gap_closed({0: 0.5, 1: 0.8, 2: 0.9}, low, high)
    assert gap is not None
    assert gap.share == pytest.approx((0.1 + 0.2) / (0.4 + 0.2))  # not the mean of the shares, which is 0.625
    assert gap.by_seed == pytest.approx((0.25, 1.0))
    assert gap_closed({0: 0.5}, {0: 0.8}, {0: 0.7}) is None
    assert gap_closed({0: 0.5}, {1: 0.2}, {0: 0.7}) is None
    even = gap_closed({0: 0.5, 1: 0.5}, {0: 0.4, 1: 0.4}, {0: 0.4, 1: 0.8})
    assert even is not None
    assert even.share == pytest.approx(0.5)
    assert math.isnan(even.by_seed[0])


def test_points_in_words() -> None:
    assert points(interval([0.053])) == "+5.3"
    assert points(interval([-0.01, -0.01])) == "−1.0 [−1.0, −1.0]"


# ---------------------------------------------------------------------- rows


def test_a_row_is_the_run_of_its_command() -> None:
    row = Row("x", "digits-1", "ordisco", "demo", {"steps": 7, "teacher_dropout": False, "g_lr": 1e-4}, {"flip": True})
    words = "--preset demo --flip --steps 7 --no-teacher-dropout --g-lr 0.0001"
    assert row.command == f"ordisco run digits-1 --method ordisco --seed 0 --precision 32-true {words}"
    config = row.config()
    assert (config.learner.step.steps, config.learner.gan.g_lr) == (7, 1e-4)
    assert config.learner.classifier.teacher_dropout is False
    assert config.stream.flip is True
    assert config.stream.increments == 10


def test_rows_with_the_same_settings_share_a_key() -> None:
    row = tiny_row("a", "smb")
    assert row.key == replace(row, name="b", purpose="other").key
    assert row.key == replace(row, preset="demo").key  # the digits' preset
    alpha = preset("demo").gan.alpha
    assert row.key == replace(row, changes={**TINY, "alpha": alpha}).key  # what it has anyway, spelled out
    others = [
        replace(row, seed=1),
        replace(row, method="jt"),
        replace(row, changes={**TINY, "alpha": alpha / 2}),
        replace(row, stream_changes={**DATA, "max_images": 81}),
        replace(row, precision="bf16-mixed"),
    ]
    assert len({row.key, *(other.key for other in others)}) == 6


def test_wrong_rows_are_told_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = Study("", (tiny_row("SMB", "smb"), replace(tiny_row("bad", "smb"), changes={"stepz": 1})))
    assert study.main(["s", "--out", str(tmp_path / "r"), "--work", str(tmp_path / "w")], {"s": bad}) == 2
    assert "row 'bad'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match="umb_size"):
        replace(tiny_row("x", "smb"), changes={"umb_size": None}).arguments  # type: ignore[dict-item]  # noqa: B018
    with pytest.raises(UsageError, match="one of ORDisCo, SMB"):
        TINY_STUDY.chosen(["smb"])


def test_seeds_come_one_after_the_other() -> None:
    rows = Study("", over_seeds((tiny_row("a", "smb"), tiny_row("b", "jt")), range(2))).chosen()
    assert [(row.name, row.seed) for row in rows] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


def test_the_studies_are_sound() -> None:
    for name, known in STUDIES.items():
        assert known.rows[0].config().method == known.rows[0].method
        assert {row.method for row in known.rows} <= METHODS.keys(), name
        names = {row.name for row in known.rows}
        assert {known.reference, known.ceiling} - {None} <= names, name
        assert len({(row.name, row.stream, row.seed) for row in known.rows}) == len(known.rows), name


# ---------------------------------------------------------------------- running


def run(tmp_path: Path, *options: str, of: Study = TINY_STUDY) -> int:
    return study.main(["s", "--out", str(tmp_path / "results"), "--work", str(tmp_path / "work"), *options], {"s": of})


def results(tmp_path: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(file.read_text()) for file in sorted((tmp_path / "results").glob("*.json"))]
    return {result["settings"]["method"]: result for result in found}


@pytest.mark.usefixtures("quick")
def test_a_study_is_run_once_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    made = results(tmp_path)
    ours, smb = made["ordisco"], made["smb"]
    assert len(ours["accuracies"]) == 2
    assert ours["last_accuracy"] == ours["accuracies"][-1]
    assert ours["mean_accuracy"] == pytest.approx(sum(ours["accuracies"]) / 2)
    assert all(0 <= share <= 1 for share in ours["generated_accuracies"])
    assert smb["generated_accuracies"] == [None, None]
    assert smb["command"] == TINY_STUDY.rows[0].command
    assert smb["kept_bytes"] == sum(smb["kept"].values())
    assert set(smb["code"][0]) == {"commit", "dirty"}
    assert str(tmp_path) not in json.dumps(made)

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()}
    capsys.readouterr()
    assert run(tmp_path) == 0
    assert capsys.readouterr().out == ""
    assert run(tmp_path, of=replace(TINY_STUDY, judged=False)) == 0  # the judged result serves
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "results").iterdir()} == before

    assert run(tmp_path, "--list") == 0
    assert "to do" not in capsys.readouterr().out
    assert run(tmp_path, "--table") == 0
    table = capsys.readouterr().out
    assert "| ORDisCo" in table
    assert "samples by judge" in table
    assert plot.main(["s", "--results", str(tmp_path / "results"), "--out", str(tmp_path)], {"s": TINY_STUDY}) == 0
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")

    [finished] = (tmp_path / "work").glob("*ordisco*-judged")
    judges, out = tmp_path / "work" / "judges", tmp_path / "g"
    arguments = [str(finished), "--out", str(out), "--judges", str(judges), "--points", "50", "--drawn", "20"]
    assert generator.main(arguments) == 0
    report = json.loads((out / f"{finished.name}.json").read_text())
    assert len(list(judges.glob("digits-*"))) == 1  # the judge of the study is used again
    assert report["sample_accuracy"] == pytest.approx(sum(report["sample_accuracy_per_class"].values()) / 4)
    assert {row["reference"] for row in report["coverings"]} == {"test", "train"}
    assert all(0 <= row["coverage"] <= 1 for row in report["coverings"])
    assert (out / f"{finished.name}-tsne.png").exists()
    assert "coverage by G" in capsys.readouterr().out
    other = tmp_path / "work" / TINY_STUDY.rows[0].key
    assert generator.main([str(other), "--out", str(out)]) == 1
    assert "has no generator" in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_an_interrupted_row_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only = Study("", (tiny_row("SMB", "smb"),))
    assert run(tmp_path / "whole", of=only) == 0

    step = Learner.step

    def stop_in_the_second_increment(learner: Learner) -> None:
        if learner.total_steps == 3:
            raise Interrupted("enough")
        step(learner)

    monkeypatch.setattr(Learner, "step", stop_in_the_second_increment)
    assert run(tmp_path / "parts", of=only) == 130
    assert not (tmp_path / "parts" / "results").exists()
    steps: list[int] = []
    monkeypatch.setattr(Learner, "step", lambda learner: (steps.append(learner.total_steps), step(learner))[-1])
    assert run(tmp_path / "parts", of=only) == 0
    assert steps == [2, 3]  # the first increment is not learned again
    whole, parts = results(tmp_path / "whole")["smb"], results(tmp_path / "parts")["smb"]
    assert parts["accuracies"] == whole["accuracies"]


def test_a_row_that_fails_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[str] = []

    def make(row: Row, judged: bool, place: study.Place) -> None:
        if row.name == "SMB":
            raise OrdiscoError("the loss is nan")
        made.append(row.name)

    monkeypatch.setattr(study, "run_row", make)
    assert run(tmp_path) == 1
    assert made == ["ORDisCo"]
    assert "SMB, seed 0 failed: the loss is nan" in capsys.readouterr().err


def test_code_is_noted_once(tmp_path: Path) -> None:
    file = tmp_path / "code.json"
    a, b = {"commit": "a", "dirty": False}, {"commit": "b", "dirty": True}
    assert note_code(file, a) == [a]
    assert note_code(file, a) == [a]
    assert note_code(file, b) == [a, b]


# ---------------------------------------------------------------------- the table


def fake(last: float, seconds: float = 60.0) -> dict[str, Any]:
    return {
        "last_accuracy": last,
        "mean_accuracy": last / 2,
        "accuracies": [0.0, last],
        "pseudo_label_accuracies": [None],
        "generated_accuracies": [None],
        "seconds": seconds,
        "kept_bytes": 1500,
    }


def test_the_table_by_hand() -> None:
    names = {"JT": "jt", "SMB": "smb", "ORDisCo": "ordisco"}
    rows = over_seeds([tiny_row(name, method) for name, method in names.items()], range(3))
    lasts = {"JT": (0.8, 0.8), "SMB": (0.5, 0.6, 0.4), "ORDisCo": (0.7, 0.7, 0.5)}
    done = [(row, fake(lasts[row.name][row.seed])) for row in rows if row.seed < len(lasts[row.name])]
    text = study_table(Study("T", rows), done)
    cells = {line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:-1]] for line in text.splitlines()[6:9]}
    # Differences 0.2, 0.1, 0.1: mean 0.1333, s = 0.057735, half = 4.302653 · s / √3 = 0.143422.
    assert cells["ORDisCo"][3] == "+13.3 [−1.0, +27.7]"
    # Seeds 0 and 1: gains 0.2 and 0.1 of gaps 0.3 and 0.2.
    assert cells["ORDisCo"][4] == "60 % (67, 50)"
    assert cells["SMB"] == ["3", "50.0 ± 10.0 %", "25.0 ± 5.0 %", "—", "—", "1 min 00 s", "1.5 kB"]
    assert cells["JT"][3] == "+25.0 [−38.5, +88.5]"
    assert "8 of 9 rows are done" in text
    assert "pseudo" not in text
    to_jt = study_table(study.against(Study("T", rows), "JT"), done)
    assert "last − JT" in to_jt
    assert "gap" not in to_jt
    assert "−25.0 [−88.5, +38.5]" in to_jt  # SMB, the other way round
    assert study.main(["x", "--list", "--against", "JT"], {"x": Study("T", rows)}) == 2
    with pytest.raises(UsageError, match="one of JT, ORDisCo, SMB"):
        study.against(Study("T", rows), "smb")


# ---------------------------------------------------------------------- judge and generator


@pytest.fixture(scope="module")
def blobs_judge() -> Learner:
    still = replace(blob_dataset(), translate=0)  # a shifted blob can be another class
    return judge.train_judge(new_instance(still, increments=3, labels_per_class=1), QUICK_JUDGE)


def test_the_judge_learns_all_labels(blobs_judge: Learner, instances: Stream) -> None:
    everything = judge.all_labeled(instances)
    assert torch.equal(everything.labels, instances.dataset.train.labels)
    assert (everything.labels >= 0).all()
    right = blobs_judge.predict(instances.dataset.test.images) == instances.dataset.test.labels
    assert right.float().mean() > 0.9


def test_the_judge_is_one_for_the_same_images() -> None:
    data = blob_dataset()
    a = new_instance(data, increments=3, labels_per_class=1)
    b = new_class(data, increments=3, labels_per_class=1)
    assert judge.judge_name(a, QUICK_JUDGE) == judge.judge_name(b, QUICK_JUDGE)
    assert judge.judge_name(a, QUICK_JUDGE) != judge.judge_name(a, judge.JUDGE)
    few = new_instance(data, increments=3, labels_per_class=1, max_images=60)
    assert judge.judge_name(a, QUICK_JUDGE) != judge.judge_name(few, QUICK_JUDGE)


@pytest.mark.usefixtures("quick")
def test_a_judge_from_the_command_line_is_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "judge"
    row = tiny_row("ORDisCo", "ordisco")
    assert judge_script.main([*row.arguments[1:], "--out", str(out)]) == 0
    assert "judge of generated images" in capsys.readouterr().out
    assert load_learner(out).classes == [0, 1, 2, 3]
    assert ordisco_main(["resume", str(out)]) == 0
    assert "is finished" in capsys.readouterr().out
    assert judge_script.main([*row.arguments[1:], "--out", str(out)]) == 2
    assert judge_script.main(row.arguments[1:]) == 2


class Painter(Learner):
    """G that draws real images of the class asked for, but always zeros for class 5."""

    images: torch.Tensor
    labels: torch.Tensor

    def sample(self, labels: torch.Tensor, seed: int = 0) -> torch.Tensor:
        rng = torch.Generator().manual_seed(seed)
        picked = []
        for label in labels.tolist():
            (members,) = torch.where(self.labels == (0 if label == 5 else label))
            picked.append(members[torch.randint(len(members), (1,), generator=rng)])
        return self.images[torch.cat(picked)]


@pytest.fixture
def painter(instances: Stream) -> Painter:
    learner = make_learner("ordisco")
    learner.learn(instances[0])
    learner.__class__ = Painter
    assert isinstance(learner, Painter)
    learner.images, learner.labels = instances.dataset.train.images, instances.dataset.train.labels
    return learner


def test_samples_are_judged_by_class(painter: Painter, blobs_judge: Learner) -> None:
    got = sample_accuracy(painter, blobs_judge, per_class=10)
    assert got.per_class[5] == 0.0
    assert got.confusion[5, 0] >= 9
    assert got.per_class[0] > 0.8
    assert got.confusion.sum() == 60


def test_coverage_misses_the_class_that_is_missing(painter: Painter, blobs_judge: Learner, instances: Stream) -> None:
    train, test = instances.dataset.train, instances.dataset.test
    umb = train.images[train.labels < 2]
    found = coverings(painter, blobs_judge, Images(train.images, test.images, umb), points=1000, k=3)
    by = {(row.reference, row.points_of): row for row in found}
    assert len(by) == 8
    assert by["train", "generated"].points == by["train", "generated"].reference_points == 72
    assert by["train", "generated as many as UMB"].points == by["train", "UMB"].points == 24
    assert by["train", "real"].points == 24  # all test images
    assert by["test", "real"].coverage > 0.9
    assert 0.6 < by["test", "generated"].coverage < by["test", "real"].coverage  # five of six classes
    assert by["test", "UMB"].coverage < 0.6  # two of six classes
    assert by["train", "UMB"].coverage >= 24 / 72  # its own images


def test_the_umb_has_the_size_of_g_and_sees_what_was_learned(instances: Stream) -> None:
    learner = make_learner("ordisco")
    with pytest.raises(OrdiscoError, match="first increment"):
        seen_images(instances, learner)
    learner.learn(instances[0])
    images = seen_images(instances, learner)
    assert len(images.train) == len(instances[0])
    assert len(images.umb) == len(instances[0].unlabeled)  # G's bytes would hold far more
    assert {tuple(i.flatten().tolist()) for i in images.umb} == {
        tuple(i.flatten().tolist()) for i in instances[0].unlabeled
    }


def test_default_judge_takes_a_few_passes() -> None:
    assert judge.judge_settings(100).step.steps == judge.LEAST_STEPS
    assert judge.judge_settings(21_000).step.steps == 10 * 21_000 // 128
    assert isinstance(judge.JUDGE, LearnerSettings)


def test_results_that_are_damaged_are_told(tmp_path: Path) -> None:
    row = tiny_row("SMB", "smb")
    store = Results(tmp_path)
    store.write(row, False, {"a": 1, "b": [1, 2]})
    assert store.read(row, False) == {"a": 1, "b": [1, 2]}
    assert store.read(row, True) is None
    store.file(row, False).write_text("{")
    with pytest.raises(OrdiscoError, match="is not JSON"):
        store.read(row, False)


# ---------------------------------------------------------------------- comparisons


def test_paired_differences_of_a_comparison_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, its = [[0.5, 0.6, 0.7, 0.8, 0.9], [0.5, 0.5, 0.5, 0.5, 0.5]], [[0.5, 0.5, 0.5, 0.5, 0.6], [0.4] * 5]
    results = [{"accuracies": its}, {"accuracies": mine}]
    file = tmp_path / "comparison.json"
    file.write_text(json.dumps({"methods": ["smb", "ordisco"], "seeds": [0, 1], "results": results}))
    assert compared.main([str(file), "ordisco", "smb"]) == 0
    # 30 and 10 points: 20 ± 12.706 · 10; 18 and 10: 14 ± 12.706 · 4; 20 and 10: 15 ± 12.706 · 5
    assert capsys.readouterr().out.splitlines() == [
        "last increment: +20.0 [−107.1, +147.1]",
        "mean over increments: +14.0 [−36.8, +64.8]",
        "increments 2 to 4: +15.0 [−48.5, +78.5]",
    ]
    assert compared.main([str(file), "ordisco", "jt"]) == 2
    assert capsys.readouterr().err == "differences: method = 'jt' is not allowed: one of smb, ordisco\n"
