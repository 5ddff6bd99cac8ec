"""Cells of a table to values, as the whole of its columns shows that they are written."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from domain.imports import exchanged_days
from domain.imports.survey import Surveyed
from domain.imports.tables import TableSpec
from domain.tabular.conversion import Flaw, convert_column
from domain.tabular.fields import ColumnKind, FieldSpec
from domain.tabular.habits import is_percentage, plain_cells
from domain.tabular.notations import slashed
from domain.tabular.rows import Cell

_NO_PERCENTAGE: Final = Flaw(
    "has no percent sign, and others of its column have: write 10 % as 10% or 0.1 everywhere"
)


def convert_cells(
    spec: TableSpec,
    surveyed: Surveyed,
    field: FieldSpec,
    cells: Sequence[Cell],
    *,
    date1904: bool = False,
) -> tuple[list[Any], bool]:
    """Convert cells of one column, each for itself.

    Args:
        spec: The table.
        surveyed: How its columns are written.
        field: What the column holds.
        cells: As read.
        date1904: Day numbers count from 1904.

    Returns:
        See `convert_column`.
    """
    plain = plain_cells(field, cells, is_key=field.name in spec.key, date1904=date1904)
    if surveyed.dotted and field.kind is ColumnKind.DATE:
        plain = [slashed(cell.strip()) if isinstance(cell, str) else cell for cell in plain]
    values, refused = convert_column(field, plain, surveyed.notations.get(field.name))
    if field.name in surveyed.doubtful:
        return exchanged_days.refused(cells, values), True
    if field.name not in surveyed.percentages:
        return values, refused
    checked = [
        _NO_PERCENTAGE
        if isinstance(value, Decimal) and abs(value) > 1 and not is_percentage(cell)
        else value
        for value, cell in zip(values, cells, strict=True)
    ]
    return checked, refused or _NO_PERCENTAGE in checked
