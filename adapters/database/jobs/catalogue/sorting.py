"""Items in an order that is asked for, where the database has no index for it."""

import base64
import binascii
import json
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
    """A page of items, with ties by collection and id.

    A token names the item at which a page ends, so that items that come meanwhile move no other
    from one page to the next.

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
            f"sortby: more than {SORTED:,} items are found, too many for this order; narrow the "
            "search"
        )
    ordered = sorted(items, key=lambda item: (item["collection"], item["id"]))
    for name, falls in reversed(order):
        having = [item for item in ordered if _value(item, name) is not None]
        lacking = [item for item in ordered if _value(item, name) is None]
        having.sort(key=lambda item: _comparable(_value(item, name)), reverse=falls)
        # As PostgreSQL does: what lacks a property stands above all values.
        ordered = [*lacking, *having] if falls else [*having, *lacking]
    begin, end = _span(ordered, limit, token)
    page = ordered[begin:end]
    return CataloguePage(
        items=page,
        next=_token("next", page[-1]) if page and end < len(ordered) else None,
        previous=_token("prev", page[0]) if page and begin else None,
        matched=len(ordered),
    )


def _span(ordered: Sequence[JsonObject], limit: int, token: str | None) -> tuple[int, int]:
    """Where a page begins and ends among all items."""
    if token is None:
        return 0, limit
    direction, *place = _read(token)
    for at, item in enumerate(ordered):
        if [item["collection"], item["id"]] == place:
            return (at + 1, at + 1 + limit) if direction == "next" else (max(at - limit, 0), at)
    raise RuleViolation(
        "the token names an item that is no longer found: begin with the first page again"
    )


def _value(item: JsonObject, name: str) -> Any:
    if name in ("id", "collection"):
        return item[name]
    properties = item["properties"]
    if name in ("datetime", "start_datetime"):
        # A range is ordered by its first moment, as searches see it.
        return properties.get("start_datetime") or properties.get("datetime")
    if name == "end_datetime":
        return properties.get("end_datetime") or properties.get("datetime")
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


def _token(direction: str, item: JsonObject) -> str:
    known = json.dumps([direction, item["collection"], item["id"]]).encode()
    return base64.urlsafe_b64encode(known).decode().rstrip("=")


def _read(token: str) -> Sequence[str]:
    try:
        known = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (ValueError, binascii.Error) as error:
        raise RuleViolation(f"the token {token[:100]!r} is not one of a page") from error
    match known:
        case ["next" | "prev" as direction, str() as collection, str() as id]:
            return direction, collection, id
        case _:
            raise RuleViolation(f"the token {token[:100]!r} is not one of a page")
