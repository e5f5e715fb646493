"""The paper's numbers agree with one another, but where it is said that they do not."""

from itertools import combinations
from typing import Any

import pytest

from ordisco.paper.items import items
from ordisco.paper.numbers import Printed, content, contradictions, printed, quotes
from ordisco.settings.methods import METHODS

ABLATION = {"table-3": ("SVHN-1", "CIFAR10-5"), "table-9": ("SVHN-3", "CIFAR10-13")}
# The one cell that two tables print differently.
UNEQUAL = ("CIFAR10-13", "15 Batch", "ordisco")


def panel(table: str, name: str) -> Printed:
    return printed()[table][name]


def number(table: str, name: str, row: str, column: str) -> float:
    value = panel(table, name).cell(row, column)
    assert isinstance(value, float)
    return value


def test_all_ten_tables_are_there_and_every_row_is_as_long_as_the_header():
    assert list(printed()) == [f"table-{number}" for number in range(1, 11)]
    for table in printed().values():
        for block in table.values():
            assert all(len(row) == len(block.columns) for row in block.rows.values())
            for row in block.rows.values():
                assert all(isinstance(value, str) or 0 < value < 100 for value in row)


def test_the_count_of_numbers_is_the_paper_s():
    count = {name: sum(len(b.columns) * len(b.rows) for b in table.values()) for name, table in printed().items()}
    assert count == {
        "table-1": 9,
        "table-2": 45,
        "table-3": 12,
        "table-4": 12,
        "table-5": 60,
        "table-6": 32,
        "table-7": 8,
        "table-8": 48,
        "table-9": 12,
        "table-10": 48,
    }


@pytest.mark.parametrize("quote", [quote for quote in quotes() if quote.table], ids=lambda quote: quote.what)
def test_a_difference_that_the_text_quotes_is_that_of_the_table(quote: Any):
    high, low = (number(quote.table, quote.panel, row, quote.column) for row in (quote.of, quote.less))
    assert high - low == pytest.approx(quote.value, abs=0.005)


def test_the_same_cell_in_two_tables_is_the_same_but_for_one():
    different = []
    for table, names in ABLATION.items():
        for name in names:
            for row in ("smb", "ordisco"):
                for column in ("15 Batch", "30 Batch"):
                    if number(table, name, row, column) != number("table-10", name, row, column):
                        different.append((name, column, row))
    assert different == [UNEQUAL]
    assert number("table-9", "CIFAR10-13", "ordisco", "15 Batch") == 74.45
    assert number("table-10", "CIFAR10-13", "ordisco", "15 Batch") == 71.35
    [told] = [line for line in contradictions("table-9") if "71.35" in line]
    assert "74.45" in told
    assert told in contradictions("table-10")


def test_shares_of_500_and_1000_test_images_are_whole_numbers_of_images():
    for name, block in printed()["table-2"].items():
        images = 1000 if "20 classes" in name else 500
        for row in block.rows.values():
            for value in row:
                assert isinstance(value, float)
                assert value * images / 100 == pytest.approx(round(value * images / 100))


def test_where_the_text_is_said_to_be_wrong_the_tables_say_so():
    assert number("table-3", "SVHN-1", "ordisco-reg", "15 Batch") < number("table-3", "SVHN-1", "smb", "15 Batch")
    assert number("table-9", "CIFAR10-13", "ordisco-reg", "30 Batch") > number(
        "table-9", "CIFAR10-13", "ordisco", "30 Batch"
    )
    assert number("table-4", "SVHN-1", "ordisco", "5 Batch") < number("table-4", "SVHN-1", "cgan+smb", "5 Batch")
    below = [
        number("table-10", name, "smb+umb+uc", column) < number("table-10", name, "smb+umb", column)
        for name in printed()["table-10"]
        for column in ("15 Batch", "30 Batch")
    ]
    assert sum(below) == 4
    for name in ("SVHN-1", "CIFAR10-5"):
        for row in ("smb+umb", "smb+umb+uc", "smb+4umb", "smb+4umb+uc"):
            for column in ("15 Batch", "30 Batch"):
                assert number("table-10", name, row, column) < number("table-10", name, "smb", column)


def test_where_table_5_is_said_not_to_have_ordisco_best_it_is_not():
    blocks = printed()["table-5"]
    for block in blocks.values():
        assert max(row[0] for row in block.rows.values()) > block.rows["ordisco"][0]
    [told] = contradictions("table-5")
    for row in ("ordisco", "smb+umb+uc"):
        assert f"{number('table-5', 'CIFAR10-5', row, 'Task 2'):.2f}" in told


def test_the_two_classifiers_of_the_paper_are_told_apart():
    [told] = [line for line in contradictions("table-9") if "WRN-28-2" in line]
    six = [panel("table-6", "MT").cell("smb", column) for column in ("Batch 15", "Batch 30")]
    nine = [panel("table-9", "SVHN-3").cell("smb", column) for column in ("15 Batch", "30 Batch")]
    assert [f"{value:.2f}" in told for value in (*six, *nine)] == [True] * 4


def test_the_bold_cells_of_the_ablations_are_the_best():
    """As the paper prints them, read from it anew."""
    bold = {("table-3", "SVHN-1"): (55.07, 85.52), ("table-9", "CIFAR10-13"): (74.45, 78.59)}
    for (table, name), best in bold.items():
        columns = zip(*panel(table, name).rows.values(), strict=True)
        assert tuple(max(column) for column in columns) == best


def test_every_contradiction_and_quote_names_items_that_exist():
    for row in content()["contradictions"]:
        assert set(row["items"]) <= set(items())
    assert {quote.item for quote in quotes()} <= set(items())


def test_no_two_rows_of_a_block_are_the_same():
    for table in ("table-2", "table-5", "table-8", "table-10"):
        for block in printed()[table].values():
            assert all(a != b for a, b in combinations(block.rows.values(), 2))


def test_rows_named_like_methods_are_methods():
    for table in ("table-2", "table-3", "table-4", "table-5", "table-6", "table-9", "table-10"):
        for block in printed()[table].values():
            assert set(block.rows) <= set(METHODS)
