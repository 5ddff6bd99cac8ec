"""The catalogue of spatial data: STAC collections and items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CatalogueQuery:
    """A search; what is None does not restrict it."""

    collections: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    bbox: tuple[float, float, float, float] | None = None
    """West, south, east, north in degrees; west above east crosses the antimeridian."""
    intersects: JsonObject | None = None
    """A GeoJSON geometry."""
    datetime: str | None = None
    """An instant or `start/end`, with `..` for an open end (RFC 3339)."""
    filter: JsonObject | None = None
    """CQL2 as JSON."""
    sort: Sequence[tuple[str, bool]] = ()
    """Properties, or `id` and `collection`, and whether each falls; none: the newest first.

    What lacks a property comes last, and first where it falls.
    """
    limit: int = 10
    token: str | None = None
    """Of the page before or after, as a result gave it."""


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """Some of the items that a search finds."""

    items: Sequence[JsonObject]
    next: str | None = None
    previous: str | None = None
    matched: int | None = None
    """All that it finds; None: not counted."""


class Catalogue(Protocol):
    """STAC collections and items, searchable once written.

    Every method raises `Unavailable` when the store does not answer.
    """

    async def put_collection(self, collection: JsonObject) -> None:
        """Create or replace a collection.

        Raises:
            InvalidDocument: It is not a valid STAC collection.
        """
        ...

    async def put_items(self, collection: str, items: Sequence[JsonObject]) -> None:
        """Create or replace items, all or none; another datetime leaves one item of an id.

        Raises:
            InvalidDocument: One is not valid; none is written.
        """
        ...

    async def delete_item(self, collection: str, item: str) -> bool:
        """Delete an item; False when there was none."""
        ...

    async def collections(self) -> Sequence[JsonObject]:
        """All collections, by id."""
        ...

    async def collection(self, id: str) -> JsonObject | None:
        """One collection; None: there is none."""
        ...

    async def item(self, collection: str, id: str) -> JsonObject | None:
        """One item; None: there is none."""
        ...

    async def search(self, query: CatalogueQuery) -> CataloguePage:
        """A page of items in the order that is asked for, with how many are found.

        Raises:
            RuleViolation: The filter or the token is not valid.
        """
        ...
