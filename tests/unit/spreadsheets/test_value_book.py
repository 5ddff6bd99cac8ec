"""The meaning of values: decided, resolved, remembered or open."""

from collections.abc import Sequence
from datetime import date

import pytest

from activities.spreadsheets import value_mapping
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.sheet_types import discover
from activities.spreadsheets.value_mapping import (
    IGNORED,
    LEFT_EMPTY,
    OPEN,
    TO_CREATE,
    Resolution,
    ValueBook,
    value_text,
)
from tests.support.spreadsheets.rules import JUNIOR, MASTERS, SENIOR, SHIRTS, surroundings
from workflows.shared.cells import Cell
from workflows.spreadsheets.fields import Entity, FoundValue, RememberedValue
from workflows.spreadsheets.mappings import CellMapping, MappingStatus

FIELDS = discover()["EVENT_PARTICIPANT"].fields_for([SHIRTS])
CATEGORY = "EVENT_CATEGORY_NAME"
SHIRT = "CUSTOM_LIST_T_SHIRT"


def decided(value: str, status: MappingStatus, **more: int | bool) -> CellMapping:
    return CellMapping.model_validate(
        {"id": 1, "field": CATEGORY, "value": value, "status": status, **more}
    )


def new_book(remembered: dict[str, dict[str, RememberedValue]] | None = None) -> ValueBook:
    return ValueBook(FIELDS, surroundings(remembered))


def test_what_is_decided_stands() -> None:
    book = new_book()
    book.load(
        [
            decided("Junior", MappingStatus.MANUAL_MATCHED, target_id=SENIOR),
            decided("Senior", MappingStatus.IGNORED),
            decided("Kids", MappingStatus.MANUAL_MATCHED, create=True),
            decided("Teens", MappingStatus.MANUAL_MATCHED, create=True, target_id=77),
            decided("Masters", MappingStatus.UNMATCHED),
            decided("Old", MappingStatus.AUTO_MATCHED, target_id=MASTERS),
            CellMapping(id=2, field="GONE", value="x", status=MappingStatus.UNMATCHED),
        ]
    )
    values = ["Junior", "Senior", "Kids", "Teens", "Masters", "Old", None, "  "]
    assert book.meanings(CATEGORY, values) == [
        *(SENIOR, IGNORED, TO_CREATE, 77, OPEN, MASTERS, None, None),
    ]
    assert book.take_found() == []


def test_what_is_found_is_reported_with_its_rows_once() -> None:
    book = new_book()
    cells: list[Cell] = ["junior", "Kidz", "junior ", "Kidz", None, "Junior (U18)"]
    assert book.meanings(CATEGORY, cells) == [JUNIOR, OPEN, JUNIOR, OPEN, None, JUNIOR]
    junior, kids, full = book.take_found()
    assert junior == FoundValue(CATEGORY, "junior", 2, JUNIOR, "Junior (U18)", 0.95)
    assert (full.value, full.rows, full.confidence) == ("Junior (U18)", 1, 1.0)
    assert (kids.value, kids.rows, kids.target_id, kids.confidence) == ("Kidz", 2, None, 0)
    assert book.take_found() == []
    book.meaning(CATEGORY, "Kidz")
    assert [(each.value, each.rows) for each in book.take_found()] == [("Kidz", 1)]


def test_rows_that_were_counted_before_are_not_reported() -> None:
    book = new_book()
    assert book.meanings(CATEGORY, ["Kidz", "U18"], counted=True) == [OPEN, JUNIOR]
    assert book.take_found() == []


def test_alternatives_are_reported() -> None:
    book = new_book()
    book.meaning(CATEGORY, "Junoir")
    (found,) = book.take_found()
    assert found.alternatives[0][:2] == (JUNIOR, "Junior (U18)")
    assert len(found.alternatives) <= 3


def test_earlier_decisions_rank_after_names_and_spellings() -> None:
    chosen = {"kidz": JUNIOR, "senior": MASTERS, "teens": 999}
    book = new_book({CATEGORY: {text: RememberedValue(id) for text, id in chosen.items()}})
    assert [book.meaning(CATEGORY, text) for text in ("KIDZ", "Senior", "teens")] == [
        *(JUNIOR, SENIOR, OPEN),
    ]
    kids, senior, teens = book.take_found()
    assert (kids.confidence, kids.target_name) == (0.9, "Junior (U18)")
    assert (senior.confidence, teens.target_id) == (0.95, None)


def test_a_category_of_another_event_is_found_by_its_name() -> None:
    book = new_book({CATEGORY: {"kidz": RememberedValue(999, "Junior (U18)")}})
    assert book.meaning(CATEGORY, "Kidz") == JUNIOR
    (found,) = book.take_found()
    assert (found.target_id, found.confidence) == (JUNIOR, 0.9)


def test_a_value_that_was_left_empty_before_is_left_empty_again() -> None:
    book = new_book({CATEGORY: {"guest": LEFT_EMPTY, "senior": LEFT_EMPTY}})
    assert [book.meaning(CATEGORY, text) for text in ("Guest", "Senior")] == [IGNORED, IGNORED]
    assert [(each.ignored, each.confidence) for each in book.take_found()] == [(True, 0.9)] * 2


@pytest.mark.parametrize("text", ["n/a", "-", "?", "\u2013", "k.A.", "N.A.", "unbekannt", "\u2026"])
def test_values_that_say_nothing_count_as_empty_and_are_named(text: str) -> None:
    book = new_book()
    assert book.meaning(CATEGORY, text) is IGNORED
    (found,) = book.take_found()
    assert (found.value, found.ignored, found.confidence) == (text, True, 1.0)


def test_a_value_that_a_person_gave_a_meaning_says_something() -> None:
    book = new_book({CATEGORY: {"?": RememberedValue(JUNIOR)}})
    assert book.meaning(CATEGORY, "?") == JUNIOR


def test_fields_do_not_mix() -> None:
    book = new_book({SHIRT: {"kidz": RememberedValue(71)}})
    assert book.meaning(CATEGORY, "Kidz") is OPEN
    assert book.meaning(SHIRT, "Kidz") == 71


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("  Junior\n (U18) ", "Junior (U18)"),
        (40, "40"),
        (40.0, "40"),
        (True, "TRUE"),
        (date(2026, 6, 1), "2026-06-01"),
        ("a\u0000b", "a\ufffdb"),
        ("x" * 500, "x" * 199 + "\u2026"),
        ("=1+1", "=1+1"),
    ],
)
def test_values_as_people_see_them(cell: Cell, text: str) -> None:
    assert value_text(cell) == text


def test_cells_of_any_kind_refer() -> None:
    entities = {"event_categories": [Entity(1, "1"), Entity(2, "TRUE"), Entity(3, "40")]}
    book = ValueBook(FIELDS, surroundings(entities=entities))
    assert book.meanings(CATEGORY, [1, True, 40.0, "40", 1.0, False]) == [1, 2, 3, 3, 1, OPEN]


def test_values_beyond_memory_are_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_mapping, "OPEN_KEPT", 2)
    book = new_book()
    book.load([decided(f"v{i}", MappingStatus.UNMATCHED) for i in range(4)])
    book.load([decided("v9", MappingStatus.IGNORED)])
    values = ["v0", "v3", "v9", "n1", "n2"]
    for _ in range(2):
        assert book.meanings(CATEGORY, values) == [OPEN, OPEN, IGNORED, OPEN, OPEN]
        assert [each.value for each in book.take_found()] == ["v3", "n1", "n2"]


def test_a_resolver_of_ones_own() -> None:
    class Parity:
        def resolve(self, value: str, context: ImportContext) -> Resolution:
            even = context.entities["event_categories"][int(value) % 2]
            return Resolution(even, 1.0)

        def candidates(self, context: ImportContext, query: str) -> Sequence[Entity]:
            return context.entities["event_categories"][:2]

    book = ValueBook(FIELDS, surroundings(), {"event_categories": Parity()})
    assert book.meanings(CATEGORY, ["7", "8"]) == [SENIOR, JUNIOR]


def test_rows_of_values_that_an_earlier_attempt_found_count_on() -> None:
    book = ValueBook(FIELDS, surroundings(), counting=True)
    book.load([decided("junior", MappingStatus.UNMATCHED), decided("x", MappingStatus.IGNORED)])
    assert book.meanings(CATEGORY, ["junior", "x", "junior"]) == [OPEN, IGNORED, OPEN]
    assert {found.value: found.rows for found in book.take_found()} == {"junior": 2, "x": 1}
    assert book.take_found() == []
