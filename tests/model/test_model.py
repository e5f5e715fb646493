"""Model: names, pictures and a history around a learner."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open

from conftest import TINY
from deliveries import CPU, arrays, new_model, write_delivery, write_images
from ordisco.errors import OrdiscoError, UsageError
from ordisco.model.arrays import images_of, named_labels
from ordisco.model.model import Model


def test_it_learns_folders_and_is_the_same_when_opened_again(tmp_path, two_days):
    model = new_model(tmp_path / "m")
    first, second = (model.learn(day, steps=3) for day in two_days)
    assert model.classes == ["a", "b", "c"]
    assert (first["images"], first["labeled"], first["unlabeled"], first["new_classes"]) == (14, 6, 8, ["a", "b"])
    assert (second["delivery"], second["new_classes"], second["steps"]) == (2, ["c"], 3)
    again = Model.open(tmp_path / "m", CPU)
    images = arrays([0, 1, 2, 3])
    assert np.array_equal(again.predict_proba(images), model.predict_proba(images))
    assert np.array_equal(again.sample("c", 3), model.sample("c", 3))
    assert again.history == model.history
    assert again.deliveries == 2
    lines = (tmp_path / "m" / "history.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == model.history


def test_a_model_can_keep_no_image_at_all(tmp_path, two_days):
    """Not even those with a label: what it knows of the first day is in its weights."""
    model = new_model(tmp_path / "m", method="ordisco-no-images")
    for day in two_days:
        model.learn(day, steps=3)
    assert model.classes == ["a", "b", "c"]
    assert model.learner.bytes_kept()["labeled"] == 0
    for version in (tmp_path / "m" / "versions").iterdir():
        with safe_open(version / "tensors.safetensors", "pt") as tensors:
            assert not [name for name in tensors.keys() if tensors.get_slice(name).get_dtype() == "U8"]  # noqa: SIM118
    assert not (tmp_path / "m" / "work").exists()
    assert model.sample("a", 2).shape == (2, 8, 8)
    with pytest.raises(OrdiscoError, match="no labelled image and none is remembered: label at least one image"):
        model.learn(arrays([0, 1, 2]), [None, None, None], steps=1)


def test_it_learns_to_tell_images_apart():
    quick = TINY.replace(c_width=8, ema=0.8, dropout=0.0, batch_labeled=16)
    model = Model.create(None, side=8, settings=quick, method="smb", machine=CPU)
    labels = [0, 9] * 8
    model.learn(arrays(labels), labels, steps=40)
    assert model.predict(arrays([0, 9, 9, 0], seed=5)).tolist() == [0, 9, 9, 0]
    assert model.test(arrays([0, 9], seed=7), [0, 9])["accuracy"] == 1.0


def test_labels_come_back_as_they_were_given():
    numbers, texts = new_model(None), new_model(None)
    numbers.learn(arrays([0, 1, 2]), [10, 2, -1], steps=1)
    texts.learn(arrays([0, 1, 2]), ["10", None, "2"], steps=1)
    assert numbers.classes == [2, 10]
    assert texts.classes == ["2", "10"]
    assert set(numbers.predict(arrays([0, 1])).tolist()) <= {2, 10}
    numbers.learn(arrays([5], seed=3), [7], steps=1)
    assert numbers.classes == [2, 10, 7]
    with pytest.raises(OrdiscoError, match="are numbers, not texts as 'cat'"):
        numbers.learn(arrays([5], seed=4), ["cat"], steps=1)


def test_images_without_a_label_are_not_tested(two_days):
    model = new_model(None)
    assert model.learn(two_days[0], steps=3)["before"] is None
    assert model.test(two_days[0])["unlabeled"] == 8
    with pytest.raises(OrdiscoError, match="no labelled image"):
        model.test(two_days[0] / "b")
    photos = [*sorted((two_days[0] / "b").iterdir()), *sorted((two_days[0] / "unlabeled").iterdir())]
    found = model.test(photos)  # single images have the names of their folders
    assert (found["images"], found["unlabeled"], [sum(row) for row in found["confusion"]]) == (3, 8, [0, 3])
    with pytest.raises(OrdiscoError, match="'c' is no class of the model"):
        model.test(sorted((two_days[1] / "c").iterdir()))
    with pytest.raises(OrdiscoError, match=r"tuesday/c/.*png: 'c' is no class of the model, which knows a, b"):
        model.test(two_days[1])


def test_before_learning_counts_known_classes_only(two_days):
    model = new_model(None)
    model.learn(two_days[0], steps=3)
    right = (model.predict([str(path) for path in sorted((two_days[1] / "b").iterdir())]) == "b").mean()
    before = model.learn(two_days[1], steps=3)["before"]
    assert before == {"images": 3, "accuracy": right, "per_class": {"b": right}}


def test_images_set_aside_are_not_learned_and_are_tested(tmp_path):
    delivery = write_delivery(tmp_path / "d", "ab", 1, labeled=10)
    model = new_model(tmp_path / "m", holdout=0.3)
    record = model.learn(delivery, steps=3)
    assert (record["held_out"], record["labeled"], record["kept_images"]) == (6, 14, 14)
    assert record["holdout"]["images"] == 6
    assert record["holdout"]["forgetting"] is None
    again = Model.open(tmp_path / "m", CPU)
    record = again.learn(write_delivery(tmp_path / "e", "ab", 2, labeled=10), steps=3)
    assert record["holdout"]["images"] == 12
    assert record["holdout"]["forgetting"] >= 0


def test_a_small_share_is_held_out_over_many_deliveries():
    model = new_model(None, holdout=0.25)
    held = [
        model.learn(arrays([0, 0, 1, 1], seed=seed), ["a", "a", "b", "b"], steps=1)["held_out"] for seed in range(8)
    ]
    assert max(held) == 2
    assert 4 <= sum(held) <= 12  # 8 are expected


def test_test_images_of_a_delivery_are_set_aside(tmp_path, two_days):
    folder = write_delivery(tmp_path / "d", "ab", 1)
    write_images(folder / "test" / "a", 0, 2, seed=9)
    assert new_model(None).learn(folder, steps=1)["held_out"] == 2


@pytest.mark.parametrize(("labeled", "unlabeled"), [(3, 0), (0, 3), (1, 0), (0, 1)])
def test_a_delivery_may_lack_labels_or_unlabelled_images(tmp_path, two_days, labeled, unlabeled):
    model = new_model(None)
    model.learn(two_days[0], steps=1)
    record = model.learn(write_delivery(tmp_path / "d", "a", 5, labeled, unlabeled), steps=2)
    assert (record["labeled"], record["unlabeled"]) == (labeled, unlabeled)
    assert np.isfinite(model.predict_proba(arrays([0, 1]))).all()


def test_loose_images_are_unlabelled(tmp_path, two_days):
    model = new_model(None)
    model.learn(two_days[0], steps=1)
    write_images(tmp_path / "photos", 0, 3, seed=8)
    assert model.learn(tmp_path / "photos", steps=1)["unlabeled"] == 3


def test_the_same_delivery_is_noticed_by_its_content(tmp_path, two_days):
    model = new_model(tmp_path / "m")
    model.learn(two_days[0], steps=1)
    other = tmp_path / "renamed"
    for file in two_days[0].rglob("*.png"):
        (other / file.parent.name).mkdir(parents=True, exist_ok=True)
        (other / file.parent.name / f"x{file.name}").write_bytes(file.read_bytes())
    with pytest.raises(OrdiscoError, match="learned already, as delivery 1"):
        model.learn(other, steps=1)
    assert not (tmp_path / "m" / "work").exists()
    assert model.learn(other, steps=1, again=True)["delivery"] == 2


def test_a_label_more_makes_it_another_delivery(tmp_path):
    images = arrays([0, 1, 0, 1])
    model = new_model(None)
    model.learn(images, ["a", "b", None, None], steps=1)
    assert model.learn(images, ["a", "b", "a", None], steps=1)["delivery"] == 2


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 8, 8, 4), np.uint8), None, "are not allowed"),
        (np.zeros((2, 8, 8), np.int64), None, "uint8, or floating-point"),
        (np.full((2, 8, 8), 3.0), None, "outside 0 to 1"),
        (np.zeros((0, 8, 8), np.uint8), None, "no images"),
        (np.zeros((2, 8, 8), np.uint8), ["a"], "2 images have 1 labels"),
        (np.zeros((2, 8, 8), np.uint8), ["a", 3], "mixed"),
        (np.zeros((2, 8, 8), np.uint8), [1.5, None], "is not allowed"),
        (np.zeros((2, 8, 8), np.uint8), None, "no labelled image"),
        (np.zeros((2, 8, 8), np.uint8), ["a", "A "], "differ only in case"),
        ("nowhere", None, "no delivery"),
    ],
)
def test_what_cannot_be_learned_is_refused(images, labels, message):
    model = new_model(None)
    with pytest.raises(OrdiscoError, match=message):
        model.learn(images, labels, steps=1)
    assert model.deliveries == 0


def test_a_class_that_differs_in_case_from_a_known_one_is_refused(two_days):
    model = new_model(None)
    model.learn(two_days[0], steps=1)
    with pytest.raises(OrdiscoError, match="'A' and 'a' of the model differ only in case"):
        model.learn(arrays([0]), ["A"], steps=1)


def test_colour_for_a_model_of_grey_images_is_refused_and_grey_for_colour_is_not(tmp_path, two_days):
    colour = write_delivery(tmp_path / "colour", "ab", 3, channels=3)
    model = new_model(tmp_path / "m")
    model.learn(two_days[0], steps=1)
    with pytest.raises(OrdiscoError, match=r"\.png is a colour image, the model takes grey ones"):
        model.learn(colour, steps=1)
    with pytest.raises(OrdiscoError, match="colour image"):
        model.predict(colour)
    assert not (tmp_path / "m" / "work").exists()
    model = new_model(None)
    model.learn(colour, steps=1)
    assert model.image_shape == (3, 8, 8)
    assert model.learn(two_days[1], steps=1)["delivery"] == 2


def test_broken_images_are_left_out_and_named(tmp_path):
    folder = write_delivery(tmp_path / "d", "ab", 1)
    for place in ("a/0.png", "unlabeled/0.png", "unlabeled/zz.png"):
        (folder / place).write_bytes(b"no image")
    said = []
    model = new_model(tmp_path / "m")
    display = type("Display", (), {"message": said.append, "start": print, "step": print, "close": print})
    record = model.learn(folder, steps=1, display=display)
    assert (record["images"], record["labeled"], record["unlabeled"]) == (14, 6, 8)
    assert "3 unreadable images skipped" in said[0]
    images = torch.cat([part.images for part in model.pictures([folder / "a"])])
    kept = model.learner.state.memories.data.images[:3]
    assert {image.numpy().tobytes() for image in kept} == {image.numpy().tobytes() for image in images}


def test_undo_in_memory_is_refused():
    with pytest.raises(OrdiscoError, match="nothing to undo"):
        new_model(None).undo()


@pytest.mark.parametrize("options", [{"side": 9}, {"channels": 2}, {"holdout": 1.5}, {"seed": -1}, {"method": "x"}])
def test_a_model_that_cannot_be_is_refused_and_leaves_nothing(tmp_path, options):
    with pytest.raises(UsageError):
        Model.create(tmp_path / "m", **options)
    assert not (tmp_path / "m").exists()


def test_layouts_of_arrays():
    grey, colour = np.zeros((5, 9, 7), np.uint8), np.zeros((5, 9, 7, 3), np.uint8)
    assert images_of(grey).shape == images_of(grey[..., None]).shape == (5, 1, 9, 7)
    assert images_of(colour).shape == images_of(colour.transpose(0, 3, 1, 2)).shape == (5, 3, 9, 7)
    assert images_of(torch.from_numpy(colour)).shape == (5, 3, 9, 7)
    assert named_labels(np.array([3, -1, 3]), 3).labels.tolist() == [0, -1, 0]
