"""The streams by name, as settings to check against the paper (Sec. 5.1), and how to build one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ordisco.errors import UsageError, shown
from ordisco.fields import Settings, setting

if TYPE_CHECKING:
    from ordisco.stream import Stream

LONGEST_CLASS = 255  # characters of a class's name, as many as a folder's name may have
LONGEST_NAME = 100  # characters of a path's last part in a stream's name
LISTED = 65_536  # characters of a list of names
DATASETS = ("digits", "svhn", "cifar10", "tiny-imagenet")


@dataclass(frozen=True)
class StreamSettings(Settings):
    """The data and how they arrive."""

    dataset: str = setting("digits", f"{', '.join(DATASETS)}, or the path of your own folder or CSV file")
    scenario: Literal["new-instance", "new-class"] = setting(
        "new-instance", "every increment holds all classes, or each brings new ones"
    )
    increments: int = setting(
        10,
        "increments of New Instance (New Class takes the same labels, arranged by class)",
        low=1,
        high=32_000,
    )
    labels_per_class: int = setting(1, "labels of each class in each increment of New Instance", low=1, high=10**6)
    classes_per_task: int = setting(2, "new classes an increment in New Class", low=1, high=10**6)
    size: int | None = setting(None, "resize the images to size×size (own images: 32 if not given)", low=4, high=512)
    num_classes: int | None = setting(None, "draw so many classes by data_seed", low=2, high=10**6)
    classes: str | None = setting(None, "use these classes only, names separated by commas", longest=LISTED)
    class_order: str | None = setting(
        None, "order of the classes in New Class, names separated by commas", longest=LISTED
    )
    data_seed: int = setting(0, "draws the classes and the test images of own data", low=0, high=2**32 - 1)
    max_images: int | None = setting(None, "use at most so many training images", low=1, high=10**8)
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


_SVHN = StreamSettings(dataset="svhn", increments=30)
_CIFAR10 = StreamSettings(dataset="cifar10", increments=30)
_TINY = StreamSettings(dataset="tiny-imagenet", increments=10, labels_per_class=5)
_DIGITS = StreamSettings(dataset="digits", increments=10)


def _by_class(settings: StreamSettings) -> StreamSettings:
    return replace(settings, scenario="new-class")


# data set - labels a class in each increment; "-new-class" is the same labels as tasks of two new classes
STREAMS: dict[str, StreamSettings] = {
    "svhn-1": replace(_SVHN, labels_per_class=1),
    "svhn-3": replace(_SVHN, labels_per_class=3),
    "cifar10-5": replace(_CIFAR10, labels_per_class=5),
    "cifar10-13": replace(_CIFAR10, labels_per_class=13),
    "tiny-imagenet-5": replace(_TINY, num_classes=10, size=32),
    "tiny-imagenet-5-10c-32": replace(_TINY, num_classes=10, size=32),
    "tiny-imagenet-5-20c-32": replace(_TINY, num_classes=20, size=32),
    "tiny-imagenet-5-10c-64": replace(_TINY, num_classes=10, size=64),
    "digits-1": _DIGITS,
    "svhn-1-new-class": _by_class(replace(_SVHN, labels_per_class=1)),
    "cifar10-5-new-class": _by_class(replace(_CIFAR10, labels_per_class=5)),
    "tiny-imagenet-5-new-class": _by_class(replace(_TINY, num_classes=10, size=32)),
    "tiny-imagenet-5-10c-32-new-class": _by_class(replace(_TINY, num_classes=10, size=32)),
    "digits-1-new-class": _by_class(_DIGITS),
    "digits-5-new-class": _by_class(replace(_DIGITS, increments=5)),  # 5 labels a class in all: the demo
}


def stream_settings(name: str) -> StreamSettings:
    """The settings of a stream's name; a data set's name or path stands for the defaults on that data."""
    if name in STREAMS:
        return STREAMS[name]
    if name in DATASETS or is_there(name):
        return StreamSettings(dataset=name)
    raise UsageError(
        f"stream {shown(name)} is not allowed: one of {', '.join(STREAMS)}, a data set ({', '.join(DATASETS)}), "
        "or an existing folder or CSV file"
    )


def is_there(path: str) -> bool:
    """Is there a file or folder? Not where the name cannot be one: too long, or without a home to expand."""
    try:
        return bool(path) and Path(path).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def check_dataset(name: str) -> None:
    """Refuse what is neither a data set nor a file or folder."""
    if name not in DATASETS and not is_there(name):
        known = ", ".join(DATASETS)
        raise UsageError(f"data set {shown(name)} is not allowed: one of {known}, or an existing folder or .csv")


def short_name(name: str) -> str:
    """A stream's own name, or the name of a folder or file without its end, such as it may be part of another name."""
    return name if name in STREAMS or name in DATASETS else Path(name).expanduser().resolve().stem[:LONGEST_NAME]


def build_stream(settings: StreamSettings, name: str, seed: int = 0, data_dir: Path | None = None) -> Stream:
    """Load the data and arrange them as the settings say."""
    from ordisco import data
    from ordisco.data.prepare import change_images, take_validation
    from ordisco.stream import new_class, new_instance

    check_dataset(settings.dataset)
    dataset = data.load(
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
