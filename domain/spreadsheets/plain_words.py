"""What people are shown in place of names of fields, tables and columns."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from contracts.spreadsheets import FieldFacts
from domain.spreadsheets.fields import SheetField
from domain.tabular.fields import ColumnKind

_RECORDS: Final = MappingProxyType(
    {
        "persons": "Person",
        "event_participants": "Event participant",
        "memberships": "Membership",
        "race_results": "Race result",
        "custom_list_values": "Choice from a list",
    }
)
_COLUMNS: Final = MappingProxyType(
    {"person_key": "Person", "person_id": "Person", "custom_list_item_id": "Choice"}
)


def words(name: str) -> str:
    """A name of programs in plain words: `First name` for FIRST_NAME."""
    return name.replace("_", " ").strip().capitalize()


def record_title(table: str) -> str:
    """What a row of a table is to people."""
    return _RECORDS.get(table) or words(table)


def column_title(column: str) -> str:
    """What a column of a table is to people, where no field is known that fills it."""
    return _COLUMNS.get(column) or words(column.removesuffix("_id"))


def column_titles(fields: Iterable[SheetField]) -> Mapping[tuple[str, str], SheetField]:
    """The field that fills each column, by table and column; columns that several fill left out."""
    found: dict[tuple[str, str], SheetField] = {}
    shared: set[tuple[str, str]] = set()
    for each in fields:
        place = each.table, each.column
        if found.setdefault(place, each) is not each:
            shared.add(place)
    return {place: each for place, each in found.items() if place not in shared}


def shown_value(field: SheetField | None, value: str | None) -> str | None:
    """A stored value as people write it: a time in hours, minutes and seconds."""
    if field is None or value is None or field.kind is not ColumnKind.DURATION:
        return value
    if not value.isascii() or not value.isdecimal():
        return value
    whole, fraction = divmod(int(value), 1000)
    minutes, seconds = divmod(whole, 60)
    shown = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f"{shown}.{fraction:03}" if fraction else shown


def field_titles(fields: Iterable[FieldFacts]) -> Mapping[str, str]:
    """Title of each field, by name; runs of earlier releases know no titles."""
    return {each.name: each.title or words(each.name) for each in fields}


def titled(names: Iterable[str], titles: Mapping[str, str]) -> Sequence[str]:
    """Titles of fields; plain words for one that is not known."""
    return [titles.get(name) or words(name) for name in names]
