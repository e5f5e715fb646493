"""Many images into one file: the same by one process or several, and what is broken is named."""

import os
import subprocess

import numpy as np
import pytest

from deliveries import write_images
from ordisco.data import decoding
from ordisco.data.decoding import decode_into
from ordisco.data.picture import decode
from ordisco.errors import OrdiscoError


@pytest.fixture
def images(tmp_path, monkeypatch):
    monkeypatch.setattr(decoding, "CHUNK", 3)
    write_images(tmp_path / "in", 1, 7, seed=0)
    paths = sorted((tmp_path / "in").iterdir())
    (tmp_path / "in" / "broken.png").write_bytes(b"x")
    return [*paths[:4], tmp_path / "in" / "broken.png", tmp_path / "missing.png", *paths[4:]]


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_pixels_are_those_of_each_image(tmp_path, images, processes):
    said = []
    outcome = decode_into(tmp_path / "out", images, 8, 1, said.append, processes)
    pixels = np.fromfile(tmp_path / "out", np.uint8).reshape(-1, 1, 8, 8)
    assert len(pixels) == len(images)
    assert sorted(outcome.broken) == [4, 5]
    assert outcome.coloured is None
    assert said[-1] == len(images)
    for index, path in enumerate(images):
        if index not in outcome.broken:
            assert np.array_equal(pixels[index], decode(path, 8)[0][:1])


def test_the_first_colour_image_is_named(tmp_path, images):
    write_images(tmp_path / "colour", 1, 1, seed=0, channels=3)
    (colour,) = (tmp_path / "colour").iterdir()
    outcome = decode_into(tmp_path / "out", [*images, colour, colour], 8, 3, lambda done: None)
    assert outcome.coloured == len(images)


@pytest.mark.slow
def test_a_process_that_dies_is_one_line(tmp_path, images, monkeypatch):
    original = subprocess.Popen

    def start(*args, **kwargs):
        process = original(*args, **kwargs)
        process.kill()
        process.wait()
        return process

    monkeypatch.setattr(decoding.subprocess, "Popen", start)
    with pytest.raises(OrdiscoError, match="process that decodes"):
        decode_into(tmp_path / "out", images, 8, 1, lambda done: None, 2)


def test_a_disk_that_is_full_later_is_one_line(tmp_path, images, monkeypatch):
    monkeypatch.setattr(decoding, "answer", lambda *args: {"error": os.strerror(28)})
    with pytest.raises(OrdiscoError, match="No space left"):
        decode_into(tmp_path / "out", images, 8, 1, lambda done: None, 1)
