"""Types of tables, and whether features fit into one that exists."""

from collections.abc import Collection, Iterator
from types import MappingProxyType
from typing import Final

from contracts.jobs.vectors import ColumnType, GeometryType, VectorColumn, VectorTable

_MULTI: Final = MappingProxyType(
    {
        GeometryType.POINT: GeometryType.MULTI_POINT,
        GeometryType.LINE_STRING: GeometryType.MULTI_LINE_STRING,
        GeometryType.POLYGON: GeometryType.MULTI_POLYGON,
    }
)


def geometry_type(found: Collection[GeometryType]) -> GeometryType:
    """The type of a table whose geometries are of these types.

    Single and multiple ones of a kind make the multiple; kinds that differ make `Geometry`.
    """
    if len(found) == 1:
        return next(iter(found))
    promoted = {_MULTI.get(each, each) for each in found}
    if len(promoted) != 1:
        return GeometryType.GEOMETRY
    [kind] = promoted
    return kind


def takes(table: GeometryType, geometry: GeometryType) -> bool:
    """Whether a table of a type holds geometries of another, promoted to multi if need be."""
    return table in (GeometryType.GEOMETRY, geometry, _MULTI.get(geometry))


def differences(table: VectorTable, incoming: VectorTable) -> Iterator[str]:
    """Why features cannot go into a table that exists, one sentence each."""
    known = {column.name: column for column in table.columns}
    for column in incoming.columns:
        if column.name not in known:
            yield f"the file has a column {column.name!r}, which the table has not"
        elif not _fits(known[column.name].type, column):
            expected = known[column.name].type.value
            yield f"column {column.name!r} is {column.type.value} and {expected} in the table"
    sent = {column.name for column in incoming.columns}
    for name in (name for name in known if name not in sent):
        yield f"the file lacks the column {name!r}"
    if not takes(table.geometry, incoming.geometry):
        yield f"geometries are {incoming.geometry.value} and {table.geometry.value} in the table"
    if table.has_z != incoming.has_z:
        with_z, without = ("table", "file") if table.has_z else ("file", "table")
        yield f"the {with_z} has heights (Z) and the {without} has none"


def _fits(expected: ColumnType, column: VectorColumn) -> bool:
    """Whole numbers go into reals: JSON does not distinguish 1 from 1.0."""
    if column.is_empty or column.type is expected:
        return True
    return expected is ColumnType.REAL and column.type is ColumnType.INTEGER
