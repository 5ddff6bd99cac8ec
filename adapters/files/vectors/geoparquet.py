"""GeoParquet 1.1 with a covering of boxes, so that readers skip what lies elsewhere.

Source: https://geoparquet.org/releases/v1.1.0/
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyproj
import shapely
from arro3.core import (
    Array,
    DataType,
    Field,
    RecordBatch,
    RecordBatchReader,
    Schema,
    struct_array,  # pyright: ignore[reportUnknownVariableType]
)
from arro3.io import write_parquet

from adapters.files.vectors.layers import array_of, arrow_type
from workflows.jobs.vectors import GeometryType, VectorTable

GEOMETRY: Final = "geometry"
BBOX: Final = "bbox"
_CORNERS: Final = ("xmin", "ymin", "xmax", "ymax")
_ROW_GROUP: Final = 20_000
_COMPRESSION: Final = "zstd(3)"

Rows = Sequence[tuple[Any, ...]]


async def write_geoparquet(table: VectorTable, rows: AsyncIterator[Rows], target: Path) -> int:
    """Write a table.

    All of it is held in memory as Arrow until it is written.

    Returns:
        Rows.
    """
    types: set[str] = set()
    boxes: list[np.ndarray[Any, Any]] = []
    parts: list[RecordBatch] = []
    schema = _schema(table)
    count = 0
    async for some in rows:
        batch, found, box = await asyncio.to_thread(_batch, table, schema, some)
        parts.append(batch)
        types |= found
        boxes.append(box)
        count += len(some)
    metadata = {"geo": json.dumps(_metadata(types, boxes))}
    await asyncio.to_thread(_write, schema, parts, target, metadata)
    return count


def _write(
    schema: Schema, parts: Sequence[RecordBatch], target: Path, metadata: dict[str, str]
) -> None:
    write_parquet(
        RecordBatchReader.from_batches(schema, parts),
        target,
        compression=_COMPRESSION,
        max_row_group_size=_ROW_GROUP,
        key_value_metadata=metadata,
    )


def _names(table: VectorTable) -> list[str]:
    """Names of the columns; two are the format's."""
    taken = {"fid", GEOMETRY, BBOX}
    found: list[str] = []
    for column in table.columns:
        name = column.name
        while name in taken:
            name += "_"
        taken.add(name)
        found.append(name)
    return found


def _schema(table: VectorTable) -> Schema:
    names = _names(table)
    corners = DataType.struct([Field(each, DataType.float64(), nullable=True) for each in _CORNERS])
    return Schema(
        [
            Field("fid", DataType.int64(), nullable=False),
            *(
                Field(name, arrow_type(column.type), nullable=True)
                for name, column in zip(names, table.columns, strict=True)
            ),
            Field(GEOMETRY, DataType.binary(), nullable=True),
            Field(BBOX, corners, nullable=True),
        ]
    )


def _batch(
    table: VectorTable, schema: Schema, rows: Rows
) -> tuple[RecordBatch, set[str], np.ndarray[Any, Any]]:
    fids, *values, binary = zip(*rows, strict=True)
    geometries = shapely.from_wkb(np.array([*binary, None], dtype=object)[:-1])
    boxes = shapely.bounds(geometries)
    missing = cast(np.ndarray[Any, Any], ~np.isfinite(boxes).all(axis=1))
    corners = [
        Array(
            [None if gone else value for value, gone in zip(c, missing.tolist(), strict=True)],
            _REAL,
        )
        for c in boxes.T.tolist()
    ]
    covering = struct_array(
        corners,
        fields=[Field(each, _REAL, nullable=True) for each in _CORNERS],
        mask=Array.from_numpy(missing),
    )
    columns = [
        array_of(column.type, list(each))
        for column, each in zip(table.columns, values, strict=True)
    ]
    arrays = [
        Array(list(fids), type=DataType.int64()),
        *columns,
        Array(list(binary), type=DataType.binary()),
        covering,
    ]
    return RecordBatch.from_arrays(arrays, schema=schema), _types(geometries), boxes[~missing]


_REAL: Final = DataType.float64()


def _types(geometries: np.ndarray[Any, Any]) -> set[str]:
    present = geometries[~shapely.is_missing(geometries)]
    pairs = np.unique(
        np.column_stack([shapely.get_type_id(present), shapely.has_z(present)]), axis=0
    )
    return {f"{_KINDS[kind]}{' Z' if z else ''}" for kind, z in pairs.tolist()}


_KINDS: Final = (
    GeometryType.POINT.value,
    GeometryType.LINE_STRING.value,
    "LinearRing",
    GeometryType.POLYGON.value,
    GeometryType.MULTI_POINT.value,
    GeometryType.MULTI_LINE_STRING.value,
    GeometryType.MULTI_POLYGON.value,
    GeometryType.COLLECTION.value,
)


def _metadata(types: set[str], boxes: Sequence[np.ndarray[Any, Any]]) -> dict[str, Any]:
    column: dict[str, Any] = {
        "encoding": "WKB",
        "geometry_types": sorted(types),
        "crs": pyproj.CRS("OGC:CRS84").to_json_dict(),
        "edges": "planar",
        "covering": {"bbox": {each: [BBOX, each] for each in _CORNERS}},
    }
    found = [box for box in boxes if len(box)]
    if found:
        every = np.concatenate(found)
        column["bbox"] = [*every[:, :2].min(axis=0).tolist(), *every[:, 2:].max(axis=0).tolist()]
    return {"version": "1.1.0", "primary_column": GEOMETRY, "columns": {GEOMETRY: column}}
