"""The page: self-contained, and safe whatever stands in the files that it shows."""

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from made_up import CODE, make_up
from ordisco.cli import main
from ordisco.pages.items import report
from ordisco.pages.runs import names_of
from ordisco.pages.runs import report as runs_report
from ordisco.paper.items import chosen, items
from ordisco.paper.make import Making
from ordisco.paper.scales import Plan
from ordisco.report.charts import Series, curves, nice
from ordisco.report.html import join, tag, text
from ordisco.report.page import Section, page, slider
from run_files import write_run
from tiny import call, one_line

EVIL = "<script>alert('x')</script>\"&"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def items_page(tmp_path: Path, names: list[str], leave_out: int = 0) -> bytes:
    plan = Plan.of("digits", seeds=2)
    place = make_up(chosen(names), plan, tmp_path, leave_out)
    return report(Making(chosen(names), plan, tmp_path).outcomes(), place.pictures)


def test_text_and_attributes_are_escaped_and_html_is_not_twice():
    cell = tag("td", EVIL, title=EVIL)
    assert "<script" not in cell
    assert cell.count("&lt;script&gt;") == 2
    assert tag("tr", cell) == f"<tr>{cell}</tr>"
    assert join([cell, "<b>"]) == f"{cell}&lt;b&gt;"
    assert text("a\x1b[31m\ud800") == "a\\x1b[31m\\ud800"
    assert tag("input", hidden=True, value=None, type="range") == '<input hidden type="range">'
    with pytest.raises(ValueError, match="no content"):
        tag("img", "x")


def test_nothing_of_a_page_comes_from_elsewhere(tmp_path: Path):
    html = items_page(tmp_path, ["table-3", "figure-5"]).decode()
    without_svg_names = html.replace("http-equiv", "")
    assert not re.search(r"https?:|src=\"(?!data:)|@import|url\(", without_svg_names)
    assert "default-src 'none'" in html


def test_names_from_files_cannot_become_markup(tmp_path: Path):
    run = write_run(tmp_path / "evil-run", names=["<img src=x onerror=alert(1)>", EVIL, "c"])  # type: ignore[arg-type]
    settings = (run / "settings.toml").read_text()
    (run / "settings.toml").write_text(settings.replace('"digits-1"', f"'''{EVIL}'''"))
    assert main(["report", str(run), "--out", str(tmp_path / "r.html")]) == 0
    html = (tmp_path / "r.html").read_text()
    assert html.count("<script") == 1
    assert "<img src=x" not in html
    assert "&lt;script&gt;" in html


def test_every_cell_of_the_paper_and_ours_is_on_the_page(tmp_path: Path):
    html = items_page(tmp_path, ["table-3"]).decode()
    for number in ("38.08", "73.32", "31.14", "84.66", "55.07", "85.52", "59.61", "67.18"):
        assert f">{number}</td>" in html
    assert html.count('<td class="ours') == 12
    assert "ordisco paper table-3 --scale digits" in html
    assert "ordisco run digits-1 --method smb" in html


def test_a_half_made_item_says_so_on_the_page(tmp_path: Path):
    html = items_page(tmp_path, ["table-3", "figure-10"], leave_out=1).decode()
    assert "Half-made, not a result" in html
    assert "half-made." in html
    assert '<td class="words half">half-made, 1 of 2 runs</td>' in html  # of the overview
    assert html.count('<td class="words">done</td>') == 1


def test_the_overview_counts_the_pairs_that_stand_in_the_paper_s_order(tmp_path: Path):
    html = items_page(tmp_path, ["table-3", "table-1"]).decode()
    held = sum(int(found) for found in re.findall(r"order holds in (\d+) of 6 pairs", html))
    assert f">{held} of 12</td>" in html
    assert '<a href="#table-3">Table 3</a>' in html
    assert 'id="overview"' not in items_page(tmp_path, ["table-3"]).decode()


def test_a_chart_shows_mean_band_and_the_paper_s_points():
    svg = curves([Series("ORDisCo", [[50.0, 60.0], [70.0, 80.0]], {2: 85.5})], "increment")
    assert svg.count("<polygon") == 1
    assert svg.count('class="point"') == 1
    assert "60.0 ± 14.1" in svg
    assert "70.0 ± 14.1" in svg
    assert curves([], "increment") == ""
    assert curves([Series("x", [])], "increment") == ""
    single = curves([Series("SMB", [[50.0]])], "task")
    assert "<polygon" not in single


@pytest.mark.parametrize(("span", "step"), [(100, 20), (40, 10), (3, 1), (0.4, 0.1), (7, 2)])
def test_ticks_are_round(span: float, step: float):
    assert nice(span) == pytest.approx(step)


def test_lines_of_one_method_are_told_apart_by_what_differs():
    base: dict[str, Any] = {"method": "smb", "preset": "demo", "learner": {"step": {"steps": 5}, "c": {"c_width": 4}}}
    other = {**base, "learner": {"step": {"steps": 9}, "c": {"c_width": 4}}}
    assert names_of([base, other]) == ["SMB, steps = 5", "SMB, steps = 9"]
    assert names_of([base, {**base, "method": "ordisco"}]) == ["SMB", "ORDisCo"]


def test_a_report_compares_seeds_and_passes_over_what_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for seed in (0, 1):
        write_run(tmp_path / "runs" / f"smb-{seed}", seed=seed)
    write_run(tmp_path / "runs" / "half", "ordisco", done=1, finished=False)
    (write_run(tmp_path / "runs" / "broken") / "metrics.jsonl").write_text('{"kind": "increment"\n')
    code, output, _ = call(capsys, "report", tmp_path / "runs", "--out", tmp_path / "r.html")
    html = (tmp_path / "r.html").read_text()
    assert (code, output.strip()) == (0, str(tmp_path / "r.html"))
    assert "Compared: digits-1" in html
    assert "60.0 ± 1.4" not in html
    assert "61.0 ± 1.4" in html  # of seeds 0 and 1 after the last increment
    assert "not finished: increment 1/3" in html
    assert "is damaged" in html
    assert "--increments 3" in html  # the command


def test_a_run_s_page_tells_code_machine_and_time(tmp_path: Path):
    run = write_run(tmp_path / "a")
    made = {"code": CODE, "machine": {"processor": "Abacus", "threads": 2, "torch": "2.9"}, "seconds": 61}
    (run / "summary.json").write_text(json.dumps(made))
    html = runs_report([run]).decode()
    assert f"ordisco 0.2.0, commit {CODE['commit']}<" in html
    assert "<td>Abacus, 2 threads, torch 2.9</td>" in html
    assert "<td>1 min 01 s</td>" in html
    (run / "summary.json").write_text('{"code": 3, "machine": [], "seconds": "x"}')
    assert "<td>—</td>" in runs_report([run]).decode()


def test_of_very_many_runs_the_best_are_drawn_and_all_are_listed(tmp_path: Path):
    runs = [write_run(tmp_path / f"run-{number:02d}", seed=number, steps=100 + number) for number in range(26)]
    html = runs_report(runs).decode()
    assert "Of 26 lines the 16 best at the end." in html
    assert "SMB, steps = 125" in html
    assert "Only the first 24 of 26 runs follow one by one." in html
    assert html.count('class="state finished"') == 24
    assert "run-25" in html


def test_what_is_no_run_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, _, error = call(capsys, "report", tmp_path)
    assert code == 1
    assert "no run in" in one_line(error)
    code, _, error = call(capsys, "report", tmp_path / "nowhere")
    assert code == 1
    assert "no directory at" in one_line(error)


# ---------------------------------------------------------------------- in a browser


@pytest.mark.slow
def test_a_browser_opens_the_page_without_an_error(tmp_path: Path):
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium")
    (tmp_path / "items.html").write_bytes(items_page(tmp_path, ["table-1", "table-3", "table-8", "figure-5"]))
    run = write_run(tmp_path / "run", "ordisco")
    (run / "samples").mkdir()
    for number in (1, 2, 3):
        (run / "samples" / f"increment-0{number}.png").write_bytes(PNG)
    assert main(["report", str(run), "--out", str(tmp_path / "run.html")]) == 0
    flags = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
    problems: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=[*flags, "--disable-component-update"])
        for scheme, width in (("light", 1100), ("dark", 390)):
            view = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
            view.on("console", lambda message: problems.append(message.text))
            view.on("pageerror", lambda error: problems.append(str(error)))
            for name in ("items.html", "run.html"):
                view.goto((tmp_path / name).as_uri())
                assert view.evaluate("document.documentElement.scrollWidth") <= width  # nothing sticks out
                chart = view.query_selector(".chart svg")
                chart.scroll_into_view_if_needed()
                chart.hover()
                assert view.query_selector(".tip:not([hidden])").inner_text()
            view.goto((tmp_path / "items.html").as_uri())
            assert not view.query_selector(".series.dim")
            view.query_selector(".chart .legend li").hover()  # the other lines step back
            assert len(view.query_selector_all(".chart .series.dim")) == 2
            view.goto((tmp_path / "run.html").as_uri())
            frames = view.query_selector_all(".frame")
            assert [frame.is_visible() for frame in frames] == [False, False, True]
            view.query_selector(".frames input").fill("1")
            assert [frame.is_visible() for frame in frames] == [True, False, False]
            view.close()
        browser.close()
    assert problems == []


def test_a_slider_shows_the_frame_that_it_is_given():
    html = slider([("one", PNG), ("two", PNG)], "caption", at=1)
    assert html.count("hidden") == 1
    assert html.index('alt="one"') < html.index("hidden") < html.index('alt="two"')
    assert html.count('width="1" height="1"') == 2  # a picture's place is known before it is drawn
    assert page("t", "l", [Section("a", "A", html)]).startswith(b"<!doctype html>")


def test_items_of_every_kind_have_a_panel():
    from ordisco.pages.items import PANELS
    from ordisco.paper.outcome import KINDS
    from ordisco.paper.words import PANELS as WORDS

    assert set(PANELS) == set(WORDS) == set(KINDS) == {item.kind for item in items().values()}
