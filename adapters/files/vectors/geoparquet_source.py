"""GeoParquet: its columns and well-known binary, in batches.

Source: https://geoparquet.org/releases/v1.1.0/
"""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from arro3.core import RecordBatchReader
from arro3.io import read_parquet

from adapters.files.vectors.columns import converted, kind_of
from adapters.files.vectors.layers import (
    CHUNK,
    Chunk,
    Layer,
    Refused,
    Source,
    SourceField,
    binary_of,
)
from adapters.files.vectors.surfaces import shapes_of
from workflows.jobs.vectors import COLUMNS, ColumnType, FeatureProblem

_MAGIC: Final = b"PAR1"
_TAIL_BYTES: Final = 8
_CRS84: Final = "OGC:CRS84"


def open_geoparquet(path: Path) -> Source:
    """Read the schema.

    Raises:
        Refused: It is damaged, or says nothing of geometries.
    """
    _check_end(path)
    with _reader(path) as reader:
        schema = reader.schema
        said = schema.metadata_str.get("geo")
        types = {field.name: field.type for field in (schema.field(n) for n in schema.names)}
    if said is None:
        raise Refused(
            "the file is Parquet and no GeoParquet: its metadata do not say where features lie"
        )
    try:
        geo: Mapping[str, Any] = json.loads(said)
        primary: str = geo["primary_column"]
        columns: Mapping[str, Any] = geo["columns"]
        main: Mapping[str, Any] = columns[primary]
        encoding: str = main["encoding"]
        coverings = {each[0] for column in columns.values() for each in _covering(column)}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise Refused("the metadata of the GeoParquet file are damaged") from error
    if encoding.upper() != "WKB":
        raise Refused(f"geometries are encoded as {encoding!r}; save them as WKB")
    if primary not in types:
        raise Refused(f"the file has no column {primary!r}, which its metadata name")
    others = [name for name in types if name != primary and name in columns]
    fields = [
        SourceField(name, kind_of(type))
        for name, type in types.items()
        if name not in columns and name not in coverings
    ]
    if len(fields) > COLUMNS:
        raise Refused(f"the table has more than {COLUMNS:,} columns")
    layer = Layer(
        name="rows",
        crs=_crs(main),
        fields=fields,
        chunks=lambda: _chunks(path, primary, fields),
        encoding="utf-8 (GeoParquet)",
    )
    if main.get("edges") == "spherical":
        layer.notes.append("edges are arcs of the globe, and are kept as straight lines")
    left_out = [f"column {name!r} holds more geometries, and is left out" for name in others]
    return Source("GeoParquet", [layer], left_out)


def _covering(column: Mapping[str, Any]) -> Iterator[Any]:
    """Where the boxes of geometries are; they follow from these."""
    for box in column.get("covering", {}).values():
        yield from box.values()


def _crs(column: Mapping[str, Any]) -> str | None:
    if "crs" not in column:
        return _CRS84
    return None if column["crs"] is None else json.dumps(column["crs"])


def _check_end(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - _TAIL_BYTES, 0))
        tail = file.read()
    if tail[4:] != _MAGIC or int.from_bytes(tail[:4], "little") > size - _TAIL_BYTES:
        raise Refused("the GeoParquet file is damaged or cut off; save it again")


@contextmanager
def _reader(path: Path) -> Generator[RecordBatchReader]:
    """The batches of a file.

    Raises:
        Refused: It is damaged.
    """
    try:
        yield read_parquet(path, batch_size=CHUNK)
    except BaseException as error:
        # A panic of arro3 is no `Exception`, and its class has no name to import.
        if type(error).__name__ != "PanicException" and type(error) is not Exception:
            raise
        raise Refused(f"the GeoParquet file is damaged ({str(error)[:200]})") from error


def _chunks(path: Path, primary: str, fields: list[SourceField]) -> Iterator[Chunk]:
    first = 1
    with _reader(path) as reader:
        for batch in reader:
            numbers = np.arange(first, first + batch.num_rows)
            shapes, problems = shapes_of(binary_of(batch[primary]), numbers)
            columns = [_column(batch[each.name], each, numbers, problems) for each in fields]
            yield Chunk(numbers, shapes, columns, problems)
            first += batch.num_rows


def _column(
    column: Any, field: SourceField, numbers: np.ndarray[Any, Any], problems: list[FeatureProblem]
) -> Any:
    found = converted(column, field, numbers, problems)
    if field.type is ColumnType.INTEGER and found.null_count > column.null_count:
        raise Refused(f"numbers of column {field.name!r} have more than 64 bits")
    return found
