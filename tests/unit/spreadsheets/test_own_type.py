"""A type of one's own, from its headers to the rows that are written."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path

from activities.shared.scratch import SeenKeys
from activities.spreadsheets.column_matching import column_titles, find_header, match_columns
from activities.spreadsheets.entities import EntityScope, ImportContext
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.types.base import Fault, SheetRows, SheetType, Target, organisation
from activities.spreadsheets.validation import RowValidator, SourceRow
from activities.spreadsheets.value_mapping import ValueBook, scope_of
from workflows.shared.cells import Cell
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.spreadsheets.fields import (
    Entity,
    ParkedRow,
    TargetRows,
)

TYPE = SheetType(
    name="VOLUNTEER",
    title="Volunteers",
    context=None,
    fields=(
        FieldSpec(
            "BADGE", ColumnKind.CODE, title="Badge", target="volunteers.badge", required=True
        ),
        FieldSpec(
            "HOURS",
            ColumnKind.DECIMAL,
            title="Hours",
            target="volunteers.hours",
            aliases=("Stunden",),
        ),
        FieldSpec(
            "SHIFT",
            ColumnKind.ENTITY,
            title="Shift",
            target="assignments.shift_id",
            aliases=("Schicht",),
            resolver="shifts",
            creates=True,
        ),
    ),
    targets=(
        Target("volunteers", ("organisation_id", "badge"), made={"organisation_id": organisation}),
        Target(
            "assignments",
            ("volunteer_id", "shift_id"),
            references={"volunteer_id": "volunteers"},
        ),
    ),
    main="volunteers",
    keys=lambda rows: rows["BADGE"],
    check=lambda rows, context: too_long(rows, context),
)


def too_long(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    for row, hours in enumerate(rows["HOURS"]):
        if hours is not None and hours > 12:
            yield Fault(row, "HOURS", "is more than a day's work")


FILE: Sequence[tuple[int, list[Cell]]] = (
    (1, ["Helpers of the marathon"]),
    (3, ["Badge", "Stunden", None, "Schicht"]),
    (4, ["B-1", "3,5", None, "morning"]),
    (5, ["B-2", "14", None, "Morning"]),
    (6, ["B-3", "1,5", None, "Midnight"]),
    (7, ["B-1", "1", None, None]),
    (8, [1200.0, None, None, "Evening"]),
)


async def test_from_headers_to_rows() -> None:
    mine = await SheetTypes(types=[TYPE]).get("VOLUNTEER")
    fields = mine.fields_for([])
    header = find_header(FILE, fields)
    assert header.line == 3
    below = [(line, cells) for line, cells in FILE if line > header.line]
    columns = match_columns(column_titles(header.cells, [cells for _, cells in below]), fields, {})
    assert [(column.index, column.target) for column in columns] == [
        (0, "BADGE"),
        (1, "HOURS"),
        (3, "SHIFT"),
    ]

    shifts = {"shifts": [Entity(1, "Morning"), Entity(2, "Evening")]}
    context = ImportContext(9, None, date(2026, 6, 1), shifts)
    assert scope_of(fields[2], context) == EntityScope("shifts", 9, None)
    rows = [SourceRow(line, 10 * line, cells) for line, cells in below]
    with closing(SeenKeys(Path())) as seen:
        validated = RowValidator(
            mine, fields, columns, context, ValueBook(fields, context), seen, rows
        ).validate(rows)

    assert validated.lines == [4, 8]
    assert validated.parked == [ParkedRow(6, 60)]
    assert [(line, problem.reason) for line, (problem,) in validated.errors] == [
        (5, "is more than a day's work"),
        (7, "same person as line 4"),
    ]
    volunteers, assignments = validated.targets
    assert volunteers == TargetRows(
        "volunteers",
        ("organisation_id", "badge", "hours"),
        [(9, "B-1", volunteers.rows[0][2]), (9, "1200", None)],
        range(2),
    )
    assert str(volunteers.rows[0][2]) == "3.5"
    assert (assignments.rows, assignments.references) == (
        [(1,), (2,)],
        {"volunteer_id": "volunteers"},
    )
