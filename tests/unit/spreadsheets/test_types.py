"""The import types: complete, unambiguous, and of one mind with the tables they fill."""

from collections import Counter

import pytest

from activities.spreadsheets.sheet_types import SheetTypes, discover
from activities.spreadsheets.types.base import SheetType, Target
from activities.spreadsheets.types.people import PERSONS
from adapters.database.models.base import metadata
from adapters.database.models.spreadsheets import TARGETS
from tests.support.spreadsheets.rules import SHIRTS, source, validator
from workflows.shared.conversion import read_cells
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.spreadsheets.fields import CustomList, facts_of
from workflows.spreadsheets.mappings import FIELDS

TYPES = tuple(discover().values())
every_type = pytest.mark.parametrize("sheet_type", TYPES, ids=lambda each: each.name)


def test_the_three_types_are_found() -> None:
    assert set(discover()) == {"EVENT_PARTICIPANT", "MEMBERSHIP", "RESULT"}


async def test_an_unknown_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        RuleViolation, match="no import type PARTY; there are EVENT_PARTICIPANT, MEMB"
    ):
        await SheetTypes().get("PARTY")


def test_two_types_of_one_name_are_refused() -> None:
    mine = SheetType("RESULT", "Mine", None, (), (Target("t", ("id",)),), "t", lambda rows: ())
    with pytest.raises(ValueError, match="two import types are called RESULT"):
        SheetTypes(types=[discover()["RESULT"], mine])


def test_a_type_whose_declaration_contradicts_itself_is_refused() -> None:
    target = Target("t", ("id",))
    lost = FieldSpec("A", title="A", target="elsewhere.a")
    with pytest.raises(ValueError, match="T: no target takes the values of A"):
        SheetType("T", "T", None, (lost,), (target,), "t", lambda rows: ())
    with pytest.raises(ValueError, match="main target other is not one"):
        SheetType("T", "T", None, (), (target,), "other", lambda rows: ())
    twice = (FieldSpec("A", title="A", target="t.a"),) * 2
    with pytest.raises(ValueError, match="two fields have the same name"):
        SheetType("T", "T", None, twice, (target,), "t", lambda rows: ())
    with pytest.raises(ValueError, match="A: a field of kind ENTITY has a resolver, and no other"):
        FieldSpec("A", ColumnKind.ENTITY, title="A", target="t.a")


@every_type
def test_no_header_means_two_fields(sheet_type: SheetType) -> None:
    headers = Counter(
        header
        for field in sheet_type.fields
        for header in (*field.own_headers, *field.other_headers, *field.headers_beside)
    )
    assert [header for header, times in headers.items() if times > 1] == []


@every_type
def test_every_column_written_is_there(sheet_type: SheetType) -> None:
    for target in sheet_type.targets:
        columns = metadata.tables[target.table].columns.keys()
        mine = [field.column for field in sheet_type.fields if field.table == target.table]
        assert {*mine, *target.made, *target.references} <= set(columns)
        assert len(set(mine)) == len(mine)
        assert set(target.key) <= {*target.made, *target.references}


@every_type
def test_natural_keys_are_those_of_the_tables(sheet_type: SheetType) -> None:
    assert {target.table: target.key for target in sheet_type.targets}.items() <= TARGETS.items()
    assert sheet_type.natural_key == TARGETS[sheet_type.main]
    earlier: set[str] = set()
    for target in sheet_type.targets:
        assert set(target.references.values()) <= earlier
        earlier.add(target.table)


@every_type
def test_the_context_is_a_table_that_the_main_target_belongs_to(sheet_type: SheetType) -> None:
    assert sheet_type.context is not None
    owned = metadata.tables[sheet_type.main].foreign_keys
    assert sheet_type.context.table in {key.column.table.name for key in owned}


@every_type
def test_cells_refer_to_the_table_that_the_column_refers_to(sheet_type: SheetType) -> None:
    tables = {"race_categories": "event_categories"}
    for field in sheet_type.fields:
        keys = metadata.tables[field.table].columns[field.column].foreign_keys
        referred = {key.column.table.name for key in keys}
        kind = field.resolver
        assert referred == (set() if kind is None else {tables.get(kind, kind)}), field.name


@every_type
def test_examples_are_right(sheet_type: SheetType) -> None:
    for field in sheet_type.fields:
        assert field.examples, field.name
        if field.resolver is None:
            values, refused = read_cells(field, field.examples, None)
            assert not refused, (field.name, values)


@every_type
def test_headers_are_known_in_english_and_german(sheet_type: SheetType) -> None:
    for field in sheet_type.fields:
        assert len(field.own_headers | field.other_headers) >= 4, field.name


def test_a_field_for_each_custom_list() -> None:
    participants = discover()["EVENT_PARTICIPANT"]
    closed = CustomList(8, "MEAL", "Meal", open=False)
    *_, shirt, meal = participants.fields_for([SHIRTS, closed])
    assert facts_of(shirt).model_dump() == {
        "name": "CUSTOM_LIST_T_SHIRT",
        "required": False,
        "resolver": "custom_list/7",
        "creates": True,
        "title": shirt.title,
        "either": None,
    }
    assert (meal.name, meal.creates) == ("CUSTOM_LIST_MEAL", False)
    assert discover()["RESULT"].fields_for([SHIRTS]) == discover()["RESULT"].fields


def test_custom_lists_that_make_no_field_are_left_out() -> None:
    participants = discover()["EVENT_PARTICIPANT"]
    odd = [CustomList(1, key, "Odd", open=True) for key in ("size", "", "A B", "X" * 53)]
    assert participants.fields_for(odd) == participants.fields
    many = [CustomList(id, f"L{id}", f"List {id}", open=True) for id in range(1, 300)]
    assert len(participants.fields_for(many)) == FIELDS


HEADERS = ("First name", "Last name", "Email", "Date of birth")


def keys_of(*rows: tuple[str | None, ...]) -> list[str]:
    validated = validator(discover()["RESULT"], (*HEADERS, "Status"), source(rows), seen=None)
    persons = validated.validate(source([(*row, "DNF") for row in rows])).targets[0]
    assert persons.table == PERSONS.table
    return [row[persons.columns.index("person_key")] for row in persons.rows]


def test_people_are_distinguished_by_name_birthdate_and_mail() -> None:
    assert keys_of(
        ("Anna", "Schmidt", "Anna.S@Example.org", "1990-05-31"),
        ("ANNA", " Müller-Lüdenscheidt", None, "31.05.1990"),
        ("李", "王", None, None),
        ("\u2665", "\u2605", None, None),
    ) == [
        "Schmidt|Anna|1990-05-31|anna.s@example.org",
        "Müller-Lüdenscheidt|ANNA|1990-05-31|",
        "王|李||",
        "\u2605|\u2665||",
    ]
