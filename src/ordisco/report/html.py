"""HTML that cannot be broken by what is put into it: text is escaped, unless it is HTML that was made here."""

from __future__ import annotations

import html
from collections.abc import Iterable

from ordisco.errors import one_line

VOID = ("img", "input", "meta", "br", "link")


class Html(str):
    """HTML made by `tag` or `join`."""

    __slots__ = ()


def text(value: object) -> Html:
    """Escaped text in which control characters and broken Unicode are written out."""
    lines = str(value).split("\n")
    return Html("\n".join(html.escape(one_line(line)) for line in lines))


def tag(name: str, /, *children: Html | str | float | None, **attributes: object) -> Html:
    """An element; `class_` and `data_x` are the attributes class and data-x, True is one without a value.

    >>> tag("td", "a < b", class_="best")
    '<td class="best">a &lt; b</td>'
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{text(value)}"')
    parts.append(">")
    if name not in VOID:
        parts += [inside(child) for child in children if child is not None]
        parts.append(f"</{name}>")
    elif children:
        raise ValueError(f"<{name}> has no content")
    return Html("".join(parts))


def inside(child: Html | str | float) -> str:
    """A child as it stands in the page."""
    return child if isinstance(child, Html) else text(child)


def join(parts: Iterable[Html | str | None]) -> Html:
    """Pieces one after the other."""
    return Html("".join(inside(part) for part in parts if part is not None))
