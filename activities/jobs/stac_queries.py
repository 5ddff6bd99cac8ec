"""What a search of the catalogue may ask: times, and filters in CQL2.

Times in filters, as comparisons of moments.

Follows CQL2 (OGC 21-065r2): a property is the moment that it holds, a date is its whole day in UTC.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, cast

import cql2

from activities.jobs import stac_items
from activities.jobs.stac_items import parsed_moment
from adapters.files.footprints import read
from workflows.jobs.datasets import box_geometry, split_box
from workflows.shared.errors import RuleViolation

JsonObject = dict[str, Any]
_Range = tuple[Any, Any]
"""First and last moment: a property, a literal, or None for an open end."""

_OPEN: Final = ("", "..")
_ALL_OF: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {
        "t_after": ("ll > rh",),
        "t_before": ("lh < rl",),
        "t_contains": ("ll < rl", "lh > rh"),
        "t_during": ("ll > rl", "lh < rh"),
        "t_equals": ("ll = rl", "lh = rh"),
        "t_finishedBy": ("ll < rl", "lh = rh"),
        "t_finishes": ("ll > rl", "lh = rh"),
        "t_intersects": ("ll <= rh", "lh >= rl"),
        "t_meets": ("lh = rl",),
        "t_metBy": ("ll = rh",),
        "t_overlappedBy": ("ll > rl", "ll < rh", "lh > rh"),
        "t_overlaps": ("ll < rl", "lh > rl", "lh < rh"),
        "t_startedBy": ("ll = rl", "lh > rh"),
        "t_starts": ("ll = rl", "lh < rh"),
    }
)
"""What is true of the low and the high ends of the left and the right range."""
FUNCTIONS: Final = frozenset({*_ALL_OF, "t_disjoint"})
_TURNED: Final[Mapping[str, str]] = MappingProxyType({"<": ">", ">": "<", "<=": ">=", ">=": "<="})


def utc(text: str) -> datetime:
    """A time of RFC 3339.

    Raises:
        ValueError: It is none, or outside of the years 1 to 9999 in UTC.
    """
    try:
        return parsed_moment(text).astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is, in UTC, beyond the years 1 to 9999") from error


def is_literal(value: object) -> bool:
    """Whether a part of a filter is a time."""
    return isinstance(value, dict) and ("timestamp" in value or "date" in value)


def compared(function: str, arguments: Sequence[Any]) -> JsonObject:
    """A temporal function as comparisons.

    Raises:
        RuleViolation: An argument is not a time, range of times or property.
    """
    if len(arguments) != 2:
        raise RuleViolation(f"filter: {function} compares two times")
    (ll, lh), (rl, rh) = (_range(function, each) for each in arguments)
    ends = {"ll": (ll, -1), "lh": (lh, 1), "rl": (rl, -1), "rh": (rh, 1)}
    if function == "t_disjoint":
        return _joined("or", [_of(ends, "lh < rl"), _of(ends, "ll > rh")])
    return _joined("and", [_of(ends, each) for each in _ALL_OF[function]])


def with_times(operator: str, arguments: Sequence[Any]) -> JsonObject:
    """A comparison that names times, `in` and `between` too, as comparisons of moments.

    Raises:
        RuleViolation: A time is none.
    """
    match operator, arguments:
        case "in", [value, [*members]]:
            return _joined("or", [with_times("=", [value, each]) for each in members])
        case "between", [value, lower, upper]:
            ends = [with_times(">=", [value, lower]), with_times("<=", [value, upper])]
            return _joined("and", ends)
        case _, [left, right] if is_literal(left) and not is_literal(right):
            return with_times(_TURNED.get(operator, operator), [right, left])
        case _, [value, {"date": _} as day]:
            return _with_day(operator, value, cast(JsonObject, day))
        case _:
            checked = [
                _range(operator, each)[0] if is_literal(each) else each for each in arguments
            ]
            return {"op": operator, "args": checked}


def _with_day(operator: str, value: Any, day: JsonObject) -> JsonObject:
    first, last = _range(operator, day)
    match operator:
        case "=":
            return _joined("and", [_pair(">=", value, first), _pair("<=", value, last)])
        case "<>":
            return _joined("or", [_pair("<", value, first), _pair(">", value, last)])
        case "<" | ">=":
            return _pair(operator, value, first)
        case _:
            return _pair(operator, value, last)


def _range(operator: str, value: Any) -> _Range:
    try:
        match value:
            case {"property": str()}:
                return value, value
            case {"timestamp": str(text)}:
                return _literal(utc(text)), _literal(utc(text))
            case {"date": str(text)}:
                return _end(text, first=True), _end(text, first=False)
            case {"interval": [first, last]}:
                return _end(first, first=True), _end(last, first=False)
            case _:
                pass
    except ValueError as error:
        raise RuleViolation(f"filter: {error}") from error
    raise RuleViolation(
        f"filter: {operator} compares TIMESTAMP('...'), DATE('...'), INTERVAL('...', '...') and "
        "properties"
    )


def _end(value: Any, *, first: bool) -> Any:
    """An end of an interval or a day."""
    match value:
        case {"property": str()}:
            return cast(JsonObject, value)
        case str() if value in _OPEN:
            return None
        case str() if len(value) == len("2024-05-01"):
            time = "T00:00:00Z" if first else "T23:59:59.999999Z"
            return _literal(utc(f"{value}{time}"))
        case str():
            return _literal(utc(value))
        case _:
            raise ValueError(f"{str(value)[:100]!r} is not an end of an interval")


def _literal(at: datetime) -> JsonObject:
    return {"timestamp": stac_items.moment(at)}


def _of(ends: Mapping[str, tuple[Any, int]], rule: str) -> Any:
    """One comparison of ends; those that are open lie before or after all others."""
    one, operator, other = rule.split()
    (left, left_side), (right, right_side) = ends[one], ends[other]
    if left is not None and right is not None:
        return _pair(operator, left, right)
    left_rank = left_side if left is None else 0
    right_rank = right_side if right is None else 0
    if operator.startswith("<"):
        return left_rank < right_rank
    if operator.startswith(">"):
        return left_rank > right_rank
    return False


def _pair(operator: str, left: Any, right: Any) -> JsonObject:
    if "property" in right and "property" not in left:
        return {"op": _TURNED.get(operator, operator), "args": [right, left]}
    return {"op": operator, "args": [left, right]}


def _joined(operator: str, parts: Sequence[Any]) -> JsonObject:
    """Parts joined by `and` or `or`, where booleans among them decide what they can."""
    decides = operator == "or"
    left = [part for part in parts if not isinstance(part, bool)]
    is_decided = any(part is decides for part in parts)
    if is_decided or not left:
        is_true = decides if is_decided else not decides
        # Booleans joined with others are none of the grammar.
        return {"op": "=" if is_true else "<>", "args": [{"property": "id"}] * 2}
    return left[0] if len(left) == 1 else {"op": operator, "args": left}


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
        *FUNCTIONS,
    }
)
"""What filters may use."""
FILTER_BYTES: Final = 20_000
LIMIT: Final = 1_000
"""Items of a page at the most; a larger number counts as this."""
_DEPTH: Final = 30
_PREFIXES: Final = re.compile(rf"(?:(?:not|[-+])\s*){{{_DEPTH + 1}}}", re.IGNORECASE)
"""The parser recurses for each sign and each `not`: thousands would overflow its stack, and end
the process."""
_PROPERTY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_:.-]{0,199}")
_GEOMETRIES: Final = (
    *("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon"),
    "GeometryCollection",
)
_COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "in", "between", "like"})

Interval = tuple[datetime | None, datetime | None]


def interval(text: str) -> Interval:
    """First and last moment of a search; None: open.

    Raises:
        RuleViolation: It is neither a time of RFC 3339 nor two of them, `..` for an open end.
    """
    first, slash, last = text.partition("/")
    try:
        if not slash:
            return utc(first), utc(first)
        begins = None if first in _OPEN else utc(first)
        ends = None if last in _OPEN else utc(last)
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
    """A filter as the catalogue decides it: its boxes as polygons, its times as comparisons.

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
    if operator in FUNCTIONS:
        return compared(operator, arguments)
    if operator in _COMPARISONS and _names_times(arguments):
        return with_times(operator, arguments)
    return {**found, "args": arguments}


def _names_times(arguments: Sequence[Any]) -> bool:
    match arguments:
        case [value, [*members]]:
            return any(is_literal(each) for each in (value, *members))
        case _:
            return any(is_literal(each) for each in arguments)


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


def order_of_text(text: str) -> Sequence[tuple[str, bool]]:
    """`+datetime,-id` as names and whether each falls; an address turns a plus into a blank."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [(part.lstrip("+-").strip(), part.startswith("-")) for part in parts]
