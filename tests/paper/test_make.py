"""Items made from nothing: runs, judge, pictures, page; resumed, shared, and half-made where they are stopped."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from made_up import make_up
from ordisco.cli import parser
from ordisco.cli.paper import making_of
from ordisco.paper.items import items, on_data
from ordisco.paper.outcome import outcome
from ordisco.paper.place import Found, Place
from ordisco.paper.samples import one_class
from ordisco.paper.scales import Plan
from ordisco.paper.words import title
from ordisco.report.grids import grid_images, sample_grid
from ordisco.runs.launch import stream_of
from published import no_files  # noqa: F401
from tiny import BATCHES, NETS, call, one_line
from tiny_study import quick_judge  # noqa: F401

TINY = (*NETS, *BATCHES, "--steps", "1", "--seeds", "1", "--jobs", "1", "--accelerator", "cpu")
MADE = ("table-4", "figure-2", "figure-4")


@pytest.mark.usefixtures("quick_judge")
@pytest.mark.slow
def test_items_are_made_once_from_shared_runs_with_their_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("ordisco.paper.coverage.POINTS", 60)
    monkeypatch.setattr("ordisco.paper.coverage.DRAWN", 30)
    code, output, error = call(capsys, "paper", *MADE, *TINY, "--out", tmp_path)
    assert (code, error) == (0, "")
    assert "table-4, figure-2, figure-4 at the scale digits: 3 runs, about" in output
    assert len(list((tmp_path / "digits" / "results").iterdir())) == 3  # all three items share them
    assert len(list((tmp_path / "digits" / "judges").glob("digits-*"))) == 1
    assert "test images covered" in output
    kept = {name: json.loads((tmp_path / "digits" / "items" / f"{name}.json").read_text()) for name in MADE}
    assert kept["figure-4"]["panels"][0]["grids"][2]["at"] == 2
    [judge] = (tmp_path / "digits" / "judges").glob("digits-*")
    accuracy = json.loads((judge / "summary.json").read_text())["test_accuracy"]
    assert kept["table-4"]["quoted"][0]["ours"] == 100 * accuracy  # beside the paper's 94.38 %
    umbs = [row["points"] for row in kept["figure-2"]["panels"][0]["rows"] if row["points_of"] == "UMB"]
    assert umbs == [100, 100]  # the scale's, as SMB+UMB has it
    for grid in kept["figure-4"]["panels"][0]["grids"] + kept["figure-2"]["panels"][0]["grids"]:
        assert (tmp_path / "digits" / "pictures" / grid["file"]).read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "digits" / "report.html").read_text()
    assert page.count('id="table-4"') == page.count('id="figure-4"') == 1
    assert page.count("data:image/png;base64,") == 1 + 1 + 2 * 10  # t-SNE, real images, ten increments twice

    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "digits" / "runs").iterdir()}
    code, output, _ = call(capsys, "paper", "table-4", *TINY, "--out", tmp_path, "--json")
    assert code == 0
    assert json.loads(output)[0]["complete"]  # nothing but JSON: there was nothing to make
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "digits" / "runs").iterdir()} == before

    document = tmp_path / "docs" / "page.md"
    document.parent.mkdir()
    document.write_text(
        "".join(f"<!-- paper {name} digits -->\n\n<!-- end -->\n\n" for name in ("figure-2", "figure-4"))
    )
    assert call(capsys, "paper", *MADE, *TINY, "--out", tmp_path, "--items", tmp_path / "kept")[0] == 0
    assert call(capsys, "paper", "--fill", document, "--items", tmp_path / "kept")[0] == 0
    links = re.findall(r"!\[.*\]\((.*)\)", document.read_text())
    assert len(links) == 1 + 3  # t-SNE; real images and those of two methods
    for link in links:
        assert (document.parent / link).read_bytes().startswith(b"\x89PNG")

    [drawn] = (tmp_path / "digits" / "judged").glob("*-tsne.png")
    drawn.unlink()  # as where a kill came after the numbers and before the picture
    assert call(capsys, "paper", "figure-2", *TINY, "--out", tmp_path)[0] == 0
    assert drawn.exists()

    changes = {"c_width": 4, "g_width": 4, "d_width": 4, "z_dim": 4, "steps": 1, "accelerator": "cpu"}
    plan = Plan.of("digits", 1, {**changes, **{f"batch_{name}": 8 for name in ("labeled", "unlabeled", "generated")}})
    item = items()["figure-4"]
    [panel] = item.panels
    stream = stream_of(plan.config(panel.entries[0].lines[0], 0))
    found = Found(plan, Place(tmp_path / "digits", tmp_path / "digits" / "items"))
    one = one_class(panel.entries[1], item, panel, found, stream)
    run = found.runs(panel.entries[1].lines[0])[0]
    whole = grid_images(tmp_path / "digits" / "pictures" / one["file"], 10, 10, (8, 8))
    for increment in (1, 10):
        grid = grid_images(run / "samples" / f"increment-{increment:02d}.png", 10, 10, (8, 8))
        assert np.array_equal(whole[increment - 1], grid[0])  # class 0


@pytest.mark.usefixtures("no_files")
@pytest.mark.slow
def test_at_the_scale_paper_an_item_begins_and_is_half_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ("--scale", "paper", "--max-steps", "2", "--threads", "1", "--d-steps", "1")
    small = [*NETS, *BATCHES, "--seeds", "1", "--jobs", "1", "--accelerator", "cpu"]
    code, output, error = call(capsys, "paper", "table-7", *words, *small, "--out", tmp_path)
    assert (code, error) == (0, "")
    assert output.count("stopped after 2 steps as asked") == 4
    assert "Half-made, not a result: 0 of 4 runs are done." in output
    assert not (tmp_path / "paper" / "items").exists()
    run = next((tmp_path / "paper" / "runs").glob("svhn-1-st-seed0-*/settings.toml")).read_text()
    assert 'c_net = "wrn-28"' in run
    assert "steps = 200000" in run


def test_a_run_whose_pictures_are_gone_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    make_up([items()["figure-10"]], Plan.of("digits", 1), tmp_path)
    code, _, error = call(capsys, "paper", "figure-10", "--seeds", "1", "--show", "--out", tmp_path)
    assert code == 1
    assert "has no pictures" in one_line(error)


def test_a_grid_gives_back_its_images(tmp_path: Path):
    images = np.random.default_rng(0).integers(0, 255, (6, 3, 16, 16), dtype=np.uint8)
    sample_grid(tmp_path / "grid.png", images, 2, ["a", "a long name"])
    back = grid_images(tmp_path / "grid.png", 2, 3, (16, 16))
    assert np.array_equal(back.reshape(6, 16, 16, 3), images.transpose(0, 2, 3, 1))
    with pytest.raises(ValueError, match="no grid of 3×3"):
        grid_images(tmp_path / "grid.png", 3, 3, (16, 16))


def test_the_command_of_a_launcher_is_the_whole_command(tmp_path: Path) -> None:
    args = parser().parse_args(["paper", "table-3", "--seeds", "2", "--out", str(tmp_path), "--launcher", "ray"])
    words = making_of(args).whole()
    again = parser().parse_args([*words, "--job", "key"])
    assert (again.names, again.seeds, again.out, again.launcher) == (["table-3"], 2, tmp_path.resolve(), "local")


def test_one_data_set_is_asked_for_again_and_kept_beside_the_whole_item(tmp_path: Path):
    args = parser().parse_args(["paper", "table-3", "--scale", "small", "--data", "svhn", "--out", str(tmp_path)])
    making = making_of(args)
    [item] = making.items
    assert making.command(item) == "ordisco paper table-3 --scale small --data svhn"
    make_up([item], making.plan, tmp_path)
    [of] = making.outcomes()
    assert [panel["name"] for panel in of["panels"]] == ["SVHN-1"]
    assert title(of) == "Table 3: Ablation with few labels: replay and Reg, on svhn alone"
    assert [file.name for file in making.place.items.iterdir()] == ["table-3-svhn.json"]
    [figure] = on_data([items()["figure-5"]], "svhn")
    quotes = outcome(figure, making.plan, making.place, "")["quoted"]
    assert quotes
    assert all("CIFAR" not in quote["what"] for quote in quotes)
