"""Figures, tables and summaries: what is drawn is what was given."""

import errno
import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from conftest import record_of
from ordisco import words
from ordisco.errors import OrdiscoError
from ordisco.report import confusion, curves, figure
from ordisco.report.confusion import confusion_matrix
from ordisco.report.curves import accuracy_curves
from ordisco.report.frontier import MARKS
from ordisco.report.grids import sample_grid
from ordisco.report.summary import run_summary_markdown
from ordisco.report.table import TextTable


@pytest.fixture
def drawn(monkeypatch):
    """The figures handed to `save_png`, which writes nothing."""
    figures = []
    for module in (curves, confusion):
        monkeypatch.setattr(module, "save_png", lambda sheet, path: figures.append(sheet))
    return figures


def test_curves_show_means_bands_and_ends(drawn, tmp_path):
    accuracy_curves(
        tmp_path / "a.png", {"ORDisCo": [[0.5, 0.6, 0.7], [0.7, 0.6]], "SMB": [0.4, 0.5, 0.45]}, "task", "T"
    )
    axes = drawn[0].axes[0]
    lines = {line.get_color(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}
    assert lines[figure.FAMILIES["ordisco"]] == ([1, 2], pytest.approx([60, 60]))
    assert lines[figure.FAMILIES["smb"]] == ([1, 2, 3], pytest.approx([40, 50, 45]))
    band = max(axes.collections, key=lambda band: np.ptp(band.get_paths()[0].vertices[:, 1]))
    first = [y for x, y in band.get_paths()[0].vertices if x == 1]
    assert (min(first), max(first)) == pytest.approx((60 - 200**0.5, 60 + 200**0.5))  # std of 50 and 70
    assert [text.get_text() for text in axes.texts] == ["ORDisCo  60.0", "SMB  45.0"]
    assert (axes.get_xlabel(), axes.get_title(loc="left")) == ("task", "T")
    assert "2 seeds" in axes.get_ylabel()


@pytest.mark.parametrize(
    ("values", "expected"),
    [([55, 82], (50, 90)), ([15, 82], (0, 90)), ([95, 99.9], (90, 101)), ([0, 0], (0, 10))],
)
def test_the_axis_goes_by_full_tens(values, expected):
    assert curves.limits([np.array([values], dtype=float)]) == expected


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_labels_are_pushed_apart_in_order(heights):
    placed = curves.pushed_apart(heights, gap=5, low=0, high=100)
    assert min(placed) >= -1e-9
    assert max(placed) <= 100 + 1e-9
    by_height = sorted(range(len(heights)), key=lambda index: heights[index])
    gaps = np.diff([placed[index] for index in by_height])
    assert np.all(gaps >= 5 - 1e-9)
    if np.all(np.diff(np.sort(heights)) >= 5):
        assert placed == pytest.approx(heights)


def test_labels_that_meet_part_evenly():
    assert curves.pushed_apart([50, 50, 80], gap=4, low=0, high=100) == pytest.approx([48, 52, 80])
    assert curves.pushed_apart([99, 100], gap=4, low=0, high=100) == pytest.approx([96, 100])


def test_a_method_keeps_its_colour_and_variants_differ_by_dash():
    first = figure.styles(["SMB", "ORDisCo", "ORDisCo −Reg", "SMB+UMB", "mine"])
    assert first[1][0] == first[2][0] == figure.styles(["ORDisCo"])[0][0]
    assert len(set(first)) == 5
    assert figure.styles(["simple"])[0][0] not in figure.FAMILIES.values()  # not SI
    assert len({figure.styles([name])[0] for name in figure.FAMILIES}) == len(figure.FAMILIES)
    looks = figure.styles(["ORDisCo", "ORDisCo, last G", "ORDisCo+"])
    assert len({MARKS[dash] for _, dash in looks}) == 3  # in a frontier, where a curve may be one point


def test_confusion_matrix_shows_shares_of_the_true_class(drawn, tmp_path):
    confusion_matrix(tmp_path / "c.png", [[3, 1, 0], [0, 0, 0], [0, 5, 5]], ["cat", "d$g$", "eel"], "After 3")
    axes = drawn[0].axes[0]
    assert axes.images[0].get_array().tolist() == [[75, 25, 0], [0, 0, 0], [0, 50, 50]]
    cells = {(*text.get_position(), text.get_text()) for text in axes.texts}
    assert cells == {(0, 0, "75"), (1, 0, "25"), (1, 2, "50"), (2, 2, "50")}
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cat", "d$g$", "eel"]
    assert axes.get_title(loc="left") == "After 3 — 57.1 % correct"


def test_confusion_of_many_classes_has_no_numbers(drawn, tmp_path):
    confusion_matrix(tmp_path / "c.png", np.eye(200, dtype=int), [f"n{index:08d}" for index in range(200)])
    axes = drawn[0].axes[0]
    assert not axes.texts
    assert len(axes.get_yticklabels()) == 50


def test_figures_are_png_files_written_whole(tmp_path, monkeypatch):
    accuracy_curves(tmp_path / "new" / "a.png", {"名 $x": [0.5]})
    with Image.open(tmp_path / "new" / "a.png") as image:
        assert image.format == "PNG"
        assert image.size == (1200, 675)
    before = (tmp_path / "new" / "a.png").read_bytes()

    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OrdiscoError, match=r"a\.png: No space left"):
        accuracy_curves(tmp_path / "new" / "a.png", {"SMB": [0.5, 0.6]})
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "new").iterdir()] == [("a.png", before)]


@pytest.mark.parametrize("channels", [1, 3])
def test_grid_pixels_are_squares_in_rows_of_classes(tmp_path, channels):
    images = np.random.default_rng(0).integers(0, 256, (6, channels, 4, 5), dtype=np.uint8)
    sample_grid(tmp_path / "g.png", images, 2, ["zero", "one"], scale=8)
    with Image.open(tmp_path / "g.png") as image:
        sheet = np.asarray(image)
    left = sheet.shape[1] - 3 * (5 * 8 + 4)  # gap of 4
    assert sheet.shape[0] == 4 + 2 * (4 * 8 + 4)
    for index in range(6):
        top, start = 4 + index // 3 * 36, left + index % 3 * 44
        cell = sheet[top : top + 32, start : start + 40]
        expected = images[index].repeat(8, axis=1).repeat(8, axis=2).transpose(1, 2, 0)
        assert np.array_equal(cell, np.broadcast_to(expected, (32, 40, 3)))
    assert sheet[:, :left].min() < 128  # the names
    assert np.all(sheet[:4] == 255)


def test_grid_takes_tensors_and_refuses_what_is_no_grid(tmp_path):
    torch = pytest.importorskip("torch")
    sample_grid(tmp_path / "g.png", torch.zeros(4, 1, 8, 8, dtype=torch.uint8), 2, ["a", "b"])
    with Image.open(tmp_path / "g.png") as image:
        assert image.size[1] == 4 + 2 * (64 + 4)
    for images, rows in ((np.zeros((4, 1, 8, 8)), 2), (np.zeros((5, 1, 8, 8), np.uint8), 2)):
        with pytest.raises(ValueError, match="a grid of 2 rows needs"):
            sample_grid(tmp_path / "g.png", images, rows, ["a", "b"])


TABLE = TextTable(
    ("method", "after the last increment", "time"),
    (("ORDisCo", "85.0 ± 7.1 %", "1 min 15 s"), ("S|B", "70.0 ± 0.0 %", "9.0 s")),
    best=(0,),
)


def test_a_table_is_markdown_and_lines_up():
    assert TABLE.markdown().splitlines() == [
        "| method  | after the last increment |       time |",
        "| ------- | -----------------------: | ---------: |",
        "| ORDisCo |             85.0 ± 7.1 % | 1 min 15 s |",
        "| S\\|B    |             70.0 ± 0.0 % |      9.0 s |",
    ]


def test_rich_table_marks_the_best():
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, color_system="standard", _environ={})
    console.print(TABLE.rich("Digits"))
    best, other = (next(line for line in out.getvalue().splitlines() if name in line) for name in ("ORD", "S|B"))
    assert "\x1b[1m" in best
    assert "\x1b[1m" not in other
    assert "1 min 15 s" in best


def test_summary_has_facts_rows_and_figures():
    records = [
        record_of(1, 0.99, seconds=10.2),
        record_of(2, 0.9, seconds=3700, pseudo_label_accuracy=0.5),
    ]
    text = run_summary_markdown("ORDisCo on digits", {"seed": "0"}, records, [("Accuracy", "figures/a.png")])
    assert text.splitlines() == [
        "# ORDisCo on digits",
        "",
        "- seed: 0",
        "",
        "| increment | classes | accuracy | pseudo-labels |       time |  kept |",
        "| --------- | ------: | -------: | ------------: | ---------: | ----: |",
        "| 1         |       2 |   99.0 % |             – |       10 s | 100 B |",
        "| 2         |       2 |   90.0 % |        50.0 % | 1 h 02 min | 100 B |",
        "",
        "![Accuracy](<figures/a.png>)",
    ]
    assert run_summary_markdown("Empty", {}, []) == "# Empty\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (7380, "2 h 03 min"),
        (24 * 3600 - 1, "1 d 00 h"),
        (1e6, "11 d 14 h"),
    ],
)
def test_durations(seconds, text):
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9960, "10 kB"), (999_600, "1.0 MB"), (2.5e13, "25.0 TB")],
)
def test_sizes(count, text):
    assert words.size(count) == text


def test_long_names_are_shortened():
    assert words.shortened("goldfish, Carassius", 10) == "goldfish,…"
    assert words.shortened("goldfish", 8) == "goldfish"


@pytest.mark.slow
def test_importing_the_report_is_light_and_pyplot_never_loads(tmp_path):
    code = f"""
import sys
from pathlib import Path
from ordisco.report import curves
assert not {{"matplotlib", "PIL", "rich", "torch"}} & set(sys.modules)
curves.accuracy_curves(Path({str(tmp_path)!r}) / "a.png", {{"SMB": [0.5, 0.6]}})
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
