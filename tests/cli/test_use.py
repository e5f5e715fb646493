"""The commands of a model in use: learn, predict, test, sample, show, undo."""

import csv
import io
import json

import pytest
from PIL import Image

from deliveries import new_model, write_delivery
from tiny import call, one_line

FEW = ("--steps", "2", "--threads", "1", "--accelerator", "cpu")


def size_of(path):
    with Image.open(path) as image:
        return image.size


@pytest.fixture(scope="module")
def model(tmp_path_factory, two_days):
    path = tmp_path_factory.mktemp("use") / "m"
    made = new_model(path, holdout=0.3)
    for day in two_days:
        made.learn(day, steps=2)
    return path


def test_the_first_delivery_makes_the_model_and_says_what_was_chosen(capsys, tmp_path, two_days):
    code, out, err = call(capsys, "learn", tmp_path / "m", two_days[0], *FEW)
    assert (code, err) == (0, "")
    assert "6 labelled and 8 unlabelled images, 2 classes; 8×8 pixels in grey, width 16, 2 steps" in out
    assert "delivery 1 learned in" in out
    code, out, _ = call(capsys, "learn", tmp_path / "m", two_days[1], *FEW, "--json")
    assert code == 0
    record = json.loads(out)
    assert (record["delivery"], record["new_classes"]) == (2, ["c"])


def test_minutes_become_steps(capsys, tmp_path, two_days):
    new_model(tmp_path / "m").learn(two_days[0], steps=1)
    code, out, _ = call(capsys, "learn", tmp_path / "m", two_days[1], "--minutes", "0.005", *FEW[2:], "--json")
    assert code == 0
    assert json.loads(out)["steps"] >= 1


def test_predict_as_csv_json_and_lines(capsys, tmp_path, model, two_days):
    images = sorted((two_days[0] / "a").iterdir())
    (tmp_path / "broken.png").write_bytes(b"x")
    code, out, err = call(capsys, "predict", model, two_days[0] / "a", tmp_path / "broken.png", "--csv", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [row["path"] for row in rows] == [str(path) for path in [*images, tmp_path / "broken.png"]]
    assert all(row["label"] in "abc" and 0 <= float(row["confidence"]) <= 1 for row in rows[:-1])
    assert (rows[-1]["label"], rows[-1]["confidence"]) == ("", "")
    assert "unreadable images: " in one_line(err)
    code, out, _ = call(capsys, "predict", model, images[0], "--json")
    assert json.loads(out)[0]["label"] == rows[0]["label"]
    code, out, _ = call(capsys, "predict", model, images[0])
    assert rows[0]["label"] in one_line(out).split()
    listed = tmp_path / "list.csv"
    listed.write_text(f"path\n{images[0]}\n{images[1]}\n")
    code, out, err = call(capsys, "predict", model, listed, "--csv", tmp_path / "out.csv")
    assert (code, out, err) == (0, "", "")
    assert [row["path"] for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())] == [
        str(path) for path in images[:2]
    ]


def test_test_counts(capsys, tmp_path, model, two_days):
    code, out, err = call(capsys, "test", model, *two_days, "--json", "--png", tmp_path / "c.png")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["images"] == 12
    assert result["per_class"].keys() == {"a", "b", "c"}
    assert sum(result["confusion"][i][i] for i in range(3)) / 12 == result["accuracy"]
    assert [sum(row) for row in result["confusion"]] == [3, 6, 3]
    assert size_of(tmp_path / "c.png")
    code, out, _ = call(capsys, "test", model, two_days[0])
    assert "accuracy" in out


def test_samples_are_drawn(capsys, tmp_path, model):
    assert call(capsys, "sample", model, "--class", "c", "-n", "5", "--out", tmp_path / "c.png")[0] == 0
    assert call(capsys, "sample", model, "--out", tmp_path / "all.png")[0] == 0
    assert size_of(tmp_path / "c.png") < size_of(tmp_path / "all.png")
    code, _, err = call(capsys, "sample", model, "--class", "dog", "--out", tmp_path / "x.png")
    assert code == 1
    assert "'dog' is no class of the model, which knows a, b, c" in one_line(err)


def test_show_says_what_is_kept(capsys, tmp_path, model):
    code, out, _ = call(capsys, "show", model, "--json", "--html", tmp_path / "m.html", "--png", tmp_path / "m.png")
    found = json.loads(out)
    assert code == 0
    assert found["classes"] == ["a", "b", "c"]
    kept = found["kept"]
    assert kept["labeled_images"] + kept["held_out_images"] == 12
    assert kept["held_out_images"] > 0
    assert kept["unlabeled_images"] == 0
    assert [record["delivery"] for record in found["deliveries"]] == [1, 2]
    page = (tmp_path / "m.html").read_text()
    assert "<script" not in page
    assert page.count("data:image/png;base64,") == 1
    assert page.count("<polyline") == 2  # before learning, and set aside
    assert "prefers-color-scheme: dark" in page
    code, out, _ = call(capsys, "show", model)
    assert "of the other 16 of 28 images nothing but what the networks learned" in out
    assert "delivery 1 to 2, accuracy in %" in out
    last = found["deliveries"][-1]
    assert last["holdout"]["forgotten"].keys() == found["deliveries"][0]["holdout"]["per_class"].keys()
    for name, held in last["holdout"]["per_class"].items():
        labels = sum(record["labels_per_class"].get(name, 0) for record in found["deliveries"])
        line = next(line for line in out.splitlines() if line.split()[:2] == [name, str(labels)])
        assert f"{100 * held:.1f} %" in line
    assert f"forgotten {100 * last['holdout']['forgetting']:.1f} %" in out
    assert f"{100 * last['before']['per_class']['b']:.1f} %" in next(x for x in out.splitlines() if x.startswith(" b "))


def test_names_cannot_write_into_the_page(tmp_path):
    made = new_model(tmp_path / "m")
    folder = write_delivery(tmp_path / "d", "ab", 1)
    (folder / "a").rename(folder / "<script>alert(1)<")
    made.learn(folder, steps=1)
    from ordisco.model.page import page

    assert "<script" not in page(made)


def test_undo_and_what_is_refused(capsys, tmp_path, two_days):
    path = tmp_path / "m"
    new_model(path).learn(two_days[0], steps=1)
    wrong = [
        (("learn", path, two_days[0], *FEW), 1, "has been learned already"),
        (("learn", path, two_days[1], "--side", "16"), 2, "side = 16 is only for a new model"),
        (("learn", path, two_days[1], "--steps", "2", "--minutes", "1"), 2, "not both"),
        (("learn", path, two_days[1], "--holdout", "2", *FEW), 2, "holdout = 2.0 is not allowed"),
        (("learn", path, tmp_path / "nowhere"), 1, "is no delivery"),
        (("predict", path, tmp_path / "nowhere"), 1, "No such file"),
        (("predict", tmp_path / "n", two_days[0]), 1, "no model at"),
        (("test", path, two_days[1]), 1, "'c' is no class of the model"),
        (("show", tmp_path / "n"), 1, "no model at"),
    ]
    for command, expected, words in wrong:
        code, out, err = call(capsys, *command)
        assert (code, out) == (expected, ""), command
        assert words in one_line(err)
    assert not (tmp_path / "n").exists()
    assert "is undone" in call(capsys, "undo", path)[1]
    code, _, err = call(capsys, "undo", path)
    assert code == 1
    assert "nothing to undo" in one_line(err)


def test_a_delivery_that_is_refused_makes_no_model(capsys, tmp_path):
    folder = write_delivery(tmp_path / "d", "ab", 1, labeled=0)
    code, _, err = call(capsys, "learn", tmp_path / "m", folder, *FEW)
    assert code == 1
    assert "no labelled image to learn from" in one_line(err)
    assert not (tmp_path / "m").exists()
