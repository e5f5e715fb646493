"""The streams by name, as settings to check against the paper (Sec. 5.1)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ordisco.data.catalogue import not_a_dataset
from ordisco.errors import UsageError, shown
from ordisco.streams.settings import DATASETS, StreamSettings

LONGEST_NAME = 100  # characters of a path's last part in a stream's name

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
        raise not_a_dataset(name)


def short_name(name: str) -> str:
    """A stream's own name, or the name of a folder or file without its end, such as it may be part of another name."""
    return name if name in STREAMS or name in DATASETS else Path(name).expanduser().resolve().stem[:LONGEST_NAME]
