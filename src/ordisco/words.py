"""Words for people: shares, durations, sizes, names cut short."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

from ordisco.errors import one_line


def percent(share: float) -> str:
    """A share in percent.

    >>> percent(0.9034)
    '90.3 %'
    """
    return f"{100 * share:.1f} %"


def percent_mean(shares: Sequence[float]) -> str:
    """`90.3 ± 1.2 %`: mean and sample standard deviation, or the value alone where there is only one."""
    if len(shares) == 1:
        return percent(shares[0])
    return f"{100 * statistics.fmean(shares):.1f} ± {100 * statistics.stdev(shares):.1f} %"


def duration(seconds: float) -> str:
    """Seconds in at most two units.

    >>> [duration(seconds) for seconds in (4.2, 48, 65, 7400, 273600)]
    ['4.2 s', '48 s', '1 min 05 s', '2 h 03 min', '3 d 04 h']
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24:02d} h"


def size(count: float) -> str:
    """`512 B`, `3.4 kB`, `34 kB`, `120 MB`: powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.1f} {unit}" if unit != "B" and count < 9.95 else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def shortened(text: str, length: int) -> str:
    """The text in one line, or its beginning and an ellipsis where it is longer than `length`."""
    text = one_line(text[: 2 * length])
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "class"), counted(2, "class"), counted(0, "delivery"), counted(1_500, "image")
    ('1 class', '2 classes', '0 deliveries', '1,500 images')
    """
    if count != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun}"


def some_of(names: Sequence[str], most: int) -> str:
    """`a, b, c`, or the first and how many there are.

    >>> some_of(["cat", "dog", "fox"], 2)
    'cat, dog, … (3 in all)'
    """
    return ", ".join(names[:most]) + (f", … ({len(names):,} in all)" if len(names) > most else "")


def file_name(text: str) -> str:
    """The text with a hyphen for what a file's name had better not have.

    >>> file_name("my data: 5 classes")
    'my-data-5-classes'
    """
    return re.sub(r"[^\w.+-]+", "-", text, flags=re.ASCII)
