"""The judge of generated images, and what is said about generators."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from conftest import blob_dataset, make_learner
from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.evaluation.samples import Images, coverings, sample_accuracy, seen_images
from ordisco.learner.learner import Learner
from ordisco.runs.launch import load_learner
from ordisco.settings.learner import LearnerSettings
from ordisco.streams.arrange import new_class, new_instance
from ordisco.streams.stream import Stream
from ordisco.studies import judge as judging
from ordisco.studies.generators import summary, taught
from tiny import DATA as DATA_OPTIONS
from tiny import STREAM, call, one_line
from tiny_study import QUICK_JUDGE, quick_judge  # noqa: F401


@pytest.fixture(scope="module")
def blobs_judge() -> Learner:
    still = replace(blob_dataset(), translate=0)  # a shifted blob can be another class
    return judging.train_judge(new_instance(still, increments=3, labels_per_class=1), QUICK_JUDGE)


@pytest.mark.slow
def test_the_judge_learns_all_labels(blobs_judge: Learner, instances: Stream) -> None:
    everything = judging.all_labeled(instances)
    assert torch.equal(everything.labels, instances.dataset.train.labels)
    assert (everything.labels >= 0).all()
    right = blobs_judge.predict(instances.dataset.test.images) == instances.dataset.test.labels
    assert right.float().mean() > 0.9


def test_the_judge_is_one_for_the_same_images() -> None:
    data = blob_dataset()
    a = new_instance(data, increments=3, labels_per_class=1)
    b = new_class(data, increments=3, labels_per_class=1)
    assert judging.judge_name(a, QUICK_JUDGE) == judging.judge_name(b, QUICK_JUDGE)
    assert judging.judge_name(a, QUICK_JUDGE) != judging.judge_name(a, judging.JUDGE)
    few = new_instance(data, increments=3, labels_per_class=1, max_images=60)
    assert judging.judge_name(a, QUICK_JUDGE) != judging.judge_name(few, QUICK_JUDGE)


@pytest.mark.usefixtures("quick_judge")
@pytest.mark.slow
def test_a_judge_from_the_command_line_is_a_run_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "judge"
    train = ["judge", "--train", STREAM, *DATA_OPTIONS]
    assert main([*train, "--out", str(out)]) == 0
    assert "judge of generated images" in capsys.readouterr().out
    assert load_learner(out).classes == [0, 1, 2, 3]
    assert main(["resume", str(out)]) == 0
    assert "is finished" in capsys.readouterr().out
    assert main([*train, "--out", str(out)]) == 2
    assert "it exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--out DIR is missing"),
        (["--out", "o"], "give the directory of one or more runs, or --train STREAM"),
        (["r", "--train", "digits-1", "--out", "o"], "not both"),
        (["r", "--increments", "3", "--out", "o"], "increments is only for --train"),
        (["r", "--points", "0", "--out", "o"], "points = 0 is not allowed"),
        (["--train", "nowhere", "--out", "o"], "stream 'nowhere' is not allowed"),
    ],
)
def test_wrong_words_for_a_judge_are_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, "judge", *words)
    assert (code, out) == (2, "")
    assert message in one_line(err)
    assert list(tmp_path.iterdir()) == []


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
    assert judging.judge_settings(100).step.steps == judging.LEAST_STEPS
    assert judging.judge_settings(21_000).step.steps == 10 * 21_000 // 128
    assert isinstance(judging.JUDGE, LearnerSettings)


@pytest.mark.slow
def test_a_classifier_taught_by_generated_images_alone_is_blind_to_what_they_lack(painter: Painter, instances: Stream):
    still = replace(instances, dataset=replace(instances.dataset, translate=0))
    kept = painter.state.memories.data
    kept.images, kept.labels = kept.images[kept.labels < 2], kept.labels[kept.labels < 2]
    found = taught(painter, still, 120, settings=QUICK_JUDGE)
    assert 0.6 < found["generated"] <= 5 / 6  # class 5 is never drawn
    assert 0 < found["labelled"] <= 2 / 6
    painter.state.memories.data = None
    assert list(taught(painter, still, 12, settings=QUICK_JUDGE)) == ["generated"]


def test_what_was_taught_stands_in_the_table_where_it_was_measured() -> None:
    covered = [{"reference": "test", "points_of": name, "coverage": 0.5} for name in ("generated", "real")]
    result = {"run": "a", "increments": 1, "judge_test_accuracy": 0.9, "sample_accuracy": 0.8, "umb_images": 1}
    result |= {"train_images": 2, "coverings": covered, "nearness_per_class": {"0": 0.9, "1": 0.625}}
    assert "taught" not in summary([result]).markdown()
    assert [row[-1] for row in summary([result, {**result, "nearness_per_class": {}}]).rows] == ["0.62 to 0.90", "—"]
    both = summary([result, {**result, "taught": {"generated": 0.5, "labelled": 0.25}}])
    assert both.header[-2:] == ("taught by generated images", "taught by labelled images")
    assert [row[-2:] for row in both.rows] == [("—", "—"), ("50.0 %", "25.0 %")]
