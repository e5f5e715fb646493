"""What an item shows: ours beside the paper's, and nothing half-made as a result."""

import json
import re
from pathlib import Path

import pytest

from made_up import CODE, make_up
from ordisco.cli import main
from ordisco.errors import OrdiscoError
from ordisco.paper.items import chosen, items
from ordisco.paper.listing import table as list_table
from ordisco.paper.make import Making
from ordisco.paper.order import order_of
from ordisco.paper.outcome import other_code, outcome, read, shown
from ordisco.paper.scales import Plan
from ordisco.paper.words import blocks, markdown, notes, quote_line
from ordisco.report.table import TextTable
from tiny import call, one_line

READ_ONLY = [item for item in items().values() if item.kind not in ("samples", "coverage")]


def tables(of: dict) -> list[TextTable]:
    return [block for block in blocks(of) if isinstance(block, TextTable)]


@pytest.fixture
def plan() -> Plan:
    return Plan.of("digits", seeds=2)


def test_a_cell_is_the_accuracy_at_the_increment_that_stands_for_the_paper_s(tmp_path: Path, plan: Plan):
    item = items()["table-3"]
    place = make_up([item], plan, tmp_path)
    of = outcome(item, plan, place, "command")
    [svhn, cifar] = of["panels"]
    assert (svhn["name"], svhn["ours"], cifar["ours"]) == ("SVHN-1", "digits-1", "digits-1")
    smb = next(row for row in svhn["rows"] if row["row"] == "smb")
    rows = [row for row in plan.rows([item]) if row.config.method == "smb"]
    results = [place.results.read(row) for row in rows]
    assert [cell["increment"] for cell in smb["cells"]] == [5, 10]
    assert [cell["paper"] for cell in smb["cells"]] == [38.08, 73.32]
    for cell, position in zip(smb["cells"], (4, 9), strict=True):
        assert list(cell["ours"].values()) == [result["accuracies"][position] for result in results if result]
    assert of["complete"]
    assert of["seconds"] == 12.5 * 6
    assert of["code"] == [CODE]
    assert [row.command for row in plan.rows([item])] == of["commands"]


def test_the_judge_s_table_and_the_search_read_other_numbers(tmp_path: Path, plan: Plan):
    made = chosen(["table-4", "table-8"])
    place = make_up(made, plan, tmp_path)
    peak = plan.row(made[1].panels[2].entries[3].lines[0], 1)
    falling = place.results.read(peak)
    assert falling
    place.results.write(peak, {**falling, "accuracies": [0.99, *falling["accuracies"][1:]]})  # the best is not the last
    judged, search = (outcome(item, plan, place, "") for item in made)
    row = plan.rows([made[0]])[0]
    result = place.results.read(row)
    assert result
    assert judged["panels"][0]["rows"][0]["cells"][0]["ours"]["0"] == result["generated_accuracies"][1]
    assert [(quote["value"], quote["ours"]) for quote in judged["quoted"]] == [(94.38, 97.5), (87.37, 97.5)]
    assert quote_line(judged["quoted"][0]).endswith("94.38 %; ours 97.50.")
    assert search["panels"][0]["judge"] == {}
    cell = search["panels"][2]["rows"][0]["cells"][3]  # MAS, λ = 1e-6, VAT
    line = made[1].panels[2].entries[3].lines[0]
    best = place.results.read(plan.row(line, 1))
    assert dict(line.changes) == {"unlabeled_loss": "vat", "c_penalty": 1e-6}
    assert best
    assert cell["ours"]["1"] == max(best["accuracies"]) == 0.99
    assert cell["paper"] == 33.70


def test_of_a_search_the_best_strength_is_shown_once_all_are_there(tmp_path: Path, plan: Plan):
    item = items()["figure-1"]
    place = make_up([item], plan, tmp_path)
    lines = {line["name"]: line for line in outcome(item, plan, place, "")["panels"][0]["lines"]}
    entry = next(entry for entry in item.panels[0].entries if entry.name == "EWC-sl")
    finals = {}
    for line in entry.lines:
        found = [place.results.read(plan.row(line, seed)) for seed in plan.seeds]
        finals[dict(line.changes)["c_penalty"]] = sum(result["last_accuracy"] for result in found if result)
    assert lines["EWC-sl"]["chosen"] == f"λ = {max(finals, key=lambda key: finals[key]):g}"
    assert lines["EWC-sl"]["tried"] == 4
    assert lines["SMB"]["chosen"] is None
    assert lines["SMB"]["paper"] == {"5": 79.93, "7": 86.40, "8": 87.57, "10": 88.55}
    place.results.file(plan.row(entry.lines[0], 1)).unlink()
    half = outcome(item, plan, place, "")
    assert not half["complete"]
    assert {line["name"]: line["seeds"] for line in half["panels"][0]["lines"]}["EWC-sl"] == {}


def test_growth_is_told_by_what_doubling_the_stream_costs(tmp_path: Path, plan: Plan):
    item = items()["table-1"]
    of = outcome(item, plan, make_up([item], plan, tmp_path), "")
    grown = {row["row"]: (row["time_doubling"], row["storage_doubling"]) for row in of["panels"][0]["rows"]}
    assert grown["ordisco"] == (pytest.approx(2.0), 1.0)
    assert grown["offline-last"] == (pytest.approx(55 / 15), 1.0)
    assert grown["offline-all"] == (pytest.approx(55 / 15), 11 / 6)
    assert "O(B²)" in markdown(of, "pictures")


def test_order_holds_where_every_pair_stands_as_in_the_paper():
    paper = {"a": 30.0, "b": 20.0, "c": 10.0}
    whole = order_of("x", paper, {"a": 0.3, "b": 0.2, "c": 0.1})
    turned = order_of("x", paper, {"a": 0.3, "b": 0.1, "c": 0.2})
    equal = order_of("x", paper, {"a": 0.2, "b": 0.2, "c": 0.2})
    assert whole is not None
    assert turned is not None
    assert equal is not None
    assert (whole.pairs, whole.held, whole.best) == (3, 3, True)
    assert (turned.held, turned.best) == (2, True)
    assert (equal.held, equal.best) == (0, False)
    assert order_of("x", {"a": 1.0, "b": 1.0}, {"a": 0.1, "b": 0.2}).pairs == 0  # type: ignore[union-attr]
    assert order_of("x", paper, {"a": 0.1}) is None


@pytest.mark.parametrize("item", READ_ONLY, ids=lambda item: item.name)
def test_every_item_is_shown_in_words_and_kept(item, tmp_path: Path):
    plan = Plan.of("digits", seeds=1)
    make_up([item], plan, tmp_path)
    making = Making([item], plan, tmp_path)
    [of] = making.outcomes()
    assert tables(of)
    assert read(tmp_path / "digits" / "items" / f"{item.name}.json") == json.loads(json.dumps(of))
    assert of["command"] == f"ordisco paper {item.name} --scale digits"
    assert f"`{of['command']}`, 1 seed" in markdown(of, "pictures")


def test_a_half_made_item_is_told_and_not_kept(tmp_path: Path, plan: Plan):
    item = items()["table-3"]
    place = make_up([item], plan, tmp_path, leave_out=2)
    making = Making([item], plan, tmp_path)
    [of] = making.outcomes()
    assert (of["complete"], of["done"], of["runs"]) == (False, 4, 6)
    assert notes(of)[0] == "Half-made, not a result: 4 of 6 runs are done."
    assert not (place.items / "table-3.json").exists()
    (tmp_path / "x.json").write_text(json.dumps(of))
    with pytest.raises(OrdiscoError, match="half-made"):
        read(tmp_path / "x.json")


def test_results_of_another_code_are_told(tmp_path: Path, plan: Plan):
    item = items()["table-9"]
    of = outcome(item, plan, make_up([item], plan, tmp_path), "")
    assert other_code(of, CODE) == []
    assert other_code(of, {**CODE, "commit": "d" * 40}) == [CODE["commit"]]
    assert other_code(of, {"version": "0.3.0", "commit": None}) == [CODE["commit"]]
    twice = {**of, "code": [CODE, {**CODE, "dirty": True}]}
    assert other_code(twice, {**CODE, "commit": "d" * 40}) == [CODE["commit"]]
    assert any(note.startswith("Made by another version") for note in notes(of, {**CODE, "commit": "d" * 40}))
    assert any("74.45" in note for note in notes(of, CODE))


def test_what_the_text_quotes_stands_beside_ours(tmp_path: Path, plan: Plan):
    item = items()["figure-5"]
    of = outcome(item, plan, make_up([item], plan, tmp_path), "")
    lines = {line["name"]: line["seeds"].values() for line in of["panels"][0]["lines"]}
    gain = sum(values[-1] for values in lines["ORDisCo"]) - sum(values[-1] for values in lines["SMB"])
    assert of["quoted"][0]["ours"] == pytest.approx(100 * gain / 2)
    assert of["quoted"][0]["value"] == 12.20


def test_the_order_is_told_of_curves_where_the_tables_print_them(tmp_path: Path, plan: Plan):
    item = items()["figure-5"]
    of = outcome(item, plan, make_up([item], plan, tmp_path), "")
    [first, last] = of["panels"][0]["order"]
    assert (first["column"], last["column"], last["pairs"]) == ("increment 5", "increment 10", 6)
    paper = {"SMB": 73.32, "SMB+UMB": 59.06, "SMB+UMB+UC": 65.23, "ORDisCo": 85.52}
    ends = {line["name"]: sum(v[-1] for v in line["seeds"].values()) for line in of["panels"][0]["lines"]}
    assert last["held"] == sum(paper[a] > paper[b] and ends[a] > ends[b] for a in paper for b in paper)
    assert any(isinstance(block, str) and "order holds" in block for block in blocks(of))


def test_a_document_is_filled_from_kept_items_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    item = items()["table-3"]
    plan = Plan.of("digits", seeds=2)
    make_up([item], plan, tmp_path)
    Making([item], plan, tmp_path, kept=tmp_path / "kept").outcomes()
    page = tmp_path / "page.md"
    page.write_text("# X\n\n<!-- paper table-3 digits -->\n\nstale text\n\n<!-- end -->\n\nrest\n")
    words = ["paper", "--fill", str(page), "--items", str(tmp_path / "kept")]
    assert main([*words, "--check"]) == 1
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    text = page.read_text()
    assert "stale text" not in text
    assert text.endswith("rest\n")
    assert "| SMB " in text
    page.write_text("<!-- paper table-9 digits -->\n\n<!-- end -->\n")
    code, _, error = call(capsys, *words)
    assert code == 1
    assert "table-9.json is not there" in one_line(error)


def test_the_list_counts_what_is_done_and_costs_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    make_up([items()["table-3"]], Plan.of("digits"), tmp_path)
    code, output, _ = call(capsys, "paper", "--json", "--out", tmp_path)
    entries = {entry["item"]: entry["scales"] for entry in json.loads(output)}
    assert code == 0
    assert list(entries) == [*items(), "all"]
    assert (entries["table-3"]["digits"]["done"], entries["table-3"]["digits"]["runs"]) == (9, 9)
    assert entries["table-3"]["digits"]["seconds_left"] == 0 < entries["table-3"]["digits"]["seconds"]
    assert entries["figure-5"]["digits"]["done"] == 6  # SMB and ORDisCo are shared
    assert entries["table-3"]["paper"]["counted"]
    assert not entries["table-3"]["small"]["counted"]
    lines = {row[0].split(":")[0]: row[1] for row in list_table(json.loads(output)).rows}
    assert lines["table-3"] == "9/9, done"
    assert re.fullmatch(r"6/12, .* of .* left", lines["figure-5"])
    assert re.fullmatch(r"0/12, [\d smin]+", lines["table-5"])


def test_show_makes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, output, _ = call(capsys, "paper", "table-3", "--show", "--out", tmp_path)
    assert code == 0
    assert "Half-made, not a result: 0 of 9 runs are done." in output
    assert not (tmp_path / "digits" / "runs").exists()
    code, output, _ = call(capsys, "paper", "table-3", "figure-2", "--show", "--json", "--out", tmp_path)
    assert [of["complete"] for of in json.loads(output)] == [False, False]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["paper", "tabel-3"], "did you mean table-3"),
        (["paper", "table-3", "--scale", "big"], "invalid choice"),
        (["paper", "table-3", "--seeds", "0"], "seeds = 0 is not allowed"),
        (["paper", "--check"], "only for --fill"),
        (["paper", "--fill", "x.md"], "needs --items DIR"),
    ],
)
def test_bad_input_is_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]):
    code, _, error = call(capsys, *words)
    assert code == 2
    assert told in one_line(error)


def test_missing_data_are_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("ORDISCO_DATA", str(tmp_path / "empty"))
    code, _, error = call(capsys, "paper", "table-3", "--scale", "small", "--out", tmp_path / "out")
    assert code == 1
    line = one_line(error)
    assert "svhn is not there: put http" in line
    assert str(tmp_path / "empty" / "train_32x32.mat") in line
    assert not (tmp_path / "out").exists()


def test_the_results_page_agrees_with_the_items_that_are_kept():
    root = Path(__file__).parents[2]
    page, kept = root / "docs" / "results.md", root / "experiments" / "paper"
    named = re.findall(r"^<!-- *paper +(\S+) +(\S+) *-->$", page.read_text(encoding="utf-8"), re.MULTILINE)
    there = {(file.stem, file.parent.name) for file in kept.glob("*/*.json")}
    assert set(named) == there
    if named:
        assert main(["paper", "--fill", str(page), "--items", str(kept), "--check"]) == 0
    pictures = {file.parent / "pictures" / name for file in kept.glob("*/*.json") for name in shown(read(file))}
    assert pictures == set(kept.glob("*/pictures/*"))
