"""What both stores check before they write or search."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.ports.catalogue import CatalogueQuery
from domain.errors import InvalidDocument, RuleViolation
from domain.jobs.stac.extents import box_geometry, split_box
from domain.jobs.stac.queries import LIMIT, checked_geometry

_PROPERTY: Final = re.compile(r"[A-Za-z_][\w:.-]{0,99}")

JsonObject = Mapping[str, Any]


async def check_items(collection: JsonObject, items: Sequence[JsonObject]) -> None:
    """Check items, in a thread: each takes milliseconds.

    Raises:
        InvalidDocument: One is not valid, or two have the same id.
    """
    ids = [str(item.get("id")) for item in items]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InvalidDocument(f"item {twice!r} is given twice")

    def check() -> None:
        # Loaded with the first item: it takes half a second.
        from domain.jobs.stac.validation import check_item

        for item in items:
            check_item(item, collection)

    await asyncio.to_thread(check)


async def check_collection(collection: JsonObject) -> None:
    """Check a collection, in a thread.

    Raises:
        InvalidDocument: It is not valid.
    """

    def check() -> None:
        from domain.jobs.stac import validation

        validation.check_collection(collection)

    await asyncio.to_thread(check)


def no_collection(id: str) -> InvalidDocument:
    """What is raised for items of a collection that is not there."""
    return InvalidDocument(f"there is no collection {id!r}; put it first")


def area_of(query: CatalogueQuery) -> dict[str, Any] | None:
    """The geometry that items have to meet; None: any.

    Raises:
        RuleViolation: The box or the geometry is not valid, or both are given.
    """
    if query.bbox is not None and query.intersects is not None:
        raise RuleViolation("bbox and intersects exclude each other")
    if query.intersects is not None:
        return checked_geometry(query.intersects)
    return None if query.bbox is None else box_geometry(split_box(query.bbox))


def sort_of(query: CatalogueQuery) -> Sequence[tuple[str, bool]]:
    """The order of items: names without `properties.` before them.

    Raises:
        RuleViolation: A name is none of a property, or stands there twice.
    """
    names = [name.removeprefix("properties.") for name, _ in query.sort]
    for name in names:
        if not _PROPERTY.fullmatch(name):
            raise RuleViolation(f"sortby: {name[:100]!r} is not a property")
        if names.count(name) > 1:
            raise RuleViolation(f"sortby: {name!r} is given twice")
        if name in ("geometry", "bbox", "assets", "links"):
            raise RuleViolation(f"sortby: {name} has no order")
    return [(name, falls) for name, (_, falls) in zip(names, query.sort, strict=True)]


def limit_of(query: CatalogueQuery) -> int:
    """Items of a page.

    Raises:
        RuleViolation: Fewer than one are asked for.
    """
    if query.limit < 1:
        raise RuleViolation("limit: 1 is the least")
    return min(query.limit, LIMIT)
