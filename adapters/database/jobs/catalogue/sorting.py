"""Items in an order that is asked for, where the database has no index for it."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.ports.catalogue import CataloguePage
from domain.errors import RuleViolation

SORTED: Final = 10_000
"""Items that are put in order at most."""

JsonObject = Mapping[str, Any]


def sorted_page(
    items: Sequence[JsonObject],
    order: Sequence[tuple[str, bool]],
    limit: int,
    token: str | None,
) -> CataloguePage:
    """A page of items.

    Args:
        items: All that are found.
        order: Properties, and whether each falls.
        limit: Items of the page.
        token: Of the page.

    Raises:
        RuleViolation: There are too many, or the token is not one of a page.
    """
    if len(items) > SORTED:
        raise RuleViolation(
            f"sortby: more than {SORTED:,} items are found; narrow the search, or sort on "
            "PostgreSQL"
        )
    begin = 0 if token is None else _begin_of(token)
    ordered = sorted(items, key=lambda item: (item["collection"], item["id"]))
    for name, falls in reversed(order):
        having = [item for item in ordered if _value(item, name) is not None]
        lacking = [item for item in ordered if _value(item, name) is None]
        having.sort(key=lambda item: _comparable(_value(item, name)), reverse=falls)
        # As PostgreSQL does: what lacks a property stands above all values.
        ordered = [*lacking, *having] if falls else [*having, *lacking]
    end = begin + limit
    return CataloguePage(
        items=ordered[begin:end],
        next=_token(end) if end < len(ordered) else None,
        previous=_token(max(begin - limit, 0)) if begin else None,
        matched=len(ordered),
    )


def _value(item: JsonObject, name: str) -> Any:
    if name in ("id", "collection"):
        return item[name]
    properties = item["properties"]
    if name == "datetime":
        # A range is ordered by its first moment, as searches see it.
        return properties.get("start_datetime") or properties.get("datetime")
    return properties.get(name)


def _comparable(value: Any) -> tuple[int, Any]:
    """Numbers come before texts, and texts before what has no order of its own."""
    match value:
        case bool():
            return 0, int(value)
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case _:
            return 2, str(value)


def _token(begin: int) -> str:
    return base64.urlsafe_b64encode(f"sorted:{begin}".encode()).decode().rstrip("=")


def _begin_of(token: str) -> int:
    try:
        kind, _, begin = (
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().partition(":")
        )
        if kind == "sorted" and begin.isdecimal():
            return int(begin)
    except (ValueError, binascii.Error) as error:
        raise RuleViolation(f"the token {token[:100]!r} is not one of a page") from error
    raise RuleViolation(f"the token {token[:100]!r} is not one of a page")
