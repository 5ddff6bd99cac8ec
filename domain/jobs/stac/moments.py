"""Times in filters, as comparisons of moments that every store makes alike.

Follows CQL2 (OGC 21-065r2): a property is the moment that it holds, a date is its whole day in UTC.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, cast

from domain.errors import RuleViolation
from domain.jobs.stac import items
from domain.jobs.stac.validation import moment

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
        return moment(text).astimezone(UTC)
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
    """A comparison that names times, `in` and `between` too, so that each store understands it.

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
    return {"timestamp": items.moment(at)}


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
        # pgstac takes a boolean for a text where it is joined with others.
        return {"op": "=" if is_true else "<>", "args": [{"property": "id"}] * 2}
    return left[0] if len(left) == 1 else {"op": operator, "args": left}
