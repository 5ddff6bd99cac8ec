"""GeoJSON, feature by feature.

Source: RFC 7946, RFC 8142 and its form without separators (a feature in each line), and the
specification of 2008 for the member `crs`. GDAL turns whole numbers into
reals, true into 1 and dates into midnights, and leaves foreign members out without a word.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import shapely

from adapters.files.vectors.geometry import Geometries
from adapters.files.vectors.layers import (
    Columns,
    Layer,
    Refused,
    Source,
    SourceField,
    bounds_of,
    in_chunks,
)
from workflows.jobs.vectors import FeatureProblem, column_of

_DIGITS: Final = 1_000
_BLANK: Final = " \t\n\r\x1e"
"""With the separator of records in a text sequence."""
_LISTED: Final = 10
_DIMENSIONS: Final = 3
_ID: Final = "\0id"
_COLLECTION: Final = frozenset({"type", "features", "crs", "bbox", "name"})
_FEATURE: Final = frozenset({"type", "id", "geometry", "properties", "bbox"})
_GEOMETRY: Final = frozenset({"type", "coordinates", "geometries", "bbox", "crs"})
_HALF: Final = re.compile("[\ud800-\udfff]")
"""A half of a character; JSON can hold it alone, UTF-8 cannot."""
_POSITIONS: Final = frozenset({"coordinates", "geometries"})
_CRS84: Final = "OGC:CRS84"


@dataclass(slots=True)
class _Found:
    """What has been read so far."""

    geometries: list[str | None] = field(default_factory=list[str | None])
    columns: Columns = field(default_factory=Columns)
    problems: list[FeatureProblem] = field(default_factory=list[FeatureProblem])
    foreign: Counter[str] = field(default_factory=Counter[str])
    members: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of the collection, but its features."""
    repeated: int = 0
    unreal: int = 0
    measured: int = 0
    halves: int = 0


_Members = dict[str, Any]


def open_geojson(path: Path) -> Source:
    """Read a file.

    Raises:
        Refused: It is not GeoJSON, or damaged.
    """
    found = _Found()
    try:
        for feature in _features(path.read_text("utf-8-sig"), found):
            _take(feature, found)
        geometries = _geometries(found)
    except UnicodeDecodeError as error:
        raise Refused(f"the file is not UTF-8, as GeoJSON is (byte {error.start + 1})") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"the file is damaged or cut off ({error}); save it again") from error
    return Source("GeoJSON", [_layer(found, geometries)])


def _whole_number(text: str) -> int:
    if len(text) > _DIGITS:
        raise Refused(f"a number has {len(text):,} digits; at most {_DIGITS:,} are read")
    return int(text)


def _features(text: str, found: _Found) -> Iterator[Any]:
    """The features of a text, decoded one by one."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        members = {
            _whole(key, found): value if key == "coordinates" else _whole(value, found)
            for key, value in items
        }
        found.repeated += len(members) != len(items)
        return members

    def constant(_: str) -> None:
        found.unreal += 1

    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_constant=constant, parse_int=_whole_number
    )
    at = _expect(text, 0, "{")
    while text[at : at + 1] != "}":
        key, at = decoder.raw_decode(text, at)
        at = _expect(text, at, ":")
        if key == "features" and text[at : at + 1] == "[":
            at = _skip(text, at + 1)
            while text[at : at + 1] != "]":
                feature, at = decoder.raw_decode(text, at)
                yield feature
                at = _separated(text, at, "]")
            at += 1
        else:
            found.members[key], at = decoder.raw_decode(text, at)
        at = _separated(text, at, "}")
    at = _skip(text, at + 1)
    is_sequence = at != len(text)
    if is_sequence and found.members.get("type") == "FeatureCollection":
        raise json.JSONDecodeError("more follows after the end", text, at)
    yield from _lone(found.members)
    number = 1
    while at != len(text):
        number += 1
        members, at = decoder.raw_decode(text, at)
        yield _of_sequence(members, number)
        at = _skip(text, at)


def _whole(value: Any, found: _Found) -> Any:
    """A value of which every text can be written; what is in objects has come here before."""
    if type(value) is str and _HALF.search(value):
        found.halves += 1
        return _HALF.sub("\ufffd", value)
    if type(value) is list:
        return [_whole(each, found) for each in cast(list[Any], value)]
    return value


def _of_sequence(members: Any, number: int) -> Any:
    """A record of a text sequence as a feature."""
    if not isinstance(members, dict) or cast(_Members, members).get("type") == "FeatureCollection":
        raise Refused(
            f"record {number:,} of the sequence is not a feature; send one collection, or a "
            "feature in each line"
        )
    record = cast(_Members, members)
    if "coordinates" in record or "geometries" in record:
        return {"type": "Feature", "properties": {}, "geometry": record}
    return record


def _lone(members: dict[str, Any]) -> Iterator[Any]:
    match members.get("type"):
        case "FeatureCollection":
            return
        case "Feature":
            yield dict(members)
        case str() as kind if "coordinates" in members or "geometries" in members:
            yield {"type": "Feature", "properties": {}, "geometry": {**members, "type": kind}}
        case kind:
            raise Refused(f"the file is not GeoJSON: its type is {kind!r}")
    for name in _FEATURE | {"coordinates", "geometries"}:
        members.pop(name, None)


def _take(feature: Any, found: _Found) -> None:
    number = len(found.geometries) + 1
    geometry, values = _parts(feature, number, found)
    found.columns.add(values)
    found.geometries.append(None if geometry is None else json.dumps(geometry))


def _parts(
    feature: Any, number: int, found: _Found
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Geometry and properties of a feature; of one that is none, nothing."""
    is_feature = isinstance(feature, dict)
    geometry = cast(_Members | None, feature.get("geometry") if is_feature else ())
    properties = cast(_Members | None, feature.get("properties") if is_feature else ())
    if not all(part is None or type(part) is dict for part in (geometry, properties)):
        found.problems.append(FeatureProblem(feature=number, reason="it is not a GeoJSON feature"))
        return None, {}
    found.foreign.update(feature.keys() - _FEATURE)
    found.foreign.update((geometry or {}).keys() - _GEOMETRY)
    if "crs" in feature or "crs" in (geometry or ()):
        reason = "it has a CRS of its own, beside that of the layer"
        found.problems.append(FeatureProblem(feature=number, reason=reason))
    values: dict[str, Any] = dict(properties or {})
    if feature.get("id") is not None:
        # No property has this name.
        values[_ID] = feature["id"]
    return geometry, values


def _geometries(found: _Found) -> Geometries:
    """The geometries of all features; of one that is none of GeoJSON, None."""
    shapes = np.array(found.geometries, dtype=object)
    geometries = shapely.from_geojson(shapes, on_invalid="ignore")
    for place in np.flatnonzero(shapely.is_missing(geometries) & (shapes != None)):  # noqa: E711
        # GEOS takes no position with more than three ordinates.
        cut = json.dumps(_cut(json.loads(shapes[place])))
        geometries[place] = shapely.from_geojson(cut, on_invalid="ignore")
        if geometries[place] is not None:
            found.measured += 1
            continue
        reason = "its geometry is not one of GeoJSON"
        found.problems.append(FeatureProblem(feature=int(place) + 1, reason=reason))
    return geometries


def _layer(found: _Found, geometries: Geometries) -> Layer:
    fields: list[SourceField] = []
    values: list[list[Any]] = []
    notes = list(_notes(found))
    for key, column in found.columns.values.items():
        name = "id" if key == _ID else key
        kind, converted, note = column_of(column)
        fields.append(SourceField(name, kind, all(value is None for value in column)))
        values.append(converted)
        if note is not None:
            notes.append(f"property {name!r}: {note}")
    name = found.members.get("name")
    return Layer(
        name=name if isinstance(name, str) and name else "features",
        crs=_crs(found.members),
        fields=fields,
        chunks=lambda: in_chunks(geometries, fields, values, found.problems),
        bounds=bounds_of(geometries),
        encoding="utf-8 (GeoJSON)",
        notes=notes,
    )


def _notes(found: _Found) -> Iterator[str]:
    if found.foreign:
        names = ", ".join(repr(name) for name, _ in found.foreign.most_common(_LISTED))
        yield f"members of features beside their properties are left out: {names}"
    if others := found.members.keys() - _COLLECTION:
        listed = ", ".join(repr(name) for name in sorted(others)[:_LISTED])
        yield f"members of the collection are left out: {listed}"
    if found.repeated:
        yield f"{found.repeated:,} objects name a member twice; the last one was taken"
    if found.unreal:
        yield f"{found.unreal:,} values are NaN or Infinity, which JSON has not; left empty"
    if found.halves:
        yield f"{found.halves:,} texts hold half a character; it is replaced by U+FFFD"
    if found.measured:
        yield f"{found.measured:,} features have more than three ordinates; those are left out"


def _crs(members: dict[str, Any]) -> str | None:
    if "crs" not in members:
        return _CRS84
    match members["crs"]:
        case {"type": "name", "properties": {"name": str() as name}}:
            return name
        case _:
            return None


def _cut(part: Any) -> Any:
    """A geometry, or a part of one, without what follows the height of a position."""
    if type(part) is dict:
        members = cast(_Members, part)
        cut = {key: _cut(members[key]) for key in members.keys() & _POSITIONS}
        return {**members, **cut}
    values = cast(list[Any], part)
    if type(values) is not list or not values:
        return values
    is_position = type(values[0]) in (int, float)
    return values[:_DIMENSIONS] if is_position else [_cut(each) for each in values]


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _BLANK:
        at += 1
    return at


def _expect(text: str, at: int, wanted: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != wanted:
        raise json.JSONDecodeError(f"expecting {wanted!r}", text, at)
    return _skip(text, at + 1)


def _separated(text: str, at: int, end: str) -> int:
    """Where the next member begins, or `end` stands."""
    at = _skip(text, at)
    if text[at : at + 1] == end:
        return at
    at = _expect(text, at, ",")
    if text[at : at + 1] == end:
        raise json.JSONDecodeError("a comma before the end", text, at)
    return at
