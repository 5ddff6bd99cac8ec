"""Whether an item or a collection may enter the catalogue."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, Literal, cast

import shapely
from jsonschema import Draft7Validator
from pystac.validation.local_validator import get_local_schema_cache
from referencing import Registry, Resource

from contracts.jobs.stac import COLLECTION_ID, ITEM_ID, GridFacts
from domain.errors import InvalidDocument
from domain.jobs.stac.extensions import extension_problems
from domain.jobs.stac.footprints import bounds, check_footprint, read
from domain.jobs.stac.items import ITEM_IDS

ITEM_BYTES: Final = 1_000_000
"""An item that is longer is refused."""
_PROBLEMS: Final = 5
"""How many of the problems a message names."""
_DEGREE: Final = 1e-6
"""Two bounds that differ by less are the same: a tenth of a metre."""
_WIDEST: Final = 180.0
"""Degrees between neighbouring points; where there are more, a line took the wrong way round."""

JsonObject = Mapping[str, Any]


def check_item(item: JsonObject, collection: JsonObject) -> None:
    """Check one item.

    Its JSON is strict and follows the schema of STAC 1.1, its geometry is valid, its bounds are
    those of the geometry, its footprint is that of the raster where it says which one, its id
    follows the pattern that its collection declares, it has a time, and fields of extensions hold
    what these allow and are declared.

    Raises:
        InvalidDocument: Something is wrong; the message names it.
    """
    _strict(item, "the item")
    problems = [*_by_schema("item", _with_short_geometry(item))] or [
        *_identity(item, collection),
        *_geometry(item),
        *_times(item["properties"]),
        *extension_problems(item),
    ]
    if problems:
        raise InvalidDocument(f"item {item.get('id')!r}: {_joined(problems)}")


def check_collection(collection: JsonObject) -> None:
    """Check a collection: strict JSON, the schema of STAC 1.1, its id and pattern.

    Raises:
        InvalidDocument: Something is wrong; the message names it.
    """
    _strict(collection, "the collection")
    problems = [*_by_schema("collection", collection)]
    id = str(collection.get("id"))
    if not re.fullmatch(COLLECTION_ID, id):
        problems.append(f"id: it has to match {COLLECTION_ID}")
    pattern = collection.get(ITEM_IDS, ITEM_ID)
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        problems.append(f"{ITEM_IDS}: it is not a pattern: {error}")
    if problems:
        raise InvalidDocument(f"collection {id!r}: {_joined(problems)}")


def moment(text: str) -> datetime:
    """A time of RFC 3339.

    Raises:
        ValueError: It is none, or has no offset.
    """
    if not _RFC_3339.fullmatch(text):
        raise ValueError(f"{text!r} is not a time of RFC 3339, as 2024-05-01T12:00:00Z")
    return datetime.fromisoformat(text.upper().replace("Z", "+00:00"))


_RFC_3339: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})"
)


def _strict(value: JsonObject, what: str) -> None:
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidDocument(f"{what} cannot be strict JSON: {error}") from error
    if size > ITEM_BYTES:
        raise InvalidDocument(f"{what} has {size} bytes of JSON; {ITEM_BYTES} is the most")


def _with_short_geometry(item: JsonObject) -> JsonObject:
    """The schema looks at each point, for milliseconds; reading the geometry checks the same."""
    geometry = item.get("geometry")
    if not isinstance(geometry, Mapping):
        return item
    try:
        read(cast(JsonObject, geometry))
    except ValueError:
        return item
    return {**item, "geometry": {"type": "Point", "coordinates": [0.0, 0.0]}}


def _by_schema(kind: Literal["item", "collection"], value: JsonObject) -> Iterator[str]:
    errors = sorted(_validator(kind).iter_errors(value), key=lambda error: str(error.path))
    for error in errors:
        # What an `allOf` or `anyOf` failed for stands in its parts.
        for part in error.context or [error]:
            path = ".".join(map(str, part.absolute_path)) or "the whole"
            yield f"{path}: {part.message[:300]}"


@cache
def _validator(kind: Literal["item", "collection"]) -> Any:
    """Made once; it needs no network."""
    schemas = get_local_schema_cache()
    resources = [(uri, Resource.from_contents(schema)) for uri, schema in schemas.items()]
    registry: Any = cast(Any, Registry)().with_resources(resources)
    uri = next(uri for uri in schemas if uri.endswith(f"/{kind}.json") and "stacspec" in uri)
    return Draft7Validator(schemas[uri], registry=registry)


def _identity(item: JsonObject, collection: JsonObject) -> Iterator[str]:
    if item.get("collection") != collection["id"]:
        yield f"collection: {item.get('collection')!r} is not {collection['id']!r}"
    pattern = collection.get(ITEM_IDS, ITEM_ID)
    for each in dict.fromkeys((ITEM_ID, pattern)):
        if not re.fullmatch(each, item["id"]):
            yield f"id: ids of this collection match {each}"


def _geometry(item: JsonObject) -> Iterator[str]:
    geometry = item["geometry"]
    if geometry is None:
        yield "geometry: an item without a place cannot be found"
        return
    try:
        shape = read(geometry)
    except ValueError as error:
        yield f"geometry: {error}"
        return
    if not shape.is_valid:
        yield f"geometry: {shapely.is_valid_reason(shape)}"
        return
    west, south, east, north = shape.bounds
    if west < -180 or east > 180 or south < -90 or north > 90:
        yield f"geometry: {west:g} {south:g} {east:g} {north:g} is not within the Earth's degrees"
    elif _leaps(shape):
        yield "geometry: a line spans more than 180 degrees; cut it at the antimeridian"
    else:
        yield from _bounds(item["bbox"], geometry)
        yield from _header(item["properties"], geometry)


def _leaps(shape: Any) -> bool:
    """Whether neighbouring points are far apart in longitude, but along a parallel at a pole."""
    lines = shapely.get_parts(shapely.get_rings(shape)) if shape.area else [shape]
    for line in lines:
        points = shapely.get_coordinates(line)
        steps = abs(points[1:, 0] - points[:-1, 0])
        level = points[1:, 1] == points[:-1, 1]
        if bool(((steps > _WIDEST) & ~level).any()):
            return True
    return False


def _bounds(bbox: Sequence[float], geometry: JsonObject) -> Iterator[str]:
    box = [bbox[0], bbox[1], bbox[3], bbox[4]] if len(bbox) == 6 else bbox
    expected = bounds(geometry)
    if any(abs(a - b) > _DEGREE for a, b in zip(box, expected, strict=True)):
        shown = ", ".join(f"{value:g}" for value in expected)
        yield f"bbox: {list(bbox)} is not that of the geometry, [{shown}]"


def _header(properties: JsonObject, geometry: JsonObject) -> Iterator[str]:
    shape, transform = properties.get("proj:shape"), properties.get("proj:transform")
    code, wkt2 = properties.get("proj:code"), properties.get("proj:wkt2")
    if not shape or not transform or not (code or wkt2):
        return
    try:
        grid = GridFacts(code=code, wkt2=wkt2, shape=shape, transform=tuple(transform[:6]))
        check_footprint(geometry, grid)
    except InvalidDocument as error:
        yield f"geometry: {error}"
    except ValueError as error:
        yield f"properties: the grid is not usable: {error}"


def _times(properties: JsonObject) -> Iterator[str]:
    found: dict[str, datetime] = {}
    for name in ("datetime", "start_datetime", "end_datetime", "created", "updated"):
        if (value := properties.get(name)) is None:
            continue
        try:
            found[name] = moment(value)
        except (TypeError, ValueError) as error:
            yield f"{name}: {error}"
    start, end = found.get("start_datetime"), found.get("end_datetime")
    if start is not None and end is not None and start > end:
        yield "start_datetime: it is after end_datetime"


def _joined(problems: Sequence[str]) -> str:
    shown = "; ".join(problems[:_PROBLEMS])
    more = len(problems) - _PROBLEMS
    return f"{shown}; and {more} more" if more > 0 else shown
