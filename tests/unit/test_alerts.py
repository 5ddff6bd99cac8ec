"""The alerts, and the page that says what to do."""

import re
from pathlib import Path

from tests.support.observe import asked, queries, rules

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"


def test_the_page_has_every_alert_with_its_severity_and_section() -> None:
    described = re.findall(r"^\| \[(\w+)\]\(([^)]+)\) \| (\w+) \|", PAGE.read_text(), re.MULTILINE)
    declared = [
        (
            each["alert"],
            each["annotations"]["runbook"].removeprefix("docs/"),
            each["labels"]["severity"],
        )
        for each in rules()
    ]
    assert described == declared and len(declared) == 9


def test_labels_that_are_shown_are_those_of_the_query() -> None:
    for query, shown in queries():
        labels = set[str]().union(*asked(query).values())
        shown_labels = set(re.findall(r"\$labels\.(\w+)|\{\{(\w+)\}\}", shown))
        assert {one or other for one, other in shown_labels} <= labels, query
