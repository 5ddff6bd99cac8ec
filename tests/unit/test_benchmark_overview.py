"""The table of all benchmarks has every figure with a target, as the benchmarks print it."""

import pytest

from benchmarks.overview import judged
from benchmarks.report import Table, at_least, at_most


def test_figures_with_targets_are_found() -> None:
    table = Table("Rows", ("", "s"))
    table.add("csv", "3")
    table.notes += [
        f"slowest p95 {at_most(85, 100, ' ms')}",
        f"docflow takes {at_most(1.4, 1.25, ' x (a + b)')}; and more",
        f"history of a document: {at_most(7, 9, ' events')}; 3,380 bytes",
        f"the slowest reaches {at_least(37, 50, ' % of the limit')}",
        "nothing is said of this one, which took 3 s",
    ]
    assert list(judged("imports", table.markdown())) == [
        ("imports", "Rows: slowest p95", "85 ms", "at most 100 ms", "met"),
        (
            "imports",
            "Rows: docflow takes",
            "1.40 x (a + b)",
            "at most 1.25 x (a + b)",
            "**not met**",
        ),
        ("imports", "Rows: history of a document", "7.00 events", "at most 9.00 events", "met"),
        (
            *("imports", "Rows: the slowest reaches", "37 % of the limit"),
            *("at least 50 % of the limit", "**not met**"),
        ),
    ]


@pytest.mark.parametrize("text", ["", "### Rows\n\n| a | 3, target none |\n"])
def test_what_has_no_target_is_left_out(text: str) -> None:
    assert list(judged("imports", text)) == []
