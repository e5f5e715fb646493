"""One self-contained page: no network, no server; style and script are in it, and nothing else may run."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ordisco.files import read_plain
from ordisco.report.html import Html, join, tag, text


@dataclass(frozen=True)
class Section:
    """A part of a page with a heading, reached from the contents by its name."""

    name: str
    heading: str
    body: Html
    note: str = ""
    short: str = ""  # how the contents call it


@functools.cache
def asset(name: str) -> str:
    """The style or the script."""
    return files("ordisco.report").joinpath(name).read_text(encoding="utf-8")


def page(title: str, lead: str, sections: Sequence[Section], refresh: int | None = None) -> bytes:
    """The page; `refresh`: a server's, which the script asks again after so many seconds."""
    style, script = asset("page.css"), asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data: 'self'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    if refresh is not None:
        policy += "; connect-src 'self'"
    head = join(
        [
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Html('<link rel="icon" href="data:,">'),
            tag("title", title),
            Html(f"<style>{style}</style>"),
        ]
    )
    contents = None
    if len(sections) > 1:
        links = [tag("li", tag("a", section.short or section.heading, href=f"#{section.name}")) for section in sections]
        contents = tag("nav", tag("ul", join(links)), aria_label="contents")
    main = tag("main", join(section_of(section) for section in sections))
    body = join([tag("header", tag("h1", title), tag("p", lead)), contents, main, Html(f"<script>{script}</script>")])
    html = f'<!doctype html>\n<html lang="en"><head>{head}</head>{tag("body", body, data_refresh=refresh)}</html>\n'
    return html.encode("utf-8", "backslashreplace")


def section_of(section: Section) -> Html:
    """A heading, a note and the body."""
    note = tag("p", section.note, class_="note") if section.note else None
    return tag("section", tag("h2", section.heading), note, section.body, id=section.name)


def table(header: Sequence[Html | str], rows: Sequence[Sequence[Html | str]], kind: str = "") -> Html:
    """A table whose first column is words and whose others are numbers; wide ones scroll by themselves."""
    head = tag("thead", tag("tr", join(tag("th", cell) for cell in header)))
    body = tag("tbody", join(tag("tr", join(cells(row))) for row in rows))
    return scrolling(tag("table", head, body, class_=kind or None))


def cells(row: Sequence[Html | str]) -> list[Html]:
    """The cells of a row, the first a heading."""
    return [tag("th", cell, scope="row") if not place else tag("td", cell) for place, cell in enumerate(row)]


def scrolling(inner: Html) -> Html:
    """What is wider than a phone scrolls sideways, also by keys."""
    return tag("div", inner, class_="wide", tabindex="0")


def details(summary: str, body: Html) -> Html:
    """Something to unfold."""
    return tag("details", tag("summary", summary), body)


def code(lines: Sequence[str]) -> Html:
    """Commands, a line each."""
    return tag("pre", tag("code", text("\n".join(lines))))


def png_in(path: Path) -> bytes | None:
    """A picture, None where there is none."""
    try:
        data = read_plain(path)
    except OSError:
        return None
    return data if data.startswith(b"\x89PNG") else None


def image(png: bytes, caption: str) -> Html:
    """A picture within the page, with its size, so that nothing moves when it is drawn."""
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    return tag(
        "img",
        src=f"data:image/png;base64,{base64.b64encode(png).decode()}",
        alt=caption,
        width=width,
        height=height,
        decoding="async",
    )


def figure(picture: Html, caption: str, kind: str = "") -> Html:
    """A picture with its caption."""
    return tag("figure", picture, tag("figcaption", caption), class_=kind or None)


def slider(frames: Sequence[tuple[str, bytes]], caption: str, at: int) -> Html:
    """Pictures one after the other under a slider; the one at `at`, counted from 1, is seen first and printed."""
    pictures = [
        tag("div", image(png, name), tag("span", name), class_="frame", hidden=place != at)
        for place, (name, png) in enumerate(frames, start=1)
    ]
    control = tag("input", type="range", min=1, max=len(frames), value=at, step=1, aria_label=f"{caption}: increment")
    return tag("figure", join(pictures), control, tag("figcaption", caption), class_="frames")
