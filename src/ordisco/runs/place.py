"""Where a run is, by its checkpoint: does it fit the run's settings and stream? Asked before the tensors are read."""

from __future__ import annotations

import math
from typing import Any

from ordisco.errors import OrdiscoError
from ordisco.learner.checks import check_image_shape
from ordisco.learner.expected import check_forms, check_numbers, check_whole
from ordisco.nets.networks import Networks
from ordisco.runs.checkpoint import Fits
from ordisco.runs.config import RunConfig
from ordisco.settings.methods import method
from ordisco.settings.steps import steps_of
from ordisco.streams.stream import Stream
from ordisco.tensorfile import Form


def fits_learner(config: RunConfig, most_images: int, nets: Networks | None = None) -> Fits:
    """For a learner that is only to be used: any stream of at most so many images; `nets` may be its networks."""

    def fits(state: dict[str, Any], forms: dict[str, Form]) -> None:
        shape = state.get("image_shape")
        if not isinstance(shape, list) or len(shape) != 3 or not all(type(side) is int for side in shape):
            raise OrdiscoError("image_shape is not three whole numbers")
        image_shape = (shape[0], shape[1], shape[2])
        check_image_shape(image_shape)
        learner = check_numbers(state.get("learner"))
        check_forms(method(config.method), config.learner, image_shape, learner, forms, most_images, nets)

    return fits


def fits_run(config: RunConfig, stream: Stream, nets: Networks) -> Fits:
    """For a run that goes on with these networks: this stream, and a place in it."""
    usable = fits_learner(config, int((stream.assignment >= 0).sum()), nets)

    def fits(state: dict[str, Any], forms: dict[str, Form]) -> None:
        if state.get("image_shape") != list(stream.image_shape):
            raise OrdiscoError(f"image_shape is not {list(stream.image_shape)}, that of the stream")
        check_whole("metrics_size", state.get("metrics_size"), 0, 2**53)
        spent = ["seconds", "seconds_before_increment"]
        spent += ["cpu_seconds"] if state.get("cpu_seconds") is not None else []  # older checkpoints do not have it
        for name in spent:
            value = state.get(name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise OrdiscoError(f"{name} is not a number of seconds")
        check_position(check_numbers(state.get("learner")), config, stream)
        usable(state, forms)

    return fits


def check_position(learner: dict[str, Any], config: RunConfig, stream: Stream) -> None:
    """Refuse numbers that no moment of this run has."""
    check_whole("capacity", learner["capacity"], stream.num_classes, stream.num_classes)
    under_way, done = learner["step_in_increment"], learner["increments"]
    check_whole("increments", done, 0, len(stream) - (1 if under_way else 0))
    steps = [
        steps_of(method(config.method), config.learner, index, images) for index, images in enumerate(stream.sizes)
    ]
    check_whole("step_in_increment", under_way, 0, steps[done] if under_way else 0)
    total = sum(steps[:done]) + under_way
    check_whole("total_steps", learner["total_steps"], total, total)
    for label in learner["classes"]:
        check_whole("a class", label, 0, stream.num_classes - 1)
    seen = stream.classes_after(done if under_way else done - 1) if done or under_way else ()
    if missing := sorted(set(seen) - set(learner["classes"])):
        raise OrdiscoError(f"classes lacks {missing[0]}, which the run had seen by then")
