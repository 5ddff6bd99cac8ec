"""Layers of a file as GDAL reads them, in chunks: one reader for all of its formats.

Only for processes of `adapters.files.vectors.child`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from adapters.files.vectors import ogr
from adapters.files.vectors.columns import converted, texts_of
from adapters.files.vectors.layers import (
    Chunk,
    Layer,
    Refused,
    Source,
    SourceField,
    array_of,
    binary_of,
)
from adapters.files.vectors.surfaces import shapes_of
from workflows.jobs.vectors import ColumnType, FeatureProblem, Texts

_NUMBERS: Final = frozenset({"fid", "ogc_fid"})
"""Names of keys that programs give; a key of another name is data."""
_CURVES: Final = frozenset({8, 9, 10, 11, 12, 13, 14})
"""Well-known binary of circular strings, compound curves, curve polygons and their multiples."""
_MOMENT: Final = "OFTDateTime"
_TEXT: Final = "OFTString"
_BOOLEAN: Final = "OFSTBoolean"
_JSON: Final = "OFSTJSON"
_TYPES: Final = {
    _TEXT: ColumnType.TEXT,
    "OFTInteger": ColumnType.INTEGER,
    "OFTInteger64": ColumnType.INTEGER,
    "OFTReal": ColumnType.REAL,
    "OFTDate": ColumnType.DATE,
    "OFTTime": ColumnType.TIME,
    "OFTBinary": ColumnType.BINARY,
}
"""Times become what their texts are; lists become JSON text."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and how GDAL reads it."""

    title: str
    driver: str
    has_types: bool = True
    """Otherwise all attributes come as text, and get the type that all texts of a column have."""
    has_zones: bool = True
    """Otherwise GDAL calls times UTC of which nothing says the zone."""
    has_count: bool = True
    """Otherwise the number of features that a file says need not be right."""
    is_fixed: bool = False
    """Its layers are the same in every file, so those without features say nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a format's own check has found of a feature."""

    fid: int
    reason: str
    field: str | None = None
    value: str | None = None
    """What the field gets instead."""
    is_rejected: bool = False


Check = Callable[[Sequence[int]], Sequence[Finding]]
"""Looks at the features of a chunk, by their ids."""


def open_layers(path: Path, format: Format) -> Source:
    """Read the names of all layers.

    Raises:
        Refused: The file is damaged, or of another format.
    """
    try:
        names = ogr.layers(path)
    except ogr.FAILURES as error:
        raise Refused(
            f"the file is damaged, or no {format.title} ({ogr.first_line(error)})"
        ) from error
    source = Source(format.title, [])
    for name, geometry in names:
        if geometry is None:
            source.left_out.append(f"layer {name!r} has no geometries, and is left out")
            continue
        layer = layer_of(path, name, format)
        if not layer.features and format.is_fixed:
            source.left_out.append(f"layer {name!r} has no features")
        else:
            source.layers.append(layer)
    return source


def layer_of(path: Path, name: str, format: Format, check: Check | None = None) -> Layer:
    """Return a layer of a file.

    Args:
        path: The file.
        name: Of the layer.
        format: Of the file.
        check: Of the format's own.

    Raises:
        Refused: The layer is damaged.
    """
    try:
        info = ogr.layer_info(path, name, format.driver)
        keeps_key = info.key is not None and info.key.lower() not in _NUMBERS
        texts = {
            field: Texts(has_numbers=kind == _TEXT, are_times=kind == _MOMENT)
            for field, kind, subtype in info.fields
            if kind == _MOMENT or (kind == _TEXT and subtype != _JSON and not format.has_types)
        }
        _look(path, name, texts)
    except ogr.FAILURES as error:
        raise Refused(f"layer {name!r} is damaged ({ogr.first_line(error)})") from error
    fields = [SourceField(info.key, ColumnType.INTEGER)] if info.key and keeps_key else []
    for field, kind, subtype in info.fields:
        found = texts[field].kind if field in texts else _TYPES.get(kind, ColumnType.TEXT)
        if found is ColumnType.INSTANT and not (format.has_zones or texts[field].note):
            found = ColumnType.TIMESTAMP
        fields.append(SourceField(field, ColumnType.BOOLEAN if subtype == _BOOLEAN else found))
    layer = Layer(
        name=name,
        crs=info.crs,
        fields=fields,
        chunks=lambda: _whole(
            _chunks(path, name, layer, keeps_key, info.key is not None, check),
            name,
            info.features if format.has_count else None,
        ),
        bounds=info.bounds,
        encoding=f"utf-8 ({format.title})",
        features=info.features,
        notes=[f"field {field!r}: {each.note}" for field, each in texts.items() if each.note],
    )
    return layer


def _look(path: Path, layer: str, texts: Mapping[str, Texts]) -> None:
    """Find the types of some columns."""
    if not texts:
        return
    with ogr.arrow(path, layer, columns=list(texts), read_geometry=False) as (_, chunks):
        for chunk in chunks:
            for name, found in texts.items():
                found.add(texts_of(chunk[name], lambda *_, **__: None))


def geometries(path: Path) -> Iterator[tuple[np.ndarray[Any, Any], list[FeatureProblem]]]:
    """Geometries alone of a file with one layer, and what is wrong with them."""
    first = 1
    with ogr.arrow(path, columns=[]) as (geometry, found):
        for batch in found:
            binary = binary_of(batch[geometry])
            yield shapes_of(binary, np.arange(first, first + len(binary)))
            first += len(binary)


def _whole(chunks: Iterator[Chunk], name: str, expected: int | None) -> Iterator[Chunk]:
    """The same chunks, refused if they are not all: GDAL ends where a file is damaged."""
    read = 0
    for chunk in chunks:
        read += len(chunk.numbers)
        yield chunk
    if expected is not None and read != expected:
        raise Refused(
            f"layer {name!r} has {expected:,} features, of which {read:,} can be read: the file is"
            " damaged or cut off; save it again"
        )


def _chunks(
    path: Path, name: str, layer: Layer, keeps_key: bool, has_key: bool, check: Check | None
) -> Iterator[Chunk]:
    first = 1
    curved = 0
    is_renumbered = False
    attributes = layer.fields[1:] if keeps_key else layer.fields
    with ogr.arrow(path, name, return_fids=True) as (geometry, found):
        for batch in found:
            fids = cast(np.ndarray[Any, Any], batch.column(0).to_numpy())
            binary = binary_of(batch[geometry])
            numbers = np.arange(first, first + len(fids))
            is_renumbered |= not np.array_equal(fids, numbers)
            try:
                shapes, problems = shapes_of(binary, numbers)
            except NotImplementedError:
                curves = _curves(binary)
                curved += len(curves)
                straight = ogr.straightened(path, name, first - 1, len(binary))
                binary[curves] = straight[curves]
                shapes, problems = shapes_of(binary, numbers)
            findings = check(fids.tolist()) if check is not None and len(fids) else ()
            problems += _problems(findings, fids, numbers)
            columns = [
                converted(batch[each.name], each, numbers, problems, _values(findings, each, fids))
                for each in attributes
            ]
            if keeps_key:
                columns.insert(0, array_of(ColumnType.INTEGER, fids.tolist()))
            yield Chunk(numbers, shapes, columns, problems)
            first += len(fids)
    if is_renumbered and has_key and not keeps_key:
        layer.notes.append("its features are numbered anew: their fid in the file is not kept")
    if curved:
        layer.notes.append(
            f"arcs of {curved:,} curved geometries became straight pieces, of 4 degrees each"
        )


def _problems(
    findings: Sequence[Finding], fids: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any]
) -> list[FeatureProblem]:
    if not findings:
        return []
    places = {int(fid): int(number) for fid, number in zip(fids, numbers, strict=True)}
    return [
        FeatureProblem(
            feature=places[each.fid],
            field=each.field,
            reason=each.reason,
            is_rejected=each.is_rejected,
        )
        for each in findings
    ]


def _values(
    findings: Sequence[Finding], field: SourceField, fids: np.ndarray[Any, Any]
) -> Mapping[int, str | None]:
    """What some places of a column get instead of what GDAL has made of them."""
    found = {each.fid: each.value for each in findings if each.field == field.name}
    if not found:
        return found
    return {place: found[fid] for place, fid in enumerate(fids.tolist()) if fid in found}


def _curves(binary: np.ndarray[Any, Any]) -> list[int]:
    """Places of geometries with arcs, which `shapely` does not know."""
    return [
        place
        for place, value in enumerate(binary)
        if value is not None and len(value) > 4 and _kind(value) in _CURVES
    ]


def _kind(wkb: bytes) -> int:
    """Type of a geometry, without its dimensions."""
    number = int.from_bytes(wkb[1:5], "little" if wkb[0] else "big")
    return (number & 0x0FFF_FFFF) % 1000
