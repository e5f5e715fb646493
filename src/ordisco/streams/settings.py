"""The data and how they arrive, as settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ordisco.data.catalogue import CATALOGUE
from ordisco.settings.fields import MOST_SEED, Settings, setting

LONGEST_CLASS = 255  # characters of a class's name, as many as a folder's name may have
LISTED = 65_536  # characters of a list of names
MOST_INCREMENTS = 32_000  # the manifest keeps an increment's number in two bytes
DATASETS = tuple(CATALOGUE)
Scenario = Literal["new-instance", "new-class"]


@dataclass(frozen=True)
class StreamSettings(Settings):
    """The data and how they arrive."""

    dataset: str = setting("digits", f"{', '.join(DATASETS)}, or the path of your own folder or CSV file")
    scenario: Scenario = setting("new-instance", "every increment holds all classes, or each brings new ones")
    increments: int = setting(
        10,
        "increments of New Instance (New Class takes the same labels, arranged by class)",
        low=1,
        high=MOST_INCREMENTS,
    )
    labels_per_class: int = setting(1, "labels of each class in each increment of New Instance", low=1, high=10**6)
    classes_per_task: int = setting(2, "new classes an increment in New Class", low=1, high=10**6)
    size: int | None = setting(None, "resize the images to size×size (own images: 32 if not given)", low=4, high=512)
    num_classes: int | None = setting(None, "draw so many classes by data_seed", low=2, high=10**6)
    classes: str | None = setting(None, "use these classes only, names separated by commas", longest=LISTED)
    class_order: str | None = setting(
        None, "order of the classes in New Class, names separated by commas", longest=LISTED
    )
    data_seed: int = setting(0, "draws the classes and the test images of own data", low=0, high=MOST_SEED)
    max_images: int | None = setting(None, "use at most so many training images", low=1, high=10**8)
    max_test: int | None = setting(None, "evaluate on at most so many test images (by data_seed)", low=1, high=10**8)
    even_classes: bool = setting(
        False, "max_images: as many of each class, by labels that nobody would have; else as they come"
    )
    grey: bool = setting(False, "one channel instead of three")
    contrast: bool = setting(False, "every image gets the same mean and standard deviation")
    validation: int | None = setting(
        None,
        "for tuning: hold out so many training images (by data_seed) and evaluate on them, not on the test images",
        low=1,
        high=10**8,
    )
    drift: bool = setting(False, "New Instance: from dark on light to light on dark, so that increments differ")
    flip: bool | None = setting(None, "mirrored images keep their label (own data: no, if not given)")
    strict: bool = setting(False, "an own image that cannot be decoded is an error")


def name_of_increment(scenario: str) -> str:
    """What an increment is called: `task` in New Class."""
    return "task" if scenario == "new-class" else "increment"
