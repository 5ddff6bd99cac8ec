"""A layer, cleaned, in a Parquet file, and the report of what became of it."""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import numpy as np
import shapely
from arro3.core import Array, DataType, Field, RecordBatch, RecordBatchReader, Schema
from arro3.io import write_parquet

from adapters.files.vectors.geometry import Cleaned, clean, types_of
from adapters.files.vectors.layers import Chunk, Layer, Refused, SourceField, arrow_type
from adapters.files.vectors.projection import ToDegrees
from workflows.jobs.vectors import (
    NOTES,
    PROBLEMS,
    Antimeridian,
    FeatureProblem,
    GeometryType,
    LayerReport,
    VectorColumn,
    VectorOptions,
    VectorTable,
    column_names,
    geometry_type,
)

T = TypeVar("T")
GEOMETRY: Final = "geom"
_COMPRESSION: Final = "zstd(1)"


@dataclass
class _Totals:
    features: int = 0
    kept: int = 0
    rejected: int = 0
    repaired: int = 0
    nulls: int = 0
    empty: int = 0
    collapsed: int = 0
    measured: int = 0
    filled_heights: int = 0
    with_z: int = 0
    area_change: float = 0.0
    types: set[GeometryType] = field(default_factory=set[GeometryType])
    boxes: list[np.ndarray[Any, Any]] = field(default_factory=list[Any])
    problems: list[FeatureProblem] = field(default_factory=list[FeatureProblem])
    filled: set[int] = field(default_factory=set[int])
    """Places of columns in which there is a value."""


def write_layer(
    layer: Layer,
    table: str,
    projection: ToDegrees,
    options: VectorOptions,
    features: Path,
    problems: Path,
) -> LayerReport:
    """Clean a layer.

    Args:
        layer: As read.
        table: Name of its table.
        projection: To degrees.
        options: What becomes of invalid geometries, and of long edges.
        features: Written: Parquet, the columns of the table and `geom`, well-known binary.
        problems: Written: a JSON line for each problem.
    """
    totals = _Totals()
    refused: list[Refused] = []
    names = column_names(each.name for each in layer.fields)
    schema = Schema(
        [
            *(
                Field(name, arrow_type(each.type), nullable=True)
                for name, each in zip(names, layer.fields, strict=True)
            ),
            Field(GEOMETRY, DataType.binary(), nullable=True),
        ]
    )
    transform = None if projection.transformer is None else projection
    with problems.open("w", encoding="utf-8") as lines, ThreadPoolExecutor(1) as aside:

        def cleaned() -> Iterator[tuple[Chunk, Cleaned]]:
            for chunk in layer.chunks():
                yield (
                    chunk,
                    clean(
                        chunk.geometries,
                        transform,
                        options.max_area_change,
                        in_degrees=projection.in_degrees,
                        cuts=options.antimeridian is Antimeridian.CUT,
                    ),
                )

        def batches() -> Iterator[RecordBatch]:
            try:
                for chunk, found in _ahead(cleaned(), aside):
                    yield _batch(schema, chunk, found, totals, lines)
            except Refused as error:
                refused.append(error)
                raise

        reader = RecordBatchReader.from_batches(schema, batches())
        try:
            write_parquet(reader, features, compression=_COMPRESSION)
        except Exception:
            if refused:
                # arro3 makes a text of what its source raises.
                raise refused[0] from None
            raise
    columns = tuple(
        VectorColumn(
            name=name, source=each.name, type=each.type, is_empty=place not in totals.filled
        )
        for place, (name, each) in enumerate(zip(names, layer.fields, strict=True))
    )
    notes = [*layer.notes, *projection.notes, *_notes(totals, layer.fields, names)]
    return LayerReport(
        layer=layer.name[:1_000],
        table=VectorTable(
            name=table,
            columns=columns,
            geometry=geometry_type(totals.types or {GeometryType.GEOMETRY}),
            has_z=totals.with_z > 0,
        ),
        features=totals.features,
        kept=totals.kept,
        rejected=totals.rejected,
        repaired=totals.repaired,
        null_geometries=totals.nulls,
        empty_geometries=totals.empty,
        collapsed_parts=totals.collapsed,
        area_change=totals.area_change,
        projection=projection.report,
        encoding=layer.encoding,
        extent=_extent(totals.boxes),
        notes=tuple(each[:1_000] for each in notes[:NOTES]),
        problems=tuple(totals.problems),
    )


def _ahead(source: Iterator[T], aside: Executor) -> Iterator[T]:
    """The same, each made in another thread while the one before it is written."""
    coming = aside.submit(next, source, None)
    while (found := coming.result()) is not None:
        coming = aside.submit(next, source, None)
        yield found


def _batch(
    schema: Schema, chunk: Chunk, cleaned: Cleaned, totals: _Totals, lines: IO[str]
) -> RecordBatch:
    rejected = _note_problems(chunk, cleaned, totals, lines)
    keep = np.array([int(n) not in rejected for n in chunk.numbers], dtype=bool)
    geometries = cleaned.geometries[keep]
    missing = shapely.is_missing(geometries)
    empty = shapely.is_empty(geometries)
    totals.features += len(keep)
    totals.kept += int(keep.sum())
    totals.rejected += int((~keep).sum())
    totals.nulls += int(missing.sum())
    totals.empty += int(empty.sum())
    totals.repaired += cleaned.repaired
    totals.collapsed += cleaned.collapsed
    totals.measured += cleaned.measured
    totals.filled_heights += cleaned.filled
    totals.with_z += int(shapely.has_z(geometries).sum())
    totals.area_change = max(totals.area_change, cleaned.area_change)
    totals.types |= types_of(geometries)
    boxes = shapely.bounds(geometries)
    if (there := np.isfinite(boxes).all(axis=1)).any():
        totals.boxes.append(boxes[there])
        totals.boxes = [_merged(totals.boxes)]
    columns = list(chunk.columns)
    if not keep.all():
        places = Array.from_numpy(np.flatnonzero(keep))
        columns = [Array.from_arrow(column.take(places)) for column in columns]
    for place, column in enumerate(columns):
        if place not in totals.filled and column.null_count < len(column):
            totals.filled.add(place)
    wkb = Array(shapely.to_wkb(geometries, byte_order=1).tolist(), type=DataType.binary())
    return RecordBatch.from_arrays([*columns, wkb], schema=schema)


def _merged(boxes: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """One box around all."""
    every = np.concatenate(boxes)
    return np.array([[*every[:, :2].min(axis=0), *every[:, 2:].max(axis=0)]])


def _extent(boxes: Sequence[np.ndarray[Any, Any]]) -> tuple[float, float, float, float] | None:
    if not boxes:
        return None
    west, south, east, north = (float(each) for each in boxes[0][0])
    return west, south, east, north


def _note_problems(
    chunk: Chunk, cleaned: Cleaned, totals: _Totals, lines: IO[str]
) -> frozenset[int]:
    """Write all problems of a chunk; the numbers of its features that are left out."""
    problems = list(chunk.problems)
    for found, is_rejected in ((cleaned.rejected, True), (cleaned.changed, False)):
        problems += [
            FeatureProblem(
                feature=int(chunk.numbers[place]), reason=reason[:1_000], is_rejected=is_rejected
            )
            for place, reason in found.items()
        ]
    for problem in sorted(problems, key=lambda each: each.feature):
        lines.write(json.dumps(problem.model_dump(exclude_none=True), ensure_ascii=False) + "\n")
        if len(totals.problems) < PROBLEMS:
            totals.problems.append(problem)
    return frozenset(problem.feature for problem in problems if problem.is_rejected)


def _notes(totals: _Totals, fields: Sequence[SourceField], names: Sequence[str]) -> Iterator[str]:
    if totals.nulls:
        yield f"{totals.nulls:,} features have no geometry; they are kept"
    if totals.empty:
        yield f"{totals.empty:,} features have an empty geometry; they are kept"
    if totals.measured:
        yield f"M values of {totals.measured:,} geometries are left out"
    if totals.with_z and totals.with_z < totals.kept - totals.nulls - totals.empty:
        yield f"{totals.with_z:,} geometries have heights (Z); the others get height 0"
    if totals.filled_heights:
        yield (
            f"{totals.filled_heights:,} geometries have heights (Z) at some of their places; "
            "the others get height 0"
        )
    if len(totals.types) > 1:
        found = ", ".join(sorted(each.value for each in totals.types))
        table = geometry_type(totals.types).value
        yield f"geometries are of several types ({found}); the table has {table}"
    seen: set[str] = set()
    for each, name in zip(fields, names, strict=True):
        if each.name.lower() in seen:
            yield f"field {each.name!r} is there twice; the second is column {name!r}"
        seen.add(each.name.lower())
