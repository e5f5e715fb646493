"""What all figures share: a white sheet, one colour a method, and a file that is whole or absent."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ordisco.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT = "#222222", "#d9d9d9"

# Okabe and Ito's and Tol's colours, told apart by colour-blind readers; a family of methods keeps its colour.
FAMILIES = {
    "ordisco": "#0072b2",
    "smb+umb+uc": "#009e73",
    "smb+umb": "#cc79a7",
    "smb": "#e69f00",
    "jt": "#000000",
    "st": "#808080",
    "ewc": "#d55e00",
    "si": "#56b4e9",
    "mas": "#999933",
    "cgan": "#882255",
    "offline replay (2": "#661100",
    "offline": "#44aa99",
}
OTHERS = ("#332288", "#aa4499", "#117733", "#bb5566", "#6699cc")
DASHES = ("-", "--", ":", "-.")


def styles(methods: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and dash of each method: variants of a family share the colour and differ by their dash."""
    chosen: list[tuple[str, str]] = []
    unknown = 0
    for name in methods:
        family = next((start for start in FAMILIES if re.match(re.escape(start) + r"\b", name.lower())), None)
        colour = FAMILIES[family] if family else OTHERS[unknown % len(OTHERS)]
        unknown += family is None
        same = sum(other == colour for other, _ in chosen)
        chosen.append((colour, DASHES[same % len(DASHES)]))
    return chosen


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches, which makes room for what is drawn outside the axes."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")


def save_png(figure: Figure, path: Path) -> None:
    """Render and write atomically."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # class names may be in any script
        figure.savefig(buffer, format="png")
    write_atomically(path, buffer.getvalue())
