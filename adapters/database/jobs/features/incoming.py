"""Features of a Parquet file as rows for a table."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import shapely
from arro3.io import read_parquet

from adapters.database.codec import clean
from adapters.files.vectors.geometry import as_multi
from adapters.files.vectors.layers import binary_of
from adapters.ports import UnreadableDocument
from contracts.jobs.vectors import ColumnType, VectorTable

ROWS: Final = 10_000
"""Of one batch."""
GEOMETRY: Final = "geom"
SRID: Final = 4326
_MAGIC: Final = b"PAR1"

Geometries = np.ndarray[Any, Any]


def incoming_features(
    features: Path, incoming: VectorTable, table: VectorTable
) -> Iterator[tuple[list[Sequence[Any]], Geometries]]:
    """Columns and geometries, chunk by chunk, as a table takes them.

    Args:
        features: The file.
        incoming: What it holds.
        table: Where the features go; types of its columns, its geometry type and its heights.

    Yields:
        Values column by column, in the order of `incoming`; geometries of `shapely`.

    Raises:
        UnreadableDocument: The file is cut off.
    """
    _refuse_partial(features)
    kinds = {column.name: column.type for column in table.columns}
    for batch in read_parquet(features, batch_size=ROWS):
        columns: list[Sequence[Any]] = []
        for column in incoming.columns:
            values = cast(list[Any], batch[column.name].to_pylist())
            columns.append(_as(kinds[column.name], values))
        geometries = shapely.from_wkb(binary_of(batch[GEOMETRY]))
        geometries = as_multi(geometries, table.geometry)
        if table.has_z:
            flat = ~shapely.has_z(geometries) & ~shapely.is_missing(geometries)
            geometries[flat] = shapely.force_3d(geometries[flat], 0.0)
        yield columns, geometries


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
    ColumnType.TEXT: clean,
    ColumnType.REAL: float,
}
