"""A small organisation with its lists, and spreadsheets of it, for tests of the rules."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.column_matching import match_columns
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.file_people import FilePeople
from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.validation import RowValidator, SourceRow
from activities.spreadsheets.value_mapping import ValueBook
from workflows.shared.cells import Cell
from workflows.spreadsheets.fields import CustomList, Entity, RememberedValue
from workflows.spreadsheets.mappings import CellMapping
from workflows.spreadsheets.people import PeopleAnswers, PeopleMatcher

TODAY = date(2026, 6, 1)
JUNIOR, SENIOR, MASTERS = 42, 43, 44
SHIRTS = CustomList(7, "T_SHIRT", "T-Shirt", open=True)
CATEGORIES = (
    Entity(JUNIOR, "Junior (U18)"),
    Entity(SENIOR, "Senior (18+)"),
    Entity(MASTERS, "Masters (40+)", ("Veterans",)),
)
ENTITIES: Mapping[str, Sequence[Entity]] = {
    "countries": (
        Entity(276, "Germany", ("DE", "DEU")),
        Entity(756, "Switzerland", ("CH", "CHE")),
        Entity(528, "Netherlands, Kingdom of the", ("NL", "NLD")),
    ),
    "event_categories": CATEGORIES,
    "race_categories": CATEGORIES,
    "membership_types": (Entity(1, "Adult"), Entity(2, "Family")),
    "custom_list/7": (Entity(71, "S"), Entity(72, "M"), Entity(73, "XL")),
}


def surroundings(
    remembered: Mapping[str, Mapping[str, RememberedValue]] | None = None,
    entities: Mapping[str, Sequence[Entity]] = ENTITIES,
) -> ImportContext:
    """Organisation 1, event, period or race 5."""
    return ImportContext(1, 5, TODAY, entities, remembered or {}, (SHIRTS,))


def source(rows: Sequence[Sequence[Cell]], first_line: int = 2) -> list[SourceRow]:
    """Rows below a header on line 1; offsets that nothing else could be taken for."""
    return [SourceRow(line, 1000 + 10 * line, cells) for line, cells in enumerate(rows, first_line)]


def validator(
    sheet_type: SheetType,
    headers: Sequence[str],
    rows: Sequence[SourceRow],
    *,
    seen: SeenKeys | None,
    decided: Sequence[CellMapping] = (),
    context: ImportContext | None = None,
) -> RowValidator:
    """A validator for a file whose headers match by themselves."""
    context = context or surroundings()
    fields = sheet_type.fields_for(context.custom_lists)
    book = ValueBook(fields, context)
    book.load(decided)
    columns = match_columns(list(enumerate(headers)), fields, {})
    people = PeopleMatcher(PeopleAnswers(), None if seen is None else FilePeople(Path()))
    return RowValidator(sheet_type, fields, columns, context, book, seen, rows, people)
