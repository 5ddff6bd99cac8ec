"""Features of a Parquet file as rows for a table."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import shapely
from arro3.io import read_parquet

from adapters.files.vectors.geometry import as_multi
from adapters.files.vectors.layers import binary_of
from adapters.ports import UnreadableDocument
from contracts.jobs.vectors import ColumnType, GeometryType, VectorTable

ROWS: Final = 10_000
"""Of one batch."""
GEOMETRY: Final = "geom"
SRID: Final = 4326
_MAGIC: Final = b"PAR1"

Geometries = np.ndarray[Any, Any]


def incoming_features(
    features: Path, incoming: VectorTable, table: VectorTable
) -> Iterator[tuple[list[Sequence[Any]], list[bytes | None]]]:
    """Columns and geometries, chunk by chunk, as a table takes them.

    Args:
        features: The file.
        incoming: What it holds.
        table: Where the features go; types of its columns, its geometry type and its heights.

    Yields:
        Values column by column, in the order of `incoming`; geometries as extended well-known
        binary, little endian, without a system.

    Raises:
        UnreadableDocument: The file is cut off.
    """
    _refuse_partial(features)
    kinds = {column.name: column.type for column in table.columns}
    fits = table.geometry in (incoming.geometry, GeometryType.GEOMETRY)
    is_single = table.geometry not in _MULTIPLE
    for batch in read_parquet(features, batch_size=ROWS):
        columns: list[Sequence[Any]] = []
        for column in incoming.columns:
            values = cast(list[Any], batch[column.name].to_pylist())
            columns.append(_as(kinds[column.name], values))
        if fits and is_single and not table.has_z:
            yield columns, cast(list[bytes | None], batch[GEOMETRY].to_pylist())
        else:
            yield columns, _changed(binary_of(batch[GEOMETRY]), table)


def _changed(binary: Geometries, table: VectorTable) -> list[bytes | None]:
    geometries = as_multi(shapely.from_wkb(binary), table.geometry)
    if table.has_z:
        flat = ~shapely.has_z(geometries) & ~shapely.is_missing(geometries)
        geometries[flat] = shapely.force_3d(geometries[flat], 0.0)
    return cast(Any, shapely.to_wkb(geometries, byte_order=1)).tolist()


_MULTIPLE: Final = frozenset(
    {GeometryType.MULTI_POINT, GeometryType.MULTI_LINE_STRING, GeometryType.MULTI_POLYGON}
)


def _without_nul(text: str) -> str:
    """PostgreSQL refuses the character; halves of surrogate pairs are none of UTF-8 here."""
    return text.replace("\0", "\ufffd")


def _refuse_partial(features: Path) -> None:
    """The library panics where the end is missing, which no `except` of ours would catch."""
    with features.open("rb") as file:
        file.seek(max(features.stat().st_size - len(_MAGIC), 0))
        if file.read() != _MAGIC:
            raise UnreadableDocument("the features that were read are cut off; read them again")


def _as(kind: ColumnType, values: Sequence[Any]) -> Sequence[Any]:
    convert = _CONVERTERS.get(kind)
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


_CONVERTERS: Final[dict[ColumnType, Callable[[Any], Any]]] = {
    ColumnType.TEXT: _without_nul,
    ColumnType.REAL: float,
}
