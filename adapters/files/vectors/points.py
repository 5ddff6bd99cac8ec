"""Text tables with coordinates: each row is a feature, and its columns say where it lies."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import shapely

from adapters.files.tables.delimited import open_delimited
from adapters.files.vectors.layers import (
    CHUNK,
    Chunk,
    Layer,
    Refused,
    Source,
    SourceField,
    in_chunks,
)
from workflows.jobs.vectors import COLUMNS, FeatureProblem, Texts, from_texts

_DEGREES: Final = ({"lon", "lng", "long", "longitude"}, {"lat", "latitude"})
_METRES: Final = ({"x", "easting", "east"}, {"y", "northing", "north"})
_TEXTS: Final = {"wkt", "geom", "geometry", "the_geom", "wkt_geom", "shape"}
_COMMA: Final = re.compile(r"-?\d+,\d+")
_THOUSANDS: Final = re.compile(r"-?\d{1,3},\d{3}")
"""In degrees nothing but a decimal; in metres nobody knows."""
_SHOWN: Final = 40


class _NoPlace(ValueError):
    """A row whose coordinates are none."""


@dataclass(frozen=True, slots=True)
class _Places:
    """How a row says where it lies."""

    columns: Sequence[int]
    read: Callable[[Sequence[str]], Any]
    crs: str | None


def open_points(path: Path, encoding: str | None) -> Source:
    """Read the header and the types of the columns.

    Args:
        path: The file.
        encoding: Its encoding; None: it is found out.

    Raises:
        Refused: No column, or more than one, can be the place of a row.
        UnreadableDocument: It is no table.
    """
    with open_delimited(path, encoding) as table:
        rows = table.rows()
        names = [str(cell or "").strip() for _, cells in islice(rows, 1) for cell in cells]
        if len(names) > COLUMNS:
            raise Refused(f"the table has more than {COLUMNS:,} columns")
        places = _places(names)
        texts = [Texts(has_numbers=True) for _ in names]
        for _, cells in rows:
            for found, cell in zip(texts, cells, strict=False):
                found.add([_value(cell)])
        found_encoding = table.encoding
    fields = [SourceField(name, each.kind) for name, each in zip(names, texts, strict=True)]
    return Source(
        "CSV",
        [
            Layer(
                name="rows",
                crs=places.crs,
                fields=fields,
                chunks=lambda: _chunks(path, found_encoding, fields, places),
                encoding=f"{found_encoding} ({'parameter' if encoding else 'found out'})",
                notes=[
                    f"column {name!r}: {each.note}"
                    for name, each in zip(names, texts, strict=True)
                    if each.note
                ],
            )
        ],
    )


def _places(names: Sequence[str]) -> _Places:
    """Which columns say where a row lies."""
    folded = [re.sub(r"\W+", "_", name.lower()).strip("_") for name in names]

    def columns(known: set[str]) -> list[int]:
        exact = [number for number, name in enumerate(folded) if name in known]
        last = [number for number, name in enumerate(folded) if name.rpartition("_")[2] in known]
        return exact or last

    for kinds, crs in ((_DEGREES, "OGC:CRS84"), (_METRES, None)):
        first, second = map(columns, kinds)
        if len(first) == len(second) == 1:
            return _Places((first[0], second[0]), _degrees if crs else _metres, crs)
        if first and second:
            listed = ", ".join(repr(names[number]) for number in (*first, *second))
            raise Refused(
                f"several columns can be the place of a row ({listed}); rename the others"
            )
    if len(found := columns(_TEXTS)) == 1:
        return _Places(found, _well_known, None)
    listed = ", ".join(map(repr, names[:20]))
    raise Refused(
        f"no column says where a row lies; call two of them longitude and latitude, or x and y, or"
        f" one wkt. The table has {listed}"
    )


def _degrees(cells: Sequence[str]) -> Any:
    cells = [cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell for cell in cells]
    if any("_" in cell for cell in cells):
        raise _NoPlace
    try:
        return shapely.Point(*(float(cell) for cell in cells))
    except ValueError as error:
        raise _NoPlace from error


def _metres(cells: Sequence[str]) -> Any:
    if any(map(_THOUSANDS.fullmatch, cells)):
        raise _NoPlace
    return _degrees(cells)


def _well_known(cells: Sequence[str]) -> Any:
    try:
        return shapely.from_wkt(cells[0])
    except shapely.errors.GEOSException as error:
        raise _NoPlace from error


def _value(cell: Any) -> str | None:
    return None if cell is None or cell == "" else str(cell)


def _chunks(
    path: Path, encoding: str | None, fields: Sequence[SourceField], places: _Places
) -> Iterator[Chunk]:
    with open_delimited(path, encoding) as table:
        rows = table.rows()
        next(rows, None)
        first = 1
        while some := list(islice(rows, CHUNK)):
            numbers = np.arange(first, first + len(some))
            geometries: list[Any] = []
            problems: list[FeatureProblem] = []
            values: list[list[str | None]] = [[] for _ in fields]
            for number, (line, cells) in enumerate(some, start=first):
                found = [_value(cell) for cell in cells]
                found += [None] * (len(fields) - len(found))
                for column, value in zip(values, found, strict=False):
                    column.append(value)
                shape, reason = _shape(places, found)
                if len(found) > len(fields):
                    reason = f"it has {len(found)} cells, and the header {len(fields)}"
                if reason is not None:
                    text = f"line {line:,}: {reason}"
                    problems.append(FeatureProblem(feature=number, reason=text))
                geometries.append(shape)
            columns = [
                from_texts(each.type, column) for each, column in zip(fields, values, strict=True)
            ]
            array = np.array([*geometries, None], dtype=object)[:-1]
            yield from in_chunks(array, fields, columns, problems, numbers)
            first += len(some)


def _shape(places: _Places, cells: Sequence[str | None]) -> tuple[Any, str | None]:
    """The geometry of a row, and why it has none though it should."""
    found = [cells[number] for number in places.columns]
    if all(cell is None for cell in found):
        return None, None
    try:
        return places.read([cell or "" for cell in found]), None
    except _NoPlace:
        shown = ", ".join(repr((cell or "")[:_SHOWN]) for cell in found)
        return None, f"{shown} is no place"
