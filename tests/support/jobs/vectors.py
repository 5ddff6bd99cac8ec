"""Vector data for tests: features as a load has them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import shapely
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

from activities.jobs.ports import FeatureLoad
from adapters.files.vectors.layers import array_of, arrow_type
from workflows.jobs.vectors import ColumnType, GeometryType, LoadMode, VectorColumn, VectorTable


def table_of(
    name: str = "parcels",
    geometry: GeometryType = GeometryType.POLYGON,
    *,
    has_z: bool = False,
    **columns: ColumnType,
) -> VectorTable:
    """A table with these columns."""
    found = tuple(VectorColumn(name=each, source=each, type=columns[each]) for each in columns)
    return VectorTable(name=name, columns=found, geometry=geometry, has_z=has_z)


def write_features(path: Path, table: VectorTable, rows: Sequence[tuple[Any, ...]]) -> Path:
    """Features as the reader leaves them: values, then the geometry as text, or None."""
    *values, shapes = zip(*rows, strict=True) if rows else [()] * (len(table.columns) + 1)
    fields = [Field(each.name, arrow_type(each.type), nullable=True) for each in table.columns]
    schema = Schema([*fields, Field("geom", DataType.binary(), nullable=True)])
    arrays = [array_of(c.type, list(v)) for c, v in zip(table.columns, values, strict=True)]
    wkb = [None if shape is None else shapely.to_wkb(shapely.from_wkt(shape)) for shape in shapes]
    arrays.append(Array(wkb, type=DataType.binary()))
    batch = RecordBatch.from_arrays(arrays, schema=schema)
    write_parquet(RecordBatchReader.from_batches(schema, [batch]), path)
    return path


def load_of(
    folder: Path,
    table: VectorTable,
    rows: Sequence[tuple[Any, ...]],
    mode: LoadMode = LoadMode.CREATE,
    key: str = "first",
    upsert_by: Sequence[str] = (),
) -> FeatureLoad:
    """A load of these rows."""
    path = write_features(folder / f"{key}.parquet", table, rows)
    return FeatureLoad(key, table, mode, tuple(upsert_by), path)
