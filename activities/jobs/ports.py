"""What jobs ask of their tables and of receivers of webhooks, and what a search is asked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workflows.jobs.records import (
    TaskRecord,
    WebhookAttempt,
    WebhookOrder,
)
from workflows.jobs.vectors import LoadMode, LoadReport, VectorTable


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks of a job."""

    tasks: Sequence[TaskRecord]
    next: str | None = None
    """Token of the page after it."""


@dataclass(frozen=True, slots=True)
class JobAlias:
    """The id that a foreign system gave to a job."""

    alias: str
    digest: str
    """Of the message that brought it, without secrets."""
    job_id: str


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """What is posted to one receiver."""

    url: str
    id: str
    """The same for every attempt."""
    body: bytes
    timeout: float
    """Seconds for all of one attempt."""
    secrets: Sequence[bytes] = field(default=(), repr=False)
    """Each signs it; none: it is not signed."""


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """What became of one attempt to post a message; nothing that a receiver does is an error."""

    status: int | None = None
    """Of HTTP; None: there was no answer."""
    retry_after: float | None = None
    """Seconds that the receiver asks to be left alone."""
    problem: str | None = None
    """Why the message was not accepted; None: it was."""
    refused: bool = False
    """docflow sends nothing to this address: nothing was sent."""


class Webhooks(Protocol):
    """Posts messages."""

    async def post(self, message: WebhookMessage) -> WebhookAnswer:
        """Post one message, once."""
        ...


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """An entry of the log: one attempt to deliver one message."""

    order: WebhookOrder
    sent_at: datetime
    seconds: float
    """That the attempt took."""
    attempt: WebhookAttempt


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


@dataclass(frozen=True, slots=True)
class FeatureLoad:
    """Features to be loaded."""

    key: str
    """Names the load: one that has been done is not done again."""
    table: VectorTable
    mode: LoadMode
    upsert_by: Sequence[str]
    """Columns, for the mode `upsert`."""
    features: Path
    """Parquet: the columns of the table, and `geom` as well-known binary in EPSG:4326."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table that exists."""

    table: VectorTable
    rows: int
    extent: tuple[float, float, float, float] | None
    """West, south, east, north; None: no row has a geometry."""


class Features(Protocol):
    """Tables of features in EPSG:4326; readers see a load whole or not at all.

    Every method raises `Unavailable` when the store does not answer.
    """

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none.

        Raises:
            RuleViolation: The mode does not fit: the table exists or not, its schema differs, or
                key columns are missing, empty or not unique.
        """
        ...

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        ...

    def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows, in the order of `fid`, some thousand at a time.

        Yields:
            Rows: `fid`, the columns of the table, and the geometry as well-known binary or None.

        Raises:
            RuleViolation: There is no such table.
        """
        ...
