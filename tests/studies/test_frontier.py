"""The frontier by hand: at equal steps, in equal CPU-seconds, with most steps."""

from pathlib import Path
from typing import Any

import pytest

from ordisco.errors import OrdiscoError, UsageError
from ordisco.studies.documents import Block
from ordisco.studies.frontier import accuracy_within, curves_of, drawn, frontier_table
from ordisco.studies.table import Group
from tiny import call, one_line
from tiny_study import write_study

ROOT = Path(__file__).parents[2]


def fake(accuracy: float, seconds: float | None) -> dict[str, Any]:
    return {"last_accuracy": accuracy, "cpu_seconds": seconds, "kept_bytes": 1500}


def group(name: str, seconds: float | None, *accuracies: float) -> Group:
    return Group(name, {seed: fake(accuracy, seconds) for seed, accuracy in enumerate(accuracies)})


GROUPS = [
    group("ORDisCo, 300 steps", 100.0, 0.60, 0.62),
    group("ORDisCo, 150 steps", 50.0, 0.50, 0.52),
    group("SMB, 300 steps", 40.0, 0.40, 0.42),
    group("SMB, 1,200 steps", 160.0, 0.50, 0.56),
    group("quick, 300 steps", 20.0, 0.30, 0.34),
    group("JT", 50.0, 0.9, 0.9),
]


def test_a_curve_goes_on_in_log_seconds_between_budgets_and_stays_after_the_last():
    curve = [(10.0, 0.5), (40.0, 0.7), (80.0, 0.6)]
    assert accuracy_within(curve, 9.9) is None
    assert accuracy_within(curve, 20.0) == pytest.approx(0.6)
    assert accuracy_within(curve, 40.0) == pytest.approx(0.7)
    assert accuracy_within(curve, 500.0) == 0.6
    assert accuracy_within([], 1.0) is None


def test_methods_are_compared_at_equal_steps_in_equal_seconds_and_with_most_steps():
    assert {name: [point.steps for point in curve] for name, curve in curves_of(GROUPS).items()} == {
        "ORDisCo": [150, 300],
        "SMB": [300, 1200],
        "quick": [300],
    }
    table = frontier_table(GROUPS, 300, "ORDisCo, 300 steps")
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == ["ORDisCo", "SMB", "quick"]
    assert rows["ORDisCo"][:5] == ("61.0 ± 1.4 %", "100", "—", "61.0 ± 1.4 %", "—")
    assert rows["ORDisCo"][8] == "+10.0 [+10.0, +10.0]"  # not flat yet
    assert rows["SMB"][:2] == ("41.0 ± 1.4 %", "40")
    assert rows["SMB"][2] == "−20.0 [−20.0, −20.0]"
    # log(100 / 40) / log(160 / 40) = 0.661 of the way: 0.466 and 0.5126
    assert rows["SMB"][3] == "48.9 ± 3.3 %"
    assert rows["SMB"][4].startswith("−12.1 [")
    assert rows["SMB"][5:7] == ("53.0 ± 4.2 %", "1,200")
    assert rows["SMB"][7].startswith("−8.0 [")  # to ORDisCo's own most steps
    assert rows["quick"][3] == "32.0 ± 2.8 % (all steps)"  # it was given no more
    assert rows["quick"][8] == "—"


def test_what_is_no_frontier_is_told():
    with pytest.raises(OrdiscoError, match="no row is a point"):
        frontier_table([group("JT", 1.0, 0.5)], 300, "JT")
    with pytest.raises(UsageError, match="ORDisCo was made with 150, 300 steps"):
        frontier_table(GROUPS, 400, "ORDisCo")
    with pytest.raises(UsageError, match="one of ORDisCo, SMB, quick"):
        frontier_table(GROUPS, 300, "JT")
    with pytest.raises(UsageError, match="a number of steps"):
        Block.read("NAME --frontier many")


def test_a_seed_without_seconds_is_no_point_of_the_figure():
    found = drawn([group("SMB, 10 steps", None, 0.4), *GROUPS])
    assert found["SMB"][0] == pytest.approx((40.0, 0.41, 0.014142136, 300))
    assert [point[3] for point in found["SMB"]] == [300, 1200]


def test_the_command_takes_it_with_a_table_or_a_figure_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = write_study(tmp_path / "studies.toml")
    for words, told in (
        (["--frontier", "300"], "--frontier is only for --table and --plot"),
        (["--table", "--frontier", "300", "--each", "accuracy"], "leave --each, --over and --reach out"),
    ):
        code, _, error = call(capsys, "study", file, "s", *words)
        assert code == 2
        assert told in one_line(error)


def test_the_command_shows_the_committed_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ("study", ROOT / "experiments" / "studies.toml", "digits-steps-new-instance", "--frontier", "200")
    code, output, _ = call(capsys, *words, "--table", "--against", "ORDisCo, 200 steps")
    assert code == 0
    assert "| in the CPU s of ORDisCo |" in " ".join(output.split())
    assert call(capsys, *words, "--plot", tmp_path / "frontier.png")[0] == 0
    curves = ("study", *words[1:3], "--plot", tmp_path / "curves.png")
    assert call(capsys, *curves)[0] == 0
    assert (tmp_path / "frontier.png").read_bytes() != (tmp_path / "curves.png").read_bytes()


def test_the_figure_is_drawn(tmp_path: Path):
    from ordisco.report.frontier import frontier_figure

    frontier_figure(tmp_path / "frontier.png", drawn(GROUPS), "SVHN, $New Class")
    assert (tmp_path / "frontier.png").read_bytes().startswith(b"\x89PNG")
