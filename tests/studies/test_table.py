"""Tables by hand, results that are damaged, and documents that are filled."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ordisco.errors import OrdiscoError, UsageError
from ordisco.studies.documents import Block
from ordisco.studies.each import each_increment
from ordisco.studies.results import Results
from ordisco.studies.study import Study
from ordisco.studies.table import Group, Span, grouped, study_text, table_of
from tiny import call, one_line
from tiny_study import run_study, tiny_row, write_study

ROOT = Path(__file__).parents[2]


def fake(last: float, accuracies: list[float] | None = None) -> dict[str, Any]:
    return {
        "last_accuracy": last,
        "mean_accuracy": last / 2,
        "accuracies": accuracies or [0.0, last],
        "pseudo_label_accuracies": [None],
        "generated_accuracies": [None],
        "seconds": 60.0,
        "kept_bytes": 1500,
    }


LASTS = {"JT": (0.8, 0.8), "SMB": (0.5, 0.6, 0.4), "ORDisCo": (0.7, 0.7, 0.5)}
ROWS = tuple(tiny_row(name, name.lower(), seed) for name in LASTS for seed in range(3))
DONE = [(row, fake(LASTS[row.name][row.seed])) for row in ROWS if row.seed < len(LASTS[row.name])]


def cells_of(text: str) -> dict[str, list[str]]:
    """The cells of a Markdown table by the first of each row."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return {line.split("|")[1].strip(): [c.strip() for c in line.split("|")[2:-1]] for line in lines}


def test_the_table_by_hand() -> None:
    study = Study("T", ROWS, "SMB", "JT")
    text = study_text(study, DONE)
    cells = cells_of(text)
    # Differences 0.2, 0.1, 0.1: mean 0.1333, s = 0.057735, half = 4.302653 · s / √3 = 0.143422.
    assert cells["ORDisCo"][3] == "+13.3 [−1.0, +27.7]"
    # Gaps 0.3 and 0.2 of seeds 0 and 1 are within chance; seed 0 by itself has a gain of 0.2 of a gap of 0.3.
    assert cells["ORDisCo"][4] == "no gap"
    assert "67 %" in study_text(study, [(row, result) for row, result in DONE if row.seed == 0])
    assert cells["SMB"] == ["3", "50.0 ± 10.0 %", "25.0 ± 5.0 %", "—", "—", "1 min 00 s", "1.5 kB"]
    assert cells["JT"][3] == "+25.0 [−38.5, +88.5]"
    assert "8 of 9 rows are done" in text
    assert "pseudo" not in text
    to_jt = study_text(study.against("JT"), DONE)
    assert "last − JT" in to_jt
    assert "gap" not in to_jt
    assert "−25.0 [−88.5, +38.5]" in to_jt  # SMB, the other way round


def test_cpu_seconds_of_runs_and_to_an_accuracy() -> None:
    points = {"SMB": [[2.0, 0.9], [5.0, 0.4], [9.0, 0.8]], "ORDisCo": [[30.0, 0.6], [50.0, 0.7]]}
    done = [(row, result | {"cpu_seconds": 9.4, "points": points.get(row.name, [])}) for row, result in DONE]
    cells = cells_of(study_text(Study("T", ROWS), done, reach=0.7))
    titles, last = cells["method"], {name: row[-3:-1] for name, row in cells.items()}
    assert titles[-3:-1] == ["CPU s", "CPU s to 70 % (seeds)"]
    assert (last["SMB"], last["ORDisCo"], last["JT"]) == (["9", "2 (3 of 3)"], ["9", "50 (3 of 3)"], ["9", "—"])
    done[-1][1]["cpu_seconds"] = None  # a mean of some seeds would not be that of the others
    assert cells_of(study_text(Study("T", ROWS), done))["ORDisCo"][-2] == "—"


def test_columns_without_entries_are_left_out() -> None:
    plain = table_of([Group("SMB", {0: fake(0.5)}), Group("ORDisCo", {0: fake(0.6)})])
    assert plain.header == ("method", "after the last increment", "mean over increments", "time", "kept")
    assert plain.best == (1,)
    seeds = table_of([Group("SMB", {0: fake(0.5), 1: fake(0.6)})], times=False)
    assert seeds.header == ("method", "seeds", "after the last increment", "mean over increments", "kept")
    judged = table_of([Group("ORDisCo", {0: fake(0.5) | {"generated_accuracies": [None, 0.9]}})])
    assert "samples by judge" in judged.header


def test_differences_over_some_increments_by_hand() -> None:
    mine = {0: fake(0.9, [0.5, 0.6, 0.7, 0.8, 0.9]), 1: fake(0.5, [0.5] * 5)}
    its = {0: fake(0.6, [0.5, 0.5, 0.5, 0.5, 0.6]), 1: fake(0.4, [0.4] * 5)}
    groups = [Group("SMB", its), Group("ORDisCo", mine)]
    # 30 and 10 points: 20 ± 12.706 · 10; 18 and 10: 14 ± 12.706 · 4; 20 and 10: 15 ± 12.706 · 5
    for over, expected in (
        (None, "+20.0 [−107.1, +147.1]"),
        (Span.read("1-5"), "+14.0 [−36.8, +64.8]"),
        (Span.read("2-4"), "+15.0 [−48.5, +78.5]"),
    ):
        assert expected in table_of(groups, "SMB", over=over).rows[1]
    assert "mean over increments 2 to 4" in table_of(groups, "SMB", over=Span.read("2-4")).header
    assert Span.read("3") == Span(3, 3)
    with pytest.raises(UsageError, match="over = 2-6 is not allowed: there are 5 increments"):
        table_of(groups, "SMB", over=Span.read("2-6"))
    for text in ("", "0-2", "3-2", "a", "1-", "-1", "²", "1-2-3"):
        with pytest.raises(UsageError, match="is not allowed: increments such as 2-4"):
            Span.read(text)


def test_rows_of_other_images_are_in_a_table_of_their_own() -> None:
    rows = (tiny_row("SMB", "smb"), tiny_row("held out", "smb", validation=20))
    text = study_text(Study("T", rows), [(row, fake(0.5)) for row in rows])
    assert "### digits-1-new-class, increments = 1, classes = 0,1,2,3, max_images = 80\n" in text
    assert "max_images = 80, validation = 20\n" in text


# ---------------------------------------------------------------------- results


def test_results_that_are_damaged_are_told(tmp_path: Path) -> None:
    row, store = tiny_row("SMB", "smb"), Results(tmp_path)
    store.write(row, fake(0.5))
    assert store.read(row) == fake(0.5)
    judged = replace(row, judged=True)
    assert store.read(judged) is None
    store.write(judged, fake(0.6))
    assert store.read(row) == fake(0.6)  # one that was judged serves
    store.file(judged).unlink()
    for text, message in (("{", "is not JSON"), ("[]", "is not the result of a run"), ("{}", "is not the result")):
        store.file(row).write_text(text)
        with pytest.raises(OrdiscoError, match=message):
            store.read(row)
    store.file(row).unlink()
    store.file(row).symlink_to("/dev/zero")
    with pytest.raises(OrdiscoError, match="it is a symbolic link"):
        store.read(row)


# ---------------------------------------------------------------------- documents


def test_a_document_is_filled_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_study(tmp_path / "studies.toml")
    for row in (tiny_row("SMB", "smb"), tiny_row("ORDisCo", "ordisco")):
        Results(tmp_path / "results").write(row, fake(0.5 if row.name == "SMB" else 0.75))
    document = tmp_path / "doc.md"
    document.write_text(
        "# A\n\nAs in `<!-- study s -->`.\n\n<!-- study s -->\nold\n<!-- end -->\nB\n"
        "<!-- study s --only SMB --against SMB -->\n<!-- end -->\nC\n"
    )
    before = document.read_text()
    code, out, err = call(capsys, "study", file, "--fill", document, "--check")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"{document}: the block `study s` is out of date: fill it without --check",
        f"{document}: the block `study s --only SMB --against SMB` is out of date: fill it without --check",
    ]
    assert document.read_text() == before
    assert call(capsys, "study", file, "--fill", document)[:2] == (0, f"{document}: 2 tables written\n")
    text = document.read_text()
    assert text.startswith("# A\n\nAs in `<!-- study s -->`.\n\n<!-- study s -->\n\n| method ")
    assert text.endswith("|\n\n<!-- end -->\nC\n")
    first, second = text.split("\nB\n")
    assert cells_of(first)["ORDisCo"] == ["75.0 %", "37.5 %", "+25.0", "1.5 kB"]
    assert [name for name in cells_of(second) if name.isalpha()] == ["method", "SMB"]
    assert "old" not in text
    assert call(capsys, "study", file, "--fill", document, "--check")[:2] == (0, "")
    document.write_text(text.replace("75.0", "76.0"))
    assert call(capsys, "study", file, "--fill", document, "--check")[0] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "has no block `<!-- study NAME -->`"),
        ("<!-- study s -->\n", "the block `study s` has no <!-- end -->"),
        ("<!-- study s -->\n<!-- study s -->\n<!-- end -->\n", "the block `study s` has no <!-- end -->"),
        ("<!-- study t -->\n<!-- end -->\n", "block `study t`: study 't' is not in"),
        ("<!-- study s --only X -->\n<!-- end -->\n", "block `study s --only X`: only = 'X' is not allowed"),
        ("<!-- study s --colour red -->\n<!-- end -->\n", "--colour red is not allowed: one of --only"),
        ("<!-- study s --seeds a -->\n<!-- end -->\n", "--seeds a is not allowed"),
        ("<!-- study s -->\n<!-- end -->\n", "block `study s`: it has no results yet"),
    ],
)
def test_a_document_that_cannot_be_filled_is_one_line(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, document = write_study(tmp_path / "studies.toml"), tmp_path / "doc.md"
    document.write_text(text)
    code, out, err = call(capsys, "study", file, "--fill", document)
    assert code in (1, 2)
    assert out == ""
    assert message in one_line(err)
    assert document.read_text() == text


def test_a_block_may_show_other_results_of_the_same_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, row = write_study(tmp_path / "studies.toml"), tiny_row("SMB", "smb")
    Results(tmp_path / "results").write(row, fake(0.75))
    Results(tmp_path / "results" / "before").write(row, fake(0.5))
    document = tmp_path / "doc.md"
    document.write_text("<!-- study s --results before -->\n<!-- end -->\nthen\n<!-- study s -->\n<!-- end -->\n")
    assert call(capsys, "study", file, "--fill", document)[0] == 0
    before, after = document.read_text().split("then")
    assert (cells_of(before)["SMB"][0], cells_of(after)["SMB"][0]) == ("50.0 %", "75.0 %")


def test_penalties_and_trusted_labels_have_columns_where_there_are_any(tmp_path: Path) -> None:
    more = {"penalty_ratios": [None, 2e-4], "trusted_shares": [0.5, 0.9], "trusted_accuracies": [0.8, 0.7]}
    done = [(tiny_row("SMB", "smb"), fake(0.5)), (tiny_row("ORDisCo", "ordisco"), {**fake(0.75), **more})]
    [groups] = grouped(done).values()
    text = table_of(groups, times=False).markdown()
    assert "penalty / loss" in text
    assert cells_of(text)["ORDisCo"][-4:-1] == ["90.0 %", "70.0 %", "2.0e−04"]
    [alone] = grouped(done[:1]).values()
    assert "trusted" not in table_of(alone, times=False).markdown()


def test_each_increment_has_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = {0: {"generated_accuracies": [0.1, 0.5, 0.9]}, 1: {"generated_accuracies": [0.3, 0.5, None]}}
    ratios = {seed: {"penalty_ratios": [None, 1e-4, 4.0 ** (1 + seed)]} for seed in (0, 1)}
    ours = Group("ORDisCo", {seed: fake(0.5) | judged[seed] | ratios[seed] for seed in (0, 1)})
    smb = Group("SMB", {0: fake(0.5)})  # which nobody judges, and has no penalty
    table = each_increment([smb, ours], "samples")
    assert table.header == ("method", "1", "2", "3")
    assert table.rows == (("ORDisCo", "20.0 ± 14.1 %", "50.0 ± 0.0 %", "90.0 %"),)
    assert each_increment([smb, ours], "penalty").rows == (("ORDisCo", "—", "1.0e−04", "8.0e+00"),)
    assert each_increment([smb], "accuracy").rows == (("SMB", "0.0 %", "50.0 %"),)
    with pytest.raises(OrdiscoError, match="no row has a measure of trusted"):
        each_increment([smb, ours], "trusted")
    with pytest.raises(UsageError, match="each = 'colour' is not allowed: one of accuracy, pseudo-labels, "):
        each_increment([smb], "colour")

    file, document = write_study(tmp_path / "studies.toml"), tmp_path / "doc.md"
    seconds = {"cpu_seconds": 9.4, "points": [[2.0, 0.6], [9.4, 0.75]]}
    Results(tmp_path / "results").write(tiny_row("ORDisCo", "ordisco"), fake(0.75) | judged[0] | seconds)
    document.write_text("<!-- study s --reach 70 -->\n<!-- end -->\n")
    assert call(capsys, "study", file, "--fill", document)[0] == 0
    assert cells_of(document.read_text())["ORDisCo"][-3:-1] == ["9", "9 (1 of 1)"]
    assert "samples by judge" in document.read_text()
    document.write_text("<!-- study s --reach 70 --measures none -->\n<!-- end -->\n")
    assert call(capsys, "study", file, "--fill", document)[0] == 0
    assert "samples by judge" not in document.read_text()
    assert cells_of(document.read_text())["ORDisCo"][-3:-1] == ["9", "9 (1 of 1)"]
    document.write_text("<!-- study s --each samples -->\n<!-- end -->\n")
    assert call(capsys, "study", file, "--fill", document)[0] == 0
    assert cells_of(document.read_text())["ORDisCo"] == ["10.0 %", "50.0 %", "90.0 %"]
    code, out, _ = call(capsys, "study", file, "s", "--table", "--each", "samples")
    assert (code, cells_of(out)["ORDisCo"]) == (0, ["10.0 %", "50.0 %", "90.0 %"])
    assert call(capsys, "study", file, "s", "--table", "--each", "samples", "--over", "1-2")[0] == 2


def test_a_block_names_rows_with_commas_in_quotes() -> None:
    assert Block.read('s --only "A, b", C − d --over 2-4 --seeds 0, 2') == Block(
        "s", ("A, b", "C − d"), (0, 2), None, Span(2, 4)
    )
    with pytest.raises(UsageError, match="--measures all is not allowed: none, or left out"):
        Block.read("s --measures all")


@pytest.mark.parametrize("document", ["docs/results.md", "README.md"])
@pytest.mark.slow
def test_tables_of_studies_in_documents_are_up_to_date(document: str, capsys: pytest.CaptureFixture[str]) -> None:
    studies = ROOT / "experiments" / "studies.toml"
    assert call(capsys, "study", studies, "--fill", ROOT / document, "--check") == (0, "", "")


def test_nothing_to_draw_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_study(tmp_path, "--plot", str(tmp_path / "s.png")) == 1
    assert "'Tiny' has no results yet" in one_line(capsys.readouterr().err)
    assert not (tmp_path / "s.png").exists()
