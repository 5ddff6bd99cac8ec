"""Which rows and problems of a review a statement is about."""

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, select

from adapters.database.models.spreadsheet_reviews import spreadsheet_review_problems
from adapters.database.models.spreadsheets import spreadsheet_imports

PAGE: Final = 200
"""Rows or blocks that one statement names."""


def id_of(uuid: str) -> Any:
    """Number of an import, for conditions."""
    imports = spreadsheet_imports
    return select(imports.c.id).where(imports.c.uuid == uuid).scalar_subquery()


def concerned(
    own: Any, lines: Collection[int] | None, columns: Collection[int] | None
) -> list[list[ColumnElement[bool]]]:
    """Conditions that together name the problems of some rows in some columns."""
    table = spreadsheet_review_problems
    conditions: list[ColumnElement[bool]] = [table.c.import_id == own]
    if columns is not None:
        conditions.append(table.c.column_id.in_(sorted(columns)))
    if lines is None:
        return [conditions]
    ordered = sorted(lines)
    return [
        [*conditions, table.c.line.in_(ordered[i : i + PAGE])] for i in range(0, len(ordered), PAGE)
    ]


def starts_of(starts: Sequence[int], lines: Collection[int]) -> set[int]:
    """First lines of the blocks that rows may be in."""
    found: set[int] = set()
    place = 0
    for line in sorted(lines):
        while place + 1 < len(starts) and starts[place + 1] <= line:
            place += 1
        if starts and starts[place] <= line:
            found.add(starts[place])
    return found
