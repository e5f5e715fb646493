"""A user's text in errors, warnings and tables: one line, printable, not too long, and never taken for markup."""

import io
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ordisco.errors import OrdiscoError, OrdiscoWarning, UsageError, one_line, readable
from ordisco.report.board import LiveBoard
from ordisco.report.grids import sample_grid
from ordisco.report.summary import run_summary_markdown
from ordisco.report.table import TextTable, markdown_table
from ordisco.report.terminal import LiveDisplay, PlainDisplay
from ordisco.words import shortened

ODD = "pets [/y] [red]\n\x1b[31m\udcff"
SHOWN = r"pets [/y] [red]\n\x1b[31m\udcff"


def test_one_line() -> None:
    assert one_line("plain, “Kätzchen” 猫 \\n") == "plain, “Kätzchen” 猫 \\n"
    assert one_line(ODD) == SHOWN
    assert one_line("\r\u2028\u202e") == r"\r\u2028\u202e"


def test_long_names_are_shortened_in_the_middle() -> None:
    said = readable(f"cannot read {'x' * 5000}/end.png: try another")
    assert said.startswith("cannot read xxx")
    assert said.endswith("/end.png: try another")
    assert len(said) < 500
    assert len(readable("word " * 5000)) < 2001


@pytest.mark.parametrize("kind", [OrdiscoError, UsageError, OrdiscoWarning])
def test_errors_and_warnings_are_one_line(kind: type[Exception]) -> None:
    assert str(kind(ODD)) == SHOWN
    assert str(pickle.loads(pickle.dumps(kind(ODD)))) == SHOWN
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn(ODD, OrdiscoWarning, stacklevel=1)
    assert str(caught[0].message) == SHOWN


def test_displays_show_names_as_they_are() -> None:
    table = TextTable(("method", "after the last increment", "time"), (("ordisco [/m]", "50.0 %", "1.0 s"),))
    for make in (lambda out: LiveDisplay(Console(file=out, width=120, force_terminal=False)), PlainDisplay):
        out = io.StringIO()
        display = make(out)
        display.start(f"ORDisCo on {ODD}", 1, 1)
        display.comparison(table, ODD)
        display.close()
        assert out.getvalue().count(SHOWN) == 2
        assert "ordisco [/m]" in out.getvalue()


def test_the_board_shows_names_as_they_are() -> None:
    out = io.StringIO()
    board = LiveBoard(Console(file=out, width=200, force_terminal=True))
    row = board.row(ODD)
    row.start("title", 1, 1)
    row.step(1, 1, {}, 1.0)
    board.close()
    assert out.getvalue().count(SHOWN) >= 2


def test_markdown_and_figures(tmp_path: Path) -> None:
    assert len(markdown_table(["a"], [[ODD]]).splitlines()) == 3
    assert run_summary_markdown(ODD, {"data": ODD}, []).count(SHOWN) == 2
    assert shortened("a\nb", 18) == r"a\nb"
    assert shortened("x" * 5000, 18) == "x" * 17 + "…"
    sample_grid(tmp_path / "grid.png", np.zeros((2, 1, 8, 8), np.uint8), 2, ["a\nb", "\udcff"])
    assert (tmp_path / "grid.png").stat().st_size
