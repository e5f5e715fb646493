"""Grey images, even contrast and images held out for tuning, against hand-computed cases."""

import pytest
import torch

from conftest import unread_blobs
from ordisco.data import prepare
from ordisco.data.prepare import change_images, even_contrast, fewer_test_images, grey, take_validation
from ordisco.errors import UsageError
from ordisco.streams.build import build_stream
from ordisco.streams.settings import StreamSettings


def test_grey_by_hand():
    red, green, blue, white = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
    image = torch.tensor([red, green, blue, white], dtype=torch.uint8).t().reshape(1, 3, 2, 2)
    assert grey(image).flatten().tolist() == [76, 150, 29, 255]
    assert grey(grey(image)).shape == (1, 1, 2, 2)


def test_even_contrast_by_hand():
    image = torch.tensor([100, 110, 100, 110], dtype=torch.uint8).reshape(1, 1, 2, 2)  # mean 105, deviation 5
    assert even_contrast(image).flatten().tolist() == [102, 153, 102, 153]  # 127.5 ∓ 5 · 51 / (5 + 5)
    flat = torch.full((1, 3, 2, 2), 200, dtype=torch.uint8)
    assert even_contrast(flat).unique().tolist() == [128]


def test_contrast_does_not_depend_on_brightness_nor_on_the_other_images():
    images = torch.randint(40, 200, (3, 3, 8, 8), dtype=torch.uint8)
    whole = even_contrast(images)
    assert torch.equal(even_contrast(images[1:2]), whole[1:2])
    assert torch.equal(even_contrast(images + 20), whole)


@pytest.mark.parametrize("change", [grey, even_contrast])
def test_images_are_changed_few_at_a_time_whatever_their_number(monkeypatch, change):
    images = torch.randint(0, 256, (11, 3, 4, 4), dtype=torch.uint8)
    alone = torch.cat([change(image[None]) for image in images])
    sizes = []
    monkeypatch.setattr(prepare, "CHUNK", 4)
    monkeypatch.setattr(torch.Tensor, "double", lambda part: sizes.append(len(part)) or part.to(torch.float64))
    assert torch.equal(change(images), alone)
    assert sizes == [4, 4, 3]
    assert change(images[:0]).shape == alone[:0].shape


def test_changed_images_leave_the_given_ones_alone():
    images = torch.randint(0, 256, (3, 3, 4, 4), dtype=torch.uint8)
    before = images.clone()
    even_contrast(grey(images))
    even_contrast(images)
    assert torch.equal(images, before)


def test_a_changed_data_set_keeps_its_labels():
    unread = unread_blobs()
    dataset, changed = unread.read(), change_images(unread, to_grey=False, contrast=True).read()
    assert torch.equal(changed.train.labels, dataset.train.labels)
    assert torch.equal(changed.test.images, even_contrast(dataset.test.images))


def test_held_out_images_replace_the_test_images_and_leave_the_training_set():
    unread = unread_blobs()
    dataset, held = unread.read(), take_validation(unread, 20, seed=3).read()
    assert len(held.test) == 20
    assert len(held.train) == len(dataset.train) - 20
    flat = [tuple(image.flatten().tolist()) for image in torch.cat([held.train.images, held.test.images])]
    assert sorted(flat) == sorted(tuple(image.flatten().tolist()) for image in dataset.train.images)
    assert torch.equal(take_validation(unread, 20, seed=3).read().test.images, held.test.images)
    assert not torch.equal(take_validation(unread, 20, seed=4).read().test.images, held.test.images)
    with pytest.raises(UsageError, match="validation = 72 is not allowed: blobs has 72 labelled images"):
        take_validation(unread, 72, seed=0)


def test_fewer_test_images_are_some_of_them_and_the_training_set_stays():
    unread = unread_blobs()
    dataset, fewer = unread.read(), fewer_test_images(unread, 5, seed=3).read()
    assert torch.equal(fewer.train.images, dataset.train.images)
    assert len(fewer.test) == 5
    there = {
        (tuple(x.flatten().tolist()), int(y)) for x, y in zip(dataset.test.images, dataset.test.labels, strict=True)
    }
    assert {
        (tuple(x.flatten().tolist()), int(y)) for x, y in zip(fewer.test.images, fewer.test.labels, strict=True)
    } < there
    assert torch.equal(fewer_test_images(unread, 5, seed=3).read().test.images, fewer.test.images)
    assert not torch.equal(fewer_test_images(unread, 5, seed=4).read().test.images, fewer.test.images)
    assert fewer_test_images(unread, len(dataset.test), seed=3) is unread
    stream = build_stream(StreamSettings(max_test=40, validation=300), "digits")
    assert (len(stream.dataset.test), len(stream.dataset.train)) == (40, 1438 - 300)


def test_a_stream_may_have_even_contrast_without_being_grey():
    plain = build_stream(StreamSettings(), "digits")
    even = build_stream(StreamSettings(contrast=True), "digits")
    assert torch.equal(even.dataset.train.images, even_contrast(plain.dataset.train.images))
    assert torch.equal(even.dataset.test.images, even_contrast(plain.dataset.test.images))


def test_a_stream_with_validation_never_shows_its_test_images():
    plain = build_stream(StreamSettings(), "digits")
    tuned = build_stream(StreamSettings(validation=300, contrast=True), "digits")
    assert len(tuned.dataset.test) == 300
    assert len(tuned.dataset.train) == len(plain.dataset.train) - 300
    assert plain.dataset.checksum() != tuned.dataset.checksum()
