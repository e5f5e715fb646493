"""Building the stream that the settings describe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.errors import UsageError, shown
from ordisco.streams.catalogue import check_dataset
from ordisco.streams.settings import LONGEST_CLASS, StreamSettings

if TYPE_CHECKING:
    from ordisco.streams.stream import Stream


def build_stream(settings: StreamSettings, name: str, seed: int = 0, data_dir: Path | None = None) -> Stream:
    """Find the data, read the images that the stream uses, and arrange them as the settings say."""
    from ordisco.data.load import find
    from ordisco.data.prepare import change_images, fewer_test_images, take_validation
    from ordisco.streams.arrange import new_class, new_instance

    check_dataset(settings.dataset)
    dataset = find(
        settings.dataset,
        data_dir,
        size=settings.size,
        num_classes=settings.num_classes,
        classes=_names("classes", settings.classes),
        seed=settings.data_seed,
        strict=settings.strict,
    )
    if settings.validation is not None:
        dataset = take_validation(dataset, settings.validation, settings.data_seed)
    if settings.max_test is not None:
        dataset = fewer_test_images(dataset, settings.max_test, settings.data_seed)
    if settings.grey or settings.contrast:
        dataset = change_images(dataset, settings.grey, settings.contrast)
    if settings.flip is not None:
        dataset = replace(dataset, flip=settings.flip)
    if settings.scenario == "new-instance":
        if settings.class_order is not None:
            raise UsageError("class_order is only for the scenario new-class")
        return new_instance(
            dataset,
            settings.increments,
            settings.labels_per_class,
            seed,
            settings.max_images,
            name,
            drift=settings.drift,
            even_classes=settings.even_classes,
        )
    if settings.drift:
        raise UsageError("drift is only for the scenario new-instance")
    order = _names("class_order", settings.class_order)
    return new_class(
        dataset,
        settings.classes_per_task,
        increments=settings.increments,
        labels_per_class=settings.labels_per_class,
        seed=seed,
        max_images=settings.max_images,
        even_classes=settings.even_classes,
        class_order=None if order is None else _positions(dataset.classes, order),
        name=name,
    )


def _names(field: str, text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise UsageError(f"{field} = {shown(text)} is not allowed: names separated by commas")
    if long := next((name for name in names if len(name) > LONGEST_CLASS), None):
        raise UsageError(f"{field} = {shown(long)} is not allowed: names of at most {LONGEST_CLASS} characters")
    return names


def _positions(classes: tuple[str, ...], order: tuple[str, ...]) -> list[int]:
    if sorted(order) != sorted(classes):
        raise UsageError(f"class_order = {shown(','.join(order))} is not allowed: {','.join(classes)} in any order")
    return [classes.index(name) for name in order]
