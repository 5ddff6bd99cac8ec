"""What a search may ask: intervals of time, and filters in CQL2."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

import cql2

from domain.errors import RuleViolation
from domain.jobs.stac import moments
from domain.jobs.stac.extents import box_geometry, split_box
from domain.jobs.stac.footprints import read

OPERATORS: Final = frozenset(
    {
        *("and", "or", "not", "=", "<>", "<", "<=", ">", ">=", "isNull"),
        *("like", "between", "in", "casei"),
        *(
            f"s_{name}"
            for name in (
                *("contains", "crosses", "disjoint", "equals"),
                *("intersects", "overlaps", "touches", "within"),
            )
        ),
        *moments.FUNCTIONS,
    }
)
"""What every store understands alike."""
FILTER_BYTES: Final = 20_000
LIMIT: Final = 1_000
"""Items of a page at the most; a larger number counts as this."""
_DEPTH: Final = 30
_PREFIXES: Final = re.compile(rf"(?:(?:not|[-+])\s*){{{_DEPTH + 1}}}", re.IGNORECASE)
"""The parser recurses for each sign and each `not`: thousands would overflow its stack, and end
the process."""
_PROPERTY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]{0,199}")
_OPEN: Final = ("", "..")
_GEOMETRIES: Final = (
    *("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"),
    "GeometryCollection",
)
_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "in", "between", "like"})
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")

JsonObject = dict[str, Any]
Interval = tuple[datetime | None, datetime | None]


def interval(text: str) -> Interval:
    """First and last moment of a search; None: open.

    Raises:
        RuleViolation: It is neither a time of RFC 3339 nor two of them, `..` for an open end.
    """
    first, slash, last = text.partition("/")
    try:
        if not slash:
            return moments.utc(first), moments.utc(first)
        begins = None if first in _OPEN else moments.utc(first)
        ends = None if last in _OPEN else moments.utc(last)
    except ValueError as error:
        raise RuleViolation(f"datetime: {error}") from error
    if begins is None and ends is None:
        raise RuleViolation("datetime: one end of the interval has to be given")
    if begins is not None and ends is not None and begins > ends:
        raise RuleViolation("datetime: the interval ends before it begins")
    return begins, ends


def filter_of_text(text: str) -> JsonObject:
    """CQL2 as JSON from its text.

    Raises:
        RuleViolation: It is not CQL2; the message shows where.
    """
    if len(text.encode()) > FILTER_BYTES:
        raise RuleViolation(f"filter: {FILTER_BYTES} bytes are the most")
    if text.count("(") > _DEPTH:
        raise RuleViolation(f"filter: {_DEPTH} parentheses are the most")
    if _PREFIXES.search(text):
        raise RuleViolation(f"filter: {_DEPTH} signs or `not` in a row are the most")
    try:
        return cql2.parse_text(text).to_json()
    except cql2.ParseError as error:
        raise RuleViolation(f"filter is not CQL2: {' '.join(str(error).split())}") from error


def checked_filter(value: Mapping[str, Any]) -> JsonObject:
    """A filter that every store understands: its boxes as polygons, its times as comparisons.

    Raises:
        RuleViolation: It is not CQL2, or uses what is not supported.
    """
    text = _text(value)
    made: JsonObject = _checked(json.loads(text), 0)
    try:
        cql2.parse_json(json.dumps(made)).validate()
    except (cql2.ParseError, cql2.ValidationError) as error:
        raise RuleViolation(f"filter is not CQL2: {' '.join(str(error).split())[:500]}") from error
    return made


def checked_geometry(value: Mapping[str, Any]) -> JsonObject:
    """A geometry to search by.

    Raises:
        RuleViolation: It is not a GeoJSON geometry.
    """
    _text(value)
    if value.get("type") not in _GEOMETRIES:
        raise RuleViolation(f"intersects: the type is none of {', '.join(_GEOMETRIES)}")
    try:
        read(value)
    except ValueError as error:
        raise RuleViolation(f"intersects: {error}") from error
    return dict(value)


def _text(value: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RuleViolation(f"it is not strict JSON: {error}") from error
    if len(text) > FILTER_BYTES:
        raise RuleViolation(f"filters and geometries have {FILTER_BYTES} bytes at the most")
    return text


def _checked(value: Any, depth: int) -> Any:
    if depth > _DEPTH:
        raise RuleViolation(f"filter: it is nested more than {_DEPTH} deep")
    if isinstance(value, list):
        return [_checked(part, depth + 1) for part in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    found = cast(JsonObject, value)
    if "bbox" in found and "op" not in found:
        return box_geometry(split_box(_box(found["bbox"])))
    if "property" in found:
        _check_property(found["property"])
        # It is the first moment of every item, as `datetime` is.
        if found["property"] in ("start_datetime", "properties.start_datetime"):
            return {"property": "datetime"}
    if isinstance(ends := found.get("interval"), list):
        return {"interval": _checked(ends, depth + 1)}
    if "op" not in found:
        return found
    operator, arguments = found["op"], _arguments(found, depth)
    if operator in moments.FUNCTIONS:
        return moments.compared(operator, arguments)
    if operator in _COMPARISONS and _names_times(arguments):
        return moments.with_times(operator, arguments)
    return {**found, "args": arguments}


def _names_times(arguments: Sequence[Any]) -> bool:
    match arguments:
        case [value, [*members]]:
            return any(moments.is_literal(each) for each in (value, *members))
        case _:
            return any(moments.is_literal(each) for each in arguments)


def _arguments(found: JsonObject, depth: int) -> list[Any]:
    operator, arguments = found["op"], found.get("args")
    if operator not in OPERATORS:
        known = ", ".join(sorted(OPERATORS))
        raise RuleViolation(f"filter: {operator!r} is not supported; supported are: {known}")
    if not isinstance(arguments, list):
        raise RuleViolation(f"filter: {operator!r} needs a list of arguments")
    if operator == "between":
        arguments = _flat(cast(list[Any], arguments))
    checked: list[Any] = _checked(arguments, depth)
    if operator.startswith("s_"):
        _check_spatial(operator, checked)
    elif operator in _COMPARISONS and {"property": "geometry"} in checked:
        raise RuleViolation("filter: `geometry` is compared by spatial functions alone")
    return checked


def _flat(arguments: list[Any]) -> list[Any]:
    """The bounds of `between` beside its value, also where they come as a list, as in drafts."""
    match arguments:
        case [value, [lower, upper]]:
            return [value, lower, upper]
        case _:
            return arguments


def _check_spatial(operator: str, arguments: Sequence[Any]) -> None:
    match arguments:
        case [{"property": "geometry"}, {"type": str()} as geometry]:
            try:
                read(cast(JsonObject, geometry))
            except ValueError as error:
                raise RuleViolation(f"filter: {operator}: {error}") from error
        case _:
            raise RuleViolation(f"filter: {operator} compares `geometry` with a geometry or a box")


def _check_property(name: object) -> None:
    if not isinstance(name, str) or not _PROPERTY.fullmatch(name):
        raise RuleViolation(f"filter: {name!r} is not the name of a property")


def _box(value: Any) -> Sequence[float]:
    match value:
        case [int() | float(), int() | float(), int() | float(), int() | float()]:
            return cast(Sequence[float], value)
        case _:
            raise RuleViolation("filter: a bbox has four numbers")


def whole_days(text: str) -> str:
    """Dates in an interval as their first and last moments: `2024-05-01` is the whole of that day.

    What is not a date stays as it is.
    """
    first, slash, last = text.partition("/")
    if not slash:
        last = first
    begins = f"{first}T00:00:00Z" if _DATE.fullmatch(first) else first
    ends = f"{last}T23:59:59.999999Z" if _DATE.fullmatch(last) else last
    return begins if begins == ends else f"{begins}/{ends}"


def order_of_text(text: str) -> Sequence[tuple[str, bool]]:
    """`+datetime,-id` as names and whether each falls; an address turns a plus into a blank."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [(part.lstrip("+-").strip(), part.startswith("-")) for part in parts]
