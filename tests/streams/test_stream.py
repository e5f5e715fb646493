import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ordisco.data.dataset import Dataset, Split
from ordisco.data.load import load
from ordisco.errors import OrdiscoError, UsageError
from ordisco.streams import manifest
from ordisco.streams.arrange import new_class, new_instance
from ordisco.streams.build import build_stream
from ordisco.streams.catalogue import STREAMS, stream_settings
from ordisco.streams.draw import _balanced
from ordisco.streams.drift import lighter_inside
from ordisco.streams.settings import StreamSettings
from ordisco.streams.stream import Increment, Stream


def numbered(counts: list[int], unlabeled: int = 0, test: int = 3) -> Dataset:
    """Images whose pixels spell their position, `counts[k]` of class k, grouped by class."""

    def split(labels: list[int]) -> Split:
        position = torch.arange(len(labels))
        images = torch.stack([position // 256, position % 256], dim=1).to(torch.uint8).view(-1, 2, 1, 1)
        return Split(images, torch.tensor(labels, dtype=torch.int64))

    labels = [label for label, count in enumerate(counts) for _ in range(count)] + [-1] * unlabeled
    tests = [label for label in range(len(counts)) for _ in range(test)]
    names = tuple(f"c{label}" for label in range(len(counts)))
    return Dataset("numbered", names, split(labels), split(tests), flip=False, translate=0)


def positions(increment: Increment) -> list[int]:
    pixels = increment.images[:, :, 0, 0].long()
    return (pixels[:, 0] * 256 + pixels[:, 1]).tolist()


cases = st.fixed_dictionaries(
    {
        "counts": st.lists(st.integers(12, 40), min_size=2, max_size=7),
        "unlabeled": st.integers(0, 30),
        "increments": st.integers(1, 4),
        "labels": st.integers(1, 3),
        "seed": st.integers(0, 2**32 - 1),
    }
)


@settings(deadline=None, max_examples=40)
@given(cases)
def test_new_instance_is_disjoint_complete_even_exact_and_repeatable(case: dict) -> None:  # type: ignore[type-arg]
    dataset = numbered(case["counts"], case["unlabeled"])
    stream = new_instance(dataset, case["increments"], case["labels"], case["seed"])
    again = new_instance(dataset, case["increments"], case["labels"], case["seed"])
    assert len(stream) == case["increments"]
    seen: list[int] = []
    for index, increment in enumerate(stream):
        seen += positions(increment)
        assert increment.labeled.labels.bincount().tolist() == [case["labels"]] * len(case["counts"])
        truth = dataset.train.labels[positions(increment)]
        assert torch.equal(stream.truth(index), truth)
        shown = increment.labels != -1
        assert torch.equal(increment.labels[shown], truth[shown])
        assert len(increment.unlabeled) + len(increment.labeled) == len(increment)
        assert torch.equal(increment.images, again[index].images)
        assert torch.equal(increment.labels, again[index].labels)
    assert sorted(seen) == list(range(len(dataset.train)))
    sizes = [len(increment) for increment in stream]
    assert max(sizes) - min(sizes) <= 1


@settings(deadline=None, max_examples=40)
@given(cases, st.floats(0, 1))
def test_drift_is_disjoint_complete_exact_and_sorted(case: dict, share: float) -> None:  # type: ignore[type-arg]
    dataset = numbered(case["counts"], case["unlabeled"])
    images = torch.nn.functional.pad(dataset.train.images, (0, 3, 0, 3))
    images[:, :, 1:3, 1:3] = torch.from_numpy(np.random.RandomState(0).randint(256, size=(len(images), 1, 1, 1)))
    dataset = dataclasses.replace(dataset, train=Split(images, dataset.train.labels))
    need = case["increments"] * case["labels"] * dataset.num_classes
    cap = round(need + share * (len(dataset.train) - need))
    options = (dataset, case["increments"], case["labels"], case["seed"], cap)
    stream, calm = new_instance(*options, drift=True), new_instance(*options)
    assert len(stream) == case["increments"]
    assert np.array_equal(stream.rows, calm.rows)  # the same images, in another order
    score = lighter_inside(dataset.train.images)
    before: dict[int, int] = {}
    for index, increment in enumerate(stream):
        assert increment.labeled.labels.bincount().tolist() == [case["labels"]] * len(case["counts"])
        shown = increment.labels != -1
        assert torch.equal(increment.labels[shown], stream.truth(index)[shown])
        scores = score[positions(increment)]
        for label in stream.truth(index).unique().tolist():
            mine = scores[stream.truth(index).numpy() == label]
            assert mine.min() >= before.get(label, mine.min())
            before[label] = mine.max()
    sizes = np.array([[(stream.truth(i) == k).sum() for k in range(dataset.num_classes)] for i in range(len(stream))])
    assert (sizes.max(0) - sizes.min(0)).max() <= 1  # of each class, every increment has as many


def test_lighter_inside_by_hand() -> None:
    images = torch.zeros(3, 1, 4, 4, dtype=torch.uint8)
    images[0, :, 1:3, 1:3] = 10  # light on dark: (40 inside · 12 pixels outside) − (0 · 4)
    images[1] = 10 - images[0]  # dark on light: (0 · 12) − (120 · 4)
    images[2] = 7  # neither
    assert lighter_inside(images).tolist() == [480, -480, 0]


@settings(deadline=None, max_examples=40)
@given(cases, st.integers(1, 3))
def test_new_class_takes_the_labels_of_new_instance(case: dict, per_task: int) -> None:  # type: ignore[type-arg]
    dataset = numbered(case["counts"])
    per_task = min(per_task, dataset.num_classes)
    order = np.random.RandomState(case["seed"]).permutation(dataset.num_classes).tolist()
    options = {"increments": case["increments"], "labels_per_class": case["labels"], "seed": case["seed"]}
    tasks = new_class(dataset, per_task, class_order=order, **options)
    instance = new_instance(dataset, **options)
    assert np.array_equal(tasks.shown, instance.shown)
    assert len(tasks) == -(-dataset.num_classes // per_task)
    seen: list[int] = []
    for index, task in enumerate(tasks):
        mine = sorted(order[index * per_task : (index + 1) * per_task])
        assert list(task.classes) == mine
        assert sorted(set(tasks.truth(index).tolist())) == mine
        so_far = sorted(order[: (index + 1) * per_task])
        assert list(tasks.classes_after(index)) == so_far
        assert sorted(set(tasks.test_after(index).labels.tolist())) == so_far
        assert torch.equal(tasks.test_seen_so_far.labels, tasks.test_after(index).labels)
        assert len(tasks.test_after(index)) == 3 * len(so_far)
        seen += positions(task)
    assert sorted(seen) == list(range(len(dataset.train)))


@settings(deadline=None, max_examples=40)
@given(cases, st.floats(0, 1), st.booleans())
def test_cap_is_exact_and_keeps_the_labels(case: dict, share: float, even: bool) -> None:  # type: ignore[type-arg]
    dataset = numbered(case["counts"], case["unlabeled"])
    need = case["increments"] * case["labels"] * dataset.num_classes
    cap = round(need + share * (len(dataset.train) - need))
    whole = new_instance(dataset, case["increments"], case["labels"], case["seed"])
    small = new_instance(dataset, case["increments"], case["labels"], case["seed"], max_images=cap, even_classes=even)
    assert len(small.rows) == len(small.assignment) == len(small.dataset.train) == cap
    assert np.array_equal(small.manifest().shown, whole.shown)
    assert torch.equal(small.dataset.train.images, dataset.train.images[torch.from_numpy(small.rows)])
    assert torch.equal(small.dataset.train.labels, dataset.train.labels[torch.from_numpy(small.rows)])
    labels = small.dataset.train.labels.numpy()
    if even and not case["unlabeled"]:
        used = np.bincount(labels)
        spare = [count for count, limit in zip(used, case["counts"], strict=True) if count < limit]
        assert not spare or used.max() - min(spare) <= 1


def test_a_cap_takes_images_as_they_come_unless_told_otherwise() -> None:
    dataset = numbered([4_000, 1_000])

    def counts(make: Callable[..., Stream], even: bool) -> list[int]:
        stream = make(dataset, increments=1, labels_per_class=5, max_images=1_010, even_classes=even)
        return np.bincount(stream.dataset.train.labels).tolist()

    for make in (new_class, new_instance):
        assert counts(make, even=False)[0] == pytest.approx(5 + 800, abs=60)  # 4 of 5; standard deviation 11
        assert counts(make, even=True) == [505, 505]


def test_order_within_an_increment_does_not_tell_the_class() -> None:
    stream = new_instance(numbered([50, 50]), 1, 1)
    truth = stream.truth(0)
    assert (truth[1:] != truth[:-1]).sum() > 20


def test_golden_streams_are_the_same_on_every_machine() -> None:
    digits = load("digits")
    instance = new_instance(digits, 10, 1, seed=0)
    tasks = new_class(digits, increments=5, labels_per_class=1, seed=7, max_images=500)
    assert instance.manifest().fingerprint() == "47cc4c955832e11e50018fcf6426210a03620309d42c7d740b9d54c914394b46"
    assert tasks.manifest().fingerprint() == "6fe40e01b6337d491bbfe1d98826168b12f4e038da0a6661e41352a26f5782de"
    assert (
        new_instance(digits, 10, 1, drift=True).manifest().fingerprint()
        == "13b85346fd5baa16f4b29c26f41da5f2cf77bf29cc15713dc16e407719759cf9"
    )
    assert np.flatnonzero(instance.shown)[:5].tolist() == [13, 63, 82, 88, 92]
    assert positions(new_instance(numbered([3, 3]), 1, 1, seed=5)[0]) == [1, 3, 4, 5, 2, 0]


def test_other_seeds_give_other_streams() -> None:
    digits = load("digits")
    prints = {new_instance(digits, 10, 1, seed=seed).manifest().fingerprint() for seed in range(5)}
    assert len(prints) == 5


def test_cursor() -> None:
    stream = new_class(numbered([9, 9, 9, 9]), increments=1, labels_per_class=1)
    assert len(stream.test_seen_so_far) == 0
    iteration = iter(stream)
    next(iteration)
    assert stream.test_seen_so_far.labels.unique().tolist() == [0, 1]
    next(iteration)
    assert stream.test_seen_so_far.labels.unique().tolist() == [0, 1, 2, 3]
    with pytest.raises(IndexError):
        stream[2]
    assert positions(stream[-1]) == positions(stream[1])


def test_a_learner_cannot_reach_the_truth_through_an_increment() -> None:
    increment = new_instance(load("digits"), 10, 1)[0]
    assert {field.name for field in dataclasses.fields(increment)} == {"images", "labels", "share"}
    assert increment.share is None  # which would be three numbers
    assert int((increment.labels == -1).sum()) == len(increment) - 10


def test_summary_has_the_documented_form() -> None:
    summary = new_class(numbered([9, 9, 9]), increments=2, labels_per_class=1, seed=3, name="mine").summary()
    assert json.loads(json.dumps(summary)) == {
        "name": "mine",
        "scenario": "new-class",
        "seed": 3,
        "test_images": 9,
        "increments": [
            {"images": 18, "labeled": 4, "labels_per_class": {"c0": 2, "c1": 2}, "classes": ["c0", "c1"]},
            {"images": 9, "labeled": 2, "labels_per_class": {"c2": 2}, "classes": ["c2"]},
        ],
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: new_instance(d, 0, 1), "increments = 0 is not allowed: from 1"),
        (lambda d: new_instance(d, 1, 0), "labels_per_class = 0 is not allowed"),
        (lambda d: new_instance(d, 1, 1, seed=-1), "seed = -1 is not allowed"),
        (lambda d: new_instance(d, 3, 2, max_images=17), "max_images = 17 is not allowed: 18 or more"),
        (lambda d: new_class(d, 4, increments=1, labels_per_class=1), "classes_per_task = 4 is not allowed"),
        (lambda d: new_class(d, increments=1, labels_per_class=1, class_order=[0, 1, 1]), "class_order"),
    ],
)
def test_wrong_arguments(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=message):
        call(numbered([9, 9, 9]))


def test_class_with_too_few_images_is_named() -> None:
    with pytest.raises(
        OrdiscoError, match="numbered: class 'c1' has 5 labelled training images, but 3 increments of 2"
    ):
        new_instance(numbered([9, 5, 9]), 3, 2)


@pytest.mark.parametrize(
    ("available", "total", "shares"),
    [([9, 9, 9], 7, [3, 2, 2]), ([1, 9, 9], 9, [1, 4, 4]), ([2, 2], 9, [2, 2]), ([5, 0, 5], 0, [0, 0, 0])],
)
def test_balanced(available: list[int], total: int, shares: list[int]) -> None:
    assert _balanced(available, total) == shares


def test_manifest_round_trip(tmp_path: Path) -> None:
    digits = load("digits")
    stream = new_class(digits, increments=5, labels_per_class=1, seed=4, max_images=900, name="mine")
    path = tmp_path / "deep" / "mine.json"
    stream.save(path)
    assert [file.name for file in path.parent.iterdir()] == ["mine.json"]
    assert path.stat().st_size < 5_000
    back = Stream.load(path, digits)
    assert (back.name, back.scenario, back.seed) == ("mine", "new-class", 4)
    assert back.summary() == stream.summary()
    for index in range(len(stream)):
        assert torch.equal(back[index].images, stream[index].images)
        assert torch.equal(back[index].labels, stream[index].labels)


def test_manifest_of_other_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    new_instance(numbered([9, 9]), 1, 1).save(path)
    with pytest.raises(OrdiscoError, match="made from other data"):
        Stream.load(path, numbered([9, 8]))


def _saved(tmp_path: Path) -> tuple[Path, dict]:  # type: ignore[type-arg]
    path = tmp_path / "m.json"
    new_instance(numbered([9, 9]), 2, 1).save(path)
    return path, json.loads(path.read_text())


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 3},
        {"seed": 1},
        {"seed": "x"},
        {"training_images": 17},
        {"training_images": 10**12},
        {"scenario": "other"},
        {"increment_of_image": "AAAA"},
        {"increment_of_image": 7},
        {"increment_of_image": manifest._pack(bytes(10**7))},
        {"label_shown": manifest._pack(b"\xff\xff\xff")},
        {"fingerprint": "0"},
    ],
)
def test_tampered_manifest_is_refused(tmp_path: Path, change: dict) -> None:  # type: ignore[type-arg]
    path, content = _saved(tmp_path)
    path.write_text(json.dumps(content | change))
    with pytest.raises(OrdiscoError, match=r"m\.json: (damaged|not a stream manifest)"):
        Stream.load(path, numbered([9, 9]))


def test_an_older_manifest_is_taken_only_where_every_image_is_used(
    tmp_path: Path,
) -> None:
    """Its checksum was over all images, so that of a stream with some of them cannot be checked."""
    dataset, path = numbered([9, 9]), tmp_path / "m.json"
    for images, words in ((None, None), (10, "written by an older ordisco, .*; make it anew")):
        stream = new_instance(dataset, 2, 1, max_images=images)
        stream.save(path)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 1}))
        for act in (stream.check, lambda file: Stream.load(file, dataset)):
            if words is None:
                act(path)
            else:
                with pytest.raises(OrdiscoError, match=words):
                    act(path)


def test_check_tells_another_stream_from_other_images(tmp_path: Path) -> None:
    dataset, path = numbered([9, 9]), tmp_path / "m.json"
    new_instance(dataset, 2, 1, max_images=10).save(path)
    new_instance(dataset, 2, 1, max_images=10).check(path)
    with pytest.raises(OrdiscoError, match=r"m\.json: another stream than numbered-1; check the seed"):
        new_instance(dataset, 2, 1, seed=1, max_images=10).check(path)
    with pytest.raises(OrdiscoError, match="another stream than numbered-1"):
        new_instance(numbered([9, 8]), 2, 1, max_images=10).check(path)
    images = dataset.train.images.clone()
    images[new_instance(dataset, 2, 1, max_images=10).rows[0], 0, 0, 0] += 1
    changed = dataclasses.replace(dataset, train=Split(images, dataset.train.labels))
    with pytest.raises(OrdiscoError, match="made from other data"):
        new_instance(changed, 2, 1, max_images=10).check(path)
    with pytest.raises(OrdiscoError, match="made from other data"):
        Stream.load(path, changed)
    stream = new_instance(dataset, 2, 1, max_images=10)
    manifest.write(path, dataclasses.replace(stream.manifest(), scenario="new-class"))
    with pytest.raises(OrdiscoError, match="another stream of the same data"):
        stream.check(path)


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"format": "ordisco-stream"', "\x00", "[" * 100_000])
def test_file_that_is_no_manifest(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(OrdiscoError, match=r"m\.json"):
        manifest.read(path)
    with pytest.raises(OrdiscoError, match="cannot read the manifest"):
        manifest.read(tmp_path / "none.json")


def test_manifest_that_skips_an_increment_or_shows_an_unknown_label(tmp_path: Path) -> None:
    dataset = numbered([9, 9], unlabeled=2)
    stream = new_instance(dataset, 2, 1)
    path = tmp_path / "m.json"
    manifest.write(path, dataclasses.replace(stream.manifest(), assignment=stream.assignment * 2))
    with pytest.raises(OrdiscoError, match="not numbered from 0"):
        Stream.load(path, dataset)
    manifest.write(path, dataclasses.replace(stream.manifest(), shown=np.ones(20, dtype=bool)))
    with pytest.raises(OrdiscoError, match="shows a label that the data do not have"):
        Stream.load(path, dataset)


def test_table_of_streams_is_the_papers() -> None:
    table = {
        name: (s.dataset, s.scenario, s.increments, s.labels_per_class, s.num_classes, s.size)
        for name, s in STREAMS.items()
    }
    assert table["svhn-1"] == ("svhn", "new-instance", 30, 1, None, None)
    assert table["svhn-3"] == ("svhn", "new-instance", 30, 3, None, None)
    assert table["cifar10-5"] == ("cifar10", "new-instance", 30, 5, None, None)
    assert table["cifar10-13"] == ("cifar10", "new-instance", 30, 13, None, None)
    assert table["tiny-imagenet-5"] == table["tiny-imagenet-5-10c-32"]
    assert table["tiny-imagenet-5-10c-32"] == ("tiny-imagenet", "new-instance", 10, 5, 10, 32)
    assert table["tiny-imagenet-5-20c-32"] == ("tiny-imagenet", "new-instance", 10, 5, 20, 32)
    assert table["tiny-imagenet-5-10c-64"] == ("tiny-imagenet", "new-instance", 10, 5, 10, 64)
    for name in ("svhn-1", "cifar10-5", "tiny-imagenet-5", "tiny-imagenet-5-10c-32", "digits-1"):
        assert STREAMS[f"{name}-new-class"] == dataclasses.replace(STREAMS[name], scenario="new-class")


def test_demo_stream_has_five_tasks_and_five_labels_a_class() -> None:
    summary = build_stream(STREAMS["digits-5-new-class"], "digits-5-new-class").summary()
    assert [row["classes"] for row in summary["increments"]] == [[str(2 * i), str(2 * i + 1)] for i in range(5)]
    assert {n for row in summary["increments"] for n in row["labels_per_class"].values()} == {5}


def test_build_stream_obeys_every_setting() -> None:
    chosen = StreamSettings(
        scenario="new-class",
        increments=3,
        labels_per_class=2,
        classes_per_task=1,
        size=4,
        classes="5, 3, 1",
        class_order="1,5,3",
        max_images=60,
        flip=True,
    )
    stream = build_stream(chosen, "mine", seed=2)
    assert stream.dataset.classes == ("5", "3", "1")
    assert stream.image_shape == (1, 4, 4)
    assert stream.dataset.flip
    assert [row["classes"] for row in stream.summary()["increments"]] == [["1"], ["5"], ["3"]]
    assert sum(row["images"] for row in stream.summary()["increments"]) == 60
    assert {row["labeled"] for row in stream.summary()["increments"]} == {6}
    drawn = build_stream(StreamSettings(num_classes=4, data_seed=1), "drawn")
    assert drawn.num_classes == 4
    with pytest.raises(UsageError, match="class_order = '1,5' is not allowed: 5,3,1 in any order"):
        build_stream(dataclasses.replace(chosen, class_order="1,5"), "mine")
    with pytest.raises(UsageError, match="class_order is only for"):
        build_stream(dataclasses.replace(chosen, scenario="new-instance"), "mine")


def test_stream_names(tmp_path: Path) -> None:
    assert stream_settings("svhn-1") is STREAMS["svhn-1"]
    assert stream_settings("svhn").dataset == "svhn"
    assert stream_settings(str(tmp_path)).dataset == str(tmp_path)
    with pytest.raises(UsageError, match="stream 'svhn-2' is not allowed: one of svhn-1, svhn-3"):
        stream_settings("svhn-2")
    with pytest.raises(UsageError, match="increments = 0 is not allowed"):
        StreamSettings(increments=0)
