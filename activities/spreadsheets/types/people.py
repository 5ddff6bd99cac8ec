"""The hook of types whose rows are about people: who a row is about, and what its names mean."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.types.base import (
    Cells,
    Fault,
    SheetRows,
    SheetType,
    Target,
    context_ids,
    organisation,
)
from activities.spreadsheets.types.declared import CONTEXTS, faults
from adapters.types.files import people_types
from workflows.shared.cells import is_blank, is_filled
from workflows.shared.declared_fields import field_spec
from workflows.shared.declared_types import PeopleType
from workflows.shared.fields import ColumnKind, FieldSpec, normalise
from workflows.spreadsheets.names import given_and_family, stored_name
from workflows.spreadsheets.people import IDENTITY, PERSON, PERSONS_TABLE, Identity, identity_of

FIRST_NAME: Final = "FIRST_NAME"
LAST_NAME: Final = "LAST_NAME"
EMAIL: Final = "EMAIL"
BIRTHDATE: Final = "BIRTHDATE"
IDENTIFYING: Final = frozenset({FIRST_NAME, LAST_NAME, EMAIL, BIRTHDATE})
"""Fields that distinguish people."""


def people_sheet(declared: PeopleType) -> SheetType:
    """How uploads of a type about people are read, and what their rows become.

    Args:
        declared: The type, with a hook.
    """
    table = declared.table_name
    (owner,) = declared.scope
    own = tuple(_fields(declared))
    standing = [(each, places) for each in own if (places := declared.fields[each.name].stands_in)]

    def check(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
        yield from check_person(rows, context)
        yield from faults(declared, rows)

    def arrange(cells: Cells, context: ImportContext) -> Cells:
        arranged = arrange_person(cells)
        for field, places in standing:
            arranged = _moved(arranged, field, places)
        return arranged

    return SheetType(
        name=declared.name,
        title=declared.title,
        context=CONTEXTS[owner],
        fields=(*_fields(people_types()["PERSON"]), *own),
        targets=(
            PERSONS,
            Target(
                table,
                declared.natural_key,
                made=MappingProxyType({owner: context_ids}),
                references=MappingProxyType({"person_id": PERSONS.table}),
            ),
        ),
        main=table,
        keys=person_keys,
        check=check,
        arrange=arrange,
        custom_lists=table if declared.custom_lists else None,
    )


def _fields(declared: PeopleType) -> Iterator[FieldSpec]:
    for name, field in declared.fields.items():
        resolver = field.to or field.table
        yield replace(
            field_spec(name, field),
            kind=field.column_kind if resolver is None else ColumnKind.ENTITY,
            target=f"{declared.table_name}.{field.column or name.lower()}",
            either=field.either,
            beside=field.beside,
            instead=field.instead,
            resolver=resolver,
            creates=field.to is not None,
        )


def identities(rows: SheetRows) -> Sequence[Identity | None]:
    """Who each row is about; None: it names no one."""
    if IDENTITY in rows:
        return rows[IDENTITY]
    columns = (rows[each] for each in (LAST_NAME, FIRST_NAME, EMAIL, BIRTHDATE))
    return [identity_of(*who) for who in zip(*columns, strict=True)]


def person_keys(rows: SheetRows) -> Sequence[str]:
    """The person of each row: as the questions about people were settled, or else by name, mail
    address and date of birth together."""
    if PERSON.name in rows:
        return rows[PERSON.name]
    return [f"?{row}" if who is None else who.key for row, who in enumerate(identities(rows))]


def made_keys(rows: SheetRows, context: ImportContext) -> Sequence[str]:
    """`person_keys` as a column of the table."""
    return person_keys(rows)


def name_keys(rows: SheetRows, context: ImportContext) -> Sequence[str | None]:
    """What people are looked up by, beside their mail address."""
    return [None if who is None else who.name_key for who in identities(rows)]


def mail_keys(rows: SheetRows, context: ImportContext) -> Sequence[str | None]:
    """What people with a mail address are looked up by."""
    return [None if who is None else who.mail_key for who in identities(rows)]


PERSONS: Final = Target(
    PERSONS_TABLE,
    ("organisation_id", "person_key"),
    made=MappingProxyType(
        {
            "organisation_id": organisation,
            "person_key": made_keys,
            "name_key": name_keys,
            "mail_key": mail_keys,
        }
    ),
)


def check_person(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    """A birth date lies in the past."""
    for row, day in enumerate(rows[BIRTHDATE]):
        if day is not None and day > context.today:
            yield Fault(row, BIRTHDATE, "is in the future")


def arrange_person(cells: Cells) -> Cells:
    """Read the names of people as one list writes them.

    A list without a column of first names may write `Ferreira, Jo\u00e3o` in one column.
    """
    arranged = dict(cells)
    if LAST_NAME in cells and FIRST_NAME not in cells:
        both = list(map(given_and_family, cells[LAST_NAME]))
        arranged[LAST_NAME] = [family for _, family in both]
        if any(given is not None for given, _ in both):
            arranged[FIRST_NAME] = [given for given, _ in both]
    for name in (FIRST_NAME, LAST_NAME):
        if name in arranged:
            arranged[name] = list(map(stored_name, arranged[name]))
    return arranged


def _moved(cells: Cells, field: FieldSpec, places: Sequence[str]) -> Cells:
    """Move what stands in the place of another field, unless the row has another value of it."""

    def choice(cell: str) -> str | None:
        return None if is_blank(cell) else field.choice_of.get(normalise(cell))

    held = [name for name in places if name in cells]
    texts = dict.fromkeys(cell for name in held for cell in cells[name] if isinstance(cell, str))
    known = {text: found for text in texts if (found := choice(text)) is not None}
    if not known:
        return cells
    arranged = dict(cells)
    chosen = list(cells.get(field.name, (None,) * len(cells[held[0]])))
    for name in held:
        column = list(cells[name])
        for row, cell in enumerate(column):
            if not isinstance(cell, str) or cell not in known:
                continue
            if not is_filled(chosen[row]):
                chosen[row] = known[cell]
            if choice(str(chosen[row])) == known[cell]:
                column[row] = None
        arranged[name] = column
    arranged[field.name] = chosen
    return arranged
