"""What goes in, what waits, and what does not go in and why."""

from collections.abc import Sequence
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.validation import NOTHING_MAPPED, ValidatedRows
from tests.support.spreadsheets.rules import JUNIOR, SENIOR, source, validator
from workflows.shared.cells import Cell
from workflows.spreadsheets.fields import ParkedRow
from workflows.spreadsheets.mappings import CellMapping, MappingStatus

TYPES = SheetTypes()
PARTICIPANT, MEMBERSHIP, RESULT = map(TYPES.get, ("EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT"))
HEADERS = ("Vorname", "Nachname", "E-Mail", "Geb.Datum", "Land", "Category", "T-Shirt", "Foo")
ANNA = ["Anna", "Schmidt", "anna@example.org", "31.05.1990", "GER", "Junior", "XL", "?"]


def validate(
    rows: Sequence[Sequence[Cell]],
    headers: Sequence[str] = HEADERS,
    sheet_type: Any = PARTICIPANT,
    decided: Sequence[CellMapping] = (),
) -> ValidatedRows:
    with closing(SeenKeys(Path())) as seen:
        return validator(sheet_type, headers, source(rows), seen=seen, decided=decided).validate(
            source(rows)
        )


def written(validated: ValidatedRows, table: str) -> list[dict[str, Any]]:
    (target,) = [each for each in validated.targets if each.table == table]
    return [dict(zip(target.columns, row, strict=True)) for row in target.rows]


def reasons(validated: ValidatedRows) -> dict[int, list[tuple[str | None, str | None, str]]]:
    return {
        line: [(each.column, each.value, each.reason) for each in problems]
        for line, problems in validated.errors
    }


def decision(field: str, value: str, status: MappingStatus, **more: Any) -> CellMapping:
    return CellMapping(id=1, field=field, value=value, status=status, **more)


def test_a_row_becomes_a_person_a_participant_and_choices() -> None:
    validated = validate([ANNA])
    assert (validated.lines, validated.main, validated.errors) == ([2], "event_participants", [])
    assert written(validated, "persons") == [
        {
            "organisation_id": 1,
            "person_key": "Schmidt|Anna|1990-05-31|anna@example.org",
            "name_key": "schmidt|a",
            "mail_key": "anna@example.org|anna",
            "first_name": "Anna",
            "last_name": "Schmidt",
            "email": "anna@example.org",
            "birthdate": date(1990, 5, 31),
            "country_id": 276,
        }
    ]
    participants = validated.targets[1]
    assert (participants.columns, participants.rows, list(participants.origin)) == (
        ("event_id", "category_id"),
        [(5, JUNIOR)],
        [0],
    )
    assert participants.references == {"person_id": "persons"}
    choices = validated.targets[2]
    assert (choices.table, choices.columns, choices.rows, choices.origin) == (
        *("custom_list_values", ("custom_list_id", "custom_list_item_id"), [(7, 73)], [0]),
    )
    assert choices.references == {"participant_id": "event_participants"}
    assert {each.value for each in validated.found} == {"GER", "Junior", "XL"}


def test_blank_cells_are_absent_and_short_rows_too() -> None:
    validated = validate([["Anna", "Schmidt", " "], ["Bert", "Maier", "b@example.org", None, "CH"]])
    anna, bert = written(validated, "persons")
    assert (anna["email"], anna["country_id"], bert["country_id"]) == (None, None, 756)
    assert [each.rows for each in validated.targets if each.table == "custom_list_values"] == [[]]


def test_every_fault_of_a_row_is_named() -> None:
    validated = validate(
        [["", "Schmidt", "anna", "31.02.1990", "GER"], ANNA, [*ANNA[:2], None, "2040-01-01"]]
    )
    assert validated.lines == [3]
    assert reasons(validated) == {
        2: [
            ("E-Mail", "anna", "is not a mail address; write one like name@example.org"),
            ("Geb.Datum", "31.02.1990", "is not a date; write it as 2025-03-04"),
        ],
        4: [("Geb.Datum", "2040-01-01", "is in the future")],
    }


def test_problems_hold_no_more_than_they_may() -> None:
    validated = validate([["x" * 9000, "Schmidt"], ["a\u0000b", "Schmidt"]])
    (long,), (forbidden,) = (problems for _, problems in validated.errors)
    assert long.value is not None and len(long.value) == 200
    assert long.reason == "has 9000 characters, at most 255 are allowed"
    assert (forbidden.value, "control character" in forbidden.reason) == ("a\ufffdb", True)


def test_formulas_are_text() -> None:
    (anna,) = written(validate([["=A1+1", "@SUM(A1)", None]]), "persons")
    assert (anna["first_name"], anna["last_name"]) == ("=A1+1", "@SUM(A1)")


def test_the_second_row_of_a_person_is_a_duplicate() -> None:
    again = ["Anna", " Schmidt ", "ANNA@example.org", date(1990, 5, 31)]
    bert = ["Bert", "Maier", None, "1980-01-01"]
    validated = validate([ANNA, again, bert, bert, again])
    assert validated.lines == [2, 4]
    assert reasons(validated) == {
        3: [(None, None, "duplicate of row 2")],
        5: [(None, None, "duplicate of row 4")],
        6: [(None, None, "duplicate of row 2")],
    }


def test_brothers_and_sisters_with_one_mail_address_are_two_people() -> None:
    lea = ["Lea", *ANNA[1:]]
    validated = validate([ANNA, lea])
    assert (validated.lines, validated.errors) == ([2, 3], [])
    keys = [each["person_key"] for each in written(validated, "persons")]
    assert keys == [f"Schmidt|{first}|1990-05-31|anna@example.org" for first in ("Anna", "Lea")]


def test_two_rows_of_one_name_wait_for_an_answer() -> None:
    validated = validate([["Bert", "Maier"], ["Bert", "Maier"], ["bert", "MAIER", "b@b.de"]])
    assert validated.lines == [2]
    assert [each.line for each in validated.parked] == [3, 4]
    first, second = (each for each in validated.found if each.field == "PERSON")
    assert (first.value, first.question) == ("Bert Maier (2)", "NAME_ALONE")
    assert (second.value, second.question) == ("bert MAIER, b@b.de", "SPELLING")
    assert [name for _, name, _ in first.alternatives] == ["row 2: Bert Maier"]


def test_a_wrong_row_does_not_keep_the_right_one_out() -> None:
    validated = validate([[*ANNA[:2], "anna", *ANNA[3:]], ANNA])
    assert (validated.lines, list(reasons(validated))) == ([3], [2])


def test_rows_with_open_values_wait_and_the_others_are_loaded() -> None:
    kids = [*ANNA[:5], "Kidz"]
    bert = ["Bert", "Maier", None, None, None, "Senior"]
    validated = validate([kids, ANNA, bert, ["", "", *kids[2:]]])
    key = "Schmidt|Anna|1990-05-31|anna@example.org"
    assert validated.parked == [ParkedRow(2, 1020, person_key=key)]
    assert validated.lines == [4]
    assert list(reasons(validated)) == [3, 5]
    assert reasons(validated)[3] == [(None, None, "duplicate of row 2")]
    assert [(each.value, each.rows) for each in validated.found if each.target_id is None] == [
        ("Kidz", 2)
    ]


def test_parked_rows_are_loaded_once_their_values_are_known() -> None:
    kids = [*ANNA[:5], "Kidz"]
    answered = [decision("EVENT_CATEGORY_NAME", "Kidz", MappingStatus.MANUAL_MATCHED, target_id=42)]
    rows = source([kids])
    validated = validator(PARTICIPANT, HEADERS, rows, seen=None, decided=answered).validate(rows)
    assert (validated.lines, written(validated, "event_participants")[0]["category_id"]) == (
        [2],
        42,
    )


def test_ignored_values_count_as_blank_and_new_ones_as_known() -> None:
    kids = [*ANNA[:5], "Kidz", "Cape"]
    validated = validate(
        [kids],
        decided=[
            decision("EVENT_CATEGORY_NAME", "Kidz", MappingStatus.IGNORED),
            decision("CUSTOM_LIST_T_SHIRT", "Cape", MappingStatus.MANUAL_MATCHED, create=True),
        ],
    )
    assert (validated.lines, validated.parked) == ([2], [])
    assert written(validated, "event_participants") == [{"event_id": 5, "category_id": None}]
    assert written(validated, "custom_list_values") == []


MEMBER_HEADERS = ("Vorname", "Nachname", "Mitgliedsart", "Eintritt", "Austritt", "Beitrag")


def test_required_values_cannot_be_ignored() -> None:
    rows = [["A", "B", "Adult"], ["C", "D", "Guest"], ["E", "F", None], ["G", "H", "New"]]
    ignored = decision("MEMBERSHIP_TYPE_ID", "Guest", MappingStatus.IGNORED)
    to_create = decision("MEMBERSHIP_TYPE_ID", "New", MappingStatus.MANUAL_MATCHED, create=True)
    validated = validate(rows, MEMBER_HEADERS, MEMBERSHIP, [ignored, to_create])
    assert validated.lines == [2, 5]
    reason = "is required, but its value is ignored; choose one or correct the cell"
    assert reasons(validated) == {
        3: [("Mitgliedsart", "Guest", reason)],
        4: [("Mitgliedsart", None, "is missing")],
    }


def test_memberships_end_after_they_begin() -> None:
    validated = validate(
        [
            ["A", "B", "Adult", "01.02.2025", "31.12.2025", "1.200,50 "],
            ["C", "D", "Adult", "01.02.2025", "31.01.2025", "-1"],
            ["E", "F", "Adult", None, "31.01.2025"],
        ],
        MEMBER_HEADERS,
        MEMBERSHIP,
    )
    assert validated.lines == [2, 4]
    assert written(validated, "memberships")[0] == {
        "membership_period_id": 5,
        "membership_type_id": 1,
        "joined_on": date(2025, 2, 1),
        "left_on": date(2025, 12, 31),
        "fee": Decimal("1200.50"),
    }
    assert reasons(validated)[3] == [
        ("Beitrag", "-1", "is negative"),
        ("Austritt", "31.01.2025", "is before Joined on 2025-02-01"),
    ]


RESULT_HEADERS = ("First name", "Last name", "Time", "Status", "Place", "AK")


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [
        (["1:23:45.678", "finished", 1, "U18"], (5_025_678, "finished", 1, JUNIOR)),
        (["1:23:45", None, "2", None], (5_025_000, None, 2, None)),
        ([5025.5, "ok", None, "senior"], (5_025_500, "finished", None, SENIOR)),
        ([None, "did not finish", None, None], (None, "DNF", None, None)),
        (["", "dns", None, None], (None, "DNS", None, None)),
    ],
)
def test_results(cells: list[Cell], outcome: tuple[Any, ...]) -> None:
    validated = validate([["A", "B", *cells]], RESULT_HEADERS, RESULT)
    (result,) = written(validated, "race_results")
    assert tuple(result[each] for each in ("finish_time_ms", "status", "rank", "category_id")) == (
        outcome
    )
    assert result["race_id"] == 5


def test_times_of_a_column_are_read_in_one_notation() -> None:
    times = ("3:45:10", "3:45", "59:59", "1:02:03", "4:30.5")
    rows = [[f"A{n}", "B", time] for n, time in enumerate(times)]
    validated = validate(rows, RESULT_HEADERS, RESULT)
    ((column, value, reason),) = reasons(validated)[3]
    assert (column, value) == ("Time", "3:45")
    assert reason.startswith("can be read in two ways")
    read = [each["finish_time_ms"] for each in written(validated, "race_results")]
    assert read == [13_510_000, 3_599_000, 3_723_000, 270_500]
    alone = validate([["A", "B", "3:45"]], RESULT_HEADERS, RESULT)
    assert written(alone, "race_results")[0]["finish_time_ms"] == 225_000


def test_a_result_holds_a_time_a_rank_or_a_status() -> None:
    reason = "is missing, and there is no rank and no status either"
    validated = validate([["A", "B", None, None, None]], RESULT_HEADERS, RESULT)
    assert reasons(validated)[2] == [("Time", None, reason)]


def test_a_cell_has_at_most_one_problem() -> None:
    validated = validate([["A", "B", "soon"]], RESULT_HEADERS, RESULT)
    assert reasons(validated)[2] == [("Time", "soon", "is not a time; write it as 01:23:45")]


def test_rows_without_anything_in_mapped_columns_are_skipped() -> None:
    validated = validate([[None] * 7 + ["only here"], ["", " "], ANNA])
    assert validated.skipped == [(2, NOTHING_MAPPED), (3, NOTHING_MAPPED)]
    assert (validated.lines, validated.errors, validated.parked) == ([4], [], [])


def test_ignored_columns_are_not_read() -> None:
    validated = validate([["Anna", "Schmidt", "x"]], ("Vorname", "Nachname", "Unknown"))
    assert validated.targets[0].columns == (
        *("organisation_id", "person_key", "name_key", "mail_key", "first_name", "last_name"),
    )


def test_the_head_settles_dates_for_the_whole_file() -> None:
    rows = source([["A", "B", None, "25/12/1990"], ["C", "D", None, "03/04/1991"]])
    with closing(SeenKeys(Path())) as seen:
        made = validator(PARTICIPANT, HEADERS, rows, seen=seen)
        made.validate(rows[:1])
        assert written(made.validate(rows[1:]), "persons")[0]["birthdate"] == date(1991, 4, 3)


def test_no_rows_at_all() -> None:
    validated = validate([])
    assert (validated.lines, validated.errors, validated.found) == ([], [], [])
    assert all(not target.rows for target in validated.targets)
