"""Forms of the mapping pages: what they say, and what of it is new."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from activities.spreadsheets.records import ColumnView, FieldView
from workers.shared.gateway.pages.renderer import TEMPLATES, ago, number
from workers.shared.gateway.pages.site import Form, safe_redirect_path
from workers.shared.services.errors import Refused
from workers.spreadsheets import part
from workers.spreadsheets.pages.labels import steps
from workers.spreadsheets.pages.mapping import (
    Choice,
    Trail,
    cell_decisions,
    choices_of,
    column_decisions,
    column_lines,
    shown_cell,
    shown_column,
    taken_away,
    unsaved,
    value_lines,
)
from workflows.spreadsheets.mappings import (
    Alternative,
    CellDecision,
    CellMapping,
    ColumnDecision,
    DecisionRecord,
    MappingStatus,
    SpreadsheetState,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIELDS = [
    FieldView(name=name, title=title, required=required)
    for name, title, required in (("LAST_NAME", "Last name", True), ("TEAM", "Team", False))
]


def column(id: int, target: str | None = None, status: str | None = None) -> ColumnView:
    status = status or ("AUTO_MATCHED" if target else "UNMATCHED")
    return ColumnView(
        id=id,
        index=id - 1,
        header=f"Column {id}",
        target=target,
        status=MappingStatus(status),
        confidence=0.95,
        alternatives=(Alternative(name="TEAM", score=0.7),),
        samples=["a", "b"],
    )


def cell(id: int, **more: object) -> CellMapping:
    given = {"id": id, "field": "TEAM", "value": f"v{id}", "status": "UNMATCHED", **more}
    return CellMapping.model_validate(given)


def grace(subject: str) -> Trail:
    return Trail([DecisionRecord(kind="column", subject=subject, by="grace", at=datetime.now(UTC))])


def test_a_form_distinguishes_choices_from_what_it_showed() -> None:
    form = Form({"seen_column-3": "", "column-3": "TEAM", "seen_column-4": "-", "column-x": "TEAM"})
    assert choices_of(form, "column") == {3: Choice("TEAM", ""), 4: Choice("-", "-")}
    assert [choice.changed for choice in choices_of(form, "column").values()] == [True, False]


@pytest.mark.parametrize("text", ["1.5", "-1", "²", "1e3", "x"])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="not a whole number"):
        Form({"version": text}).whole("version")


def test_only_what_a_person_changed_becomes_a_decision() -> None:
    columns = [column(1, "LAST_NAME"), column(2), column(3), column(4, status="IGNORED")]
    choices = {
        1: Choice("-", "LAST_NAME"),
        2: Choice("TEAM", ""),
        3: Choice("", ""),
        4: Choice("-", "-"),
        9: Choice("TEAM", ""),
    }
    assert column_decisions(columns, choices) == [
        ColumnDecision(id=1, ignore=True),
        ColumnDecision(id=2, target="TEAM"),
    ]


def test_changes_by_others_are_not_reverted() -> None:
    assert column_decisions([column(1, "TEAM")], {1: Choice("", "")}) == []
    assert cell_decisions([cell(1, status="IGNORED")], {1: Choice("", "")}) == []


def test_each_kind_of_choice_about_a_value() -> None:
    choices = {1: Choice("-", ""), 2: Choice("+", ""), 3: Choice("43:Senior", "42:Junior")}
    assert cell_decisions([cell(1), cell(2), cell(3)], choices) == [
        CellDecision(id=1, ignore=True),
        CellDecision(id=2, create=True),
        CellDecision(id=3, target_id=43),
    ]


@given(st.text(min_size=1, max_size=40))
def test_a_made_up_choice_is_refused_or_a_proper_decision(chosen: str) -> None:
    for decide, it in ((column_decisions, column(1)), (cell_decisions, cell(1))):
        try:
            decided = decide([it], {1: Choice(chosen, "")})  # pyright: ignore
        except Refused:
            continue
        assert len(decided) <= 1


def test_a_column_that_loses_its_field_unasked_is_named() -> None:
    columns = [column(1, "TEAM"), column(2), column(3, "LAST_NAME")]
    take = ColumnDecision(id=2, target="TEAM")
    assert taken_away(columns, [take]) == ("Column 1",)
    assert taken_away(columns, [take, ColumnDecision(id=1, ignore=True)]) == ()


def test_an_unsaved_choice_stays_beside_the_choice_of_another_person() -> None:
    choices = {1: Choice("LAST_NAME", "")}
    (line,) = column_lines([column(1, "TEAM")], FIELDS, choices, grace("Column 1"))
    assert (line.shown, line.chosen, line.is_changed) == ("TEAM", "LAST_NAME", True)
    assert "by grace" in line.note
    assert "now “Team”" in line.note
    assert "“Last name”, is not saved" in line.note


def test_two_persons_with_the_same_choice_get_no_notice() -> None:
    choices = {1: Choice("TEAM", "")}
    (line,) = column_lines([column(1, "TEAM")], FIELDS, choices, grace("Column 1"))
    assert (line.note, line.is_changed) == ("", False)


def test_a_value_keeps_a_candidate_that_only_its_form_names() -> None:
    choices = {1: Choice("43:Senior", "")}
    trail = grace("TEAM: v1")
    (line,) = value_lines([cell(1, status="IGNORED")], {}, choices, trail)
    chosen = [option.text for option in line.options if option.chosen]
    assert (chosen, line.is_changed) == (["Senior"], True)
    assert "now left empty" in line.note


def test_choices_of_a_form_that_is_over_are_named() -> None:
    form = Form({"label_column-1": "Squat", "label_column-2": "Land"})
    choices = {1: Choice("LAST_NAME", ""), 2: Choice("TEAM", "TEAM")}
    assert unsaved(form, "columns", choices) == ("Squat: last name",)


def test_what_is_shown_is_what_was_decided() -> None:
    assert shown_column(column(1, "TEAM")) == "TEAM"
    assert shown_column(column(1, status="IGNORED")) == "-"
    decided = cell(1, status="MANUAL_MATCHED", target_id=43, target_name="Senior")
    assert shown_cell(decided) == "43:Senior"
    assert shown_cell(cell(1, status="MANUAL_MATCHED", create=True)) == "+"


@pytest.mark.parametrize(
    ("passed", "said"),
    [
        (timedelta(seconds=59), "less than a minute"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(hours=23, minutes=59), "23 hours"),
        (timedelta(days=90), "90 days"),
    ],
)
def test_how_long_something_waits(passed: timedelta, said: str) -> None:
    assert ago(NOW - passed, NOW) == said


def test_numbers_for_people() -> None:
    assert number(1234567) == "1,234,567"


def test_an_import_that_ended_early_is_at_no_later_step() -> None:
    assert [step.place for step in steps(SpreadsheetState.CELL_MAPPING)] == [
        "past",
        "past",
        "now",
        "next",
        "next",
    ]
    assert [step.place for step in steps(SpreadsheetState.FAILED)] == ["past", "ended"]


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example", "/\\evil", "javascript:x", "", "x\ny"]
)
def test_addresses_of_other_sites_are_not_followed(address: str) -> None:
    assert safe_redirect_path(address, "/") == "/"


def test_every_template_is_well_formed() -> None:
    environment = Environment(autoescape=True)
    templates = sorted([*TEMPLATES.glob("*.html"), *part.TEMPLATES.glob("*.html")])
    assert {"base.html", "import_body.html"} <= {each.name for each in templates}
    for each in templates:
        source = each.read_text()
        environment.parse(source)
        # The pages' policy allows neither, and escaping must not be switched off.
        for forbidden in (" style=", "<style", " onclick=", "| safe", "|safe"):
            assert forbidden not in source, f"{each.name}: {forbidden}"
