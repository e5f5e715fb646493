import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from ordisco.data import digits
from ordisco.data.dataset import Dataset, Split, choose_classes, hold_out, natural_order
from ordisco.data.load import load
from ordisco.data.pixels import denormalize, normalize
from ordisco.data.unread import Unread, select_classes, whole
from ordisco.errors import OrdiscoError, UsageError


def tiny(labels: list[int], classes: int = 3) -> Split:
    images = torch.arange(len(labels), dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 1, 4, 4).contiguous()
    return Split(images, torch.tensor(labels))


def test_digits_are_real_stratified_and_the_same_everywhere() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1438, 359)
    assert digits.image_shape == (1, 8, 8)
    assert digits.train.images.dtype == torch.uint8
    assert digits.train.labels.dtype == torch.int64
    assert int(digits.train.images.max()) == 255
    assert not digits.flip
    assert digits.translate == 1
    assert digits.test.labels.bincount().min() >= 35
    assert digits.checksum() == "28ad7a45f2a3692fb8cfec095ff1dca38719effb8aa52a19796d9db6c24dab93"


def test_checksum_sees_pixels_labels_and_shape() -> None:
    def checksum(train: Split) -> str:
        return Dataset("d", ("a", "b", "c"), train, tiny([0]), flip=False, translate=1).checksum()

    base = checksum(tiny([0, 1, 2]))
    assert checksum(tiny([0, 1, 2])) == base
    assert checksum(tiny([0, 1, 1])) != base
    assert checksum(Split(tiny([0, 1, 2]).images + 1, torch.tensor([0, 1, 2]))) != base
    assert checksum(Split(tiny([0, 1, 2]).images.view(3, 1, 2, 8), torch.tensor([0, 1, 2]))) != base


def test_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(OrdiscoError, match="d: a test label lies outside the 3 classes"):
        Dataset("d", ("a", "b", "c"), tiny([0]), tiny([3]), flip=False, translate=1)


def test_split_refuses_wrong_types() -> None:
    with pytest.raises(ValueError, match="uint8"):
        Split(torch.zeros(1, 1, 4, 4), torch.zeros(1, dtype=torch.int64))
    with pytest.raises(ValueError, match="int64"):
        Split(torch.zeros(1, 1, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64))


def test_normalize_and_back() -> None:
    pixels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    floats = normalize(pixels)
    assert floats.min() == -1
    assert floats.max() == 1
    assert torch.equal(denormalize(floats), pixels)
    assert denormalize(torch.tensor([-3.0, 3.0])).tolist() == [0, 255]
    already = torch.full((2,), 255.0)
    normalize(already)
    assert already.tolist() == [255, 255]


def test_classes_by_seed_are_nested_and_by_name_keep_their_order() -> None:
    names = [f"class{i}" for i in range(30)]
    ten = choose_classes(names, 10, None, 3, "d")
    twenty = choose_classes(names, 20, None, 3, "d")
    assert ten == sorted(ten)
    assert len(set(ten)) == 10
    assert set(ten) < set(twenty)
    assert choose_classes(names, 10, None, 4, "d") != ten
    assert choose_classes(names, None, ("CLASS5", "class2"), 0, "d") == [5, 2]
    assert choose_classes(names, None, None, 0, "d") == list(range(30))


@pytest.mark.parametrize(
    ("count", "names", "message"),
    [
        (31, None, "num_classes = 31 is not allowed: d has 30 classes"),
        (None, ("class1", "dog"), "d has no class 'dog'"),
        (None, ("class1", "Class1"), "named twice"),
        (3, ("class1", "class2"), "contradicts"),
    ],
)
def test_wrong_classes_are_told(count: int | None, names: tuple[str, ...] | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_classes([f"class{i}" for i in range(30)], count, names, 0, "d")


def test_select_classes_renumbers_and_keeps_the_unlabelled() -> None:
    train, test = whole(tiny([0, 1, 2, -1, 2])), whole(tiny([0, 1, 2]))
    part = select_classes(Unread("d", ("a", "b", "c"), train, test, flip=False, translate=1), [2, 0]).read()
    assert part.classes == ("c", "a")
    assert part.train.labels.tolist() == [1, 0, -1, 0]
    assert part.train.images[:, 0, 0, 0].tolist() == [0, 2, 3, 4]
    assert part.test.labels.tolist() == [1, 0]


def test_load_with_classes_and_size() -> None:
    part = load("digits", classes=("3", "8"), size=4)
    assert part.classes == ("3", "8")
    assert part.image_shape == (1, 4, 4)
    whole = load("digits", classes=("3", "8"))
    block = whole.train.images[0, 0, :2, :2].int().sum()
    assert int(part.train.images[0, 0, 0, 0]) == (int(block) + 2) // 4


def test_hold_out_takes_the_share_of_each_class_and_nothing_unlabelled() -> None:
    labels = np.array([0] * 10 + [1] * 20 + [2] * 1 + [-1] * 5)
    mask = hold_out(labels, 0.2, seed=1)
    assert [int(mask[labels == label].sum()) for label in (0, 1, 2, -1)] == [2, 4, 1, 0]
    assert np.array_equal(mask, hold_out(labels, 0.2, seed=1))
    assert not np.array_equal(mask, hold_out(labels, 0.2, seed=2))


def test_natural_order() -> None:
    assert natural_order(["10", "2", "a10", "a9", "b"]) == ["2", "10", "a9", "a10", "b"]


@pytest.mark.parametrize(("name", "size"), [("digits", 3), ("digits", 513)])
def test_wrong_size(name: str, size: int) -> None:
    with pytest.raises(UsageError, match=f"size = {size} is not allowed: from 4 to 512"):
        load(name, size=size)


def test_unknown_name_says_what_is_allowed() -> None:
    with pytest.raises(UsageError, match="'mnist' is not allowed: one of digits, svhn, cifar10, tiny-imagenet"):
        load("mnist")


@pytest.mark.parametrize("found", [True, False])
def test_the_digits_are_those_of_scikit_learn(found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not found:
        monkeypatch.setattr(digits, "find_spec", lambda name: None)
    train, test = digits.read([], digits.CLASSES, None)
    pixels, labels = load_digits(return_X_y=True)
    together = torch.cat([train.images, test.images]).flatten(1).to(torch.float64) / 255 * 16
    assert sorted(map(tuple, together.round().tolist())) == sorted(map(tuple, pixels.tolist()))
    assert sorted(torch.cat([train.labels, test.labels]).tolist()) == sorted(labels.tolist())
