"""What jobs ask of their tables, of the catalogue and of receivers of webhooks.

Records of jobs and tasks: a projection that people read, and that decides nothing.

Webhooks of jobs: posting messages, keeping secrets, the log of deliveries.

The catalogue of spatial data: STAC collections and items.

Tables of features: vector data ready for analysis.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workflows.jobs.records import (
    JobRecord,
    JobStatus,
    TaskRecord,
    TaskStatus,
    WebhookAttempt,
    WebhookOrder,
)
from workflows.jobs.vectors import LoadMode, LoadReport, VectorTable
from workflows.jobs.webhooks import Circuit


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of the tasks of a job."""

    tasks: Sequence[TaskRecord]
    next: str | None = None
    """Token of the page after it."""


class JobStore(Protocol):
    """Tables `jobs` and `tasks` (schema `app` on PostgreSQL).

    Writes are upserts, so that each may be repeated. Every method raises `Unavailable` when the
    database does not answer.
    """

    async def put_job(self, record: JobRecord) -> None:
        """Insert or replace the record of a job; an older attempt never replaces a newer one."""
        ...

    async def put_tasks(self, tasks: Sequence[TaskRecord], /) -> None:
        """Insert or replace records of tasks; key: (job, attempt, stage, ordinal)."""
        ...

    async def cancel_tasks(self, job_id: str, attempt: int, stage: int | None = None) -> None:
        """Show tasks that have not ended as cancelled; those of a stage, or of all."""
        ...

    async def job(self, job_id: str) -> JobRecord | None:
        """One job; None: there is none."""
        ...

    async def find(self, prefix_or_alias: str) -> Sequence[JobRecord]:
        """Jobs whose id begins so (8 hex digits and more), or whose alias it is; at most 10."""
        ...

    async def jobs(
        self,
        *,
        limit: int,
        status: JobStatus | None = None,
        job_type: str | None = None,
        project: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[JobRecord]:
        """Jobs, the newest change first.

        Args:
            limit: At most so many.
            status: Only those in it.
            job_type: Only those of this type.
            project: Only those of this project.
            before: Only those that changed earlier, UTC.
            behind: Id of the last job of a page, which changed at `before`: those of that very
                moment that come behind it as well.
        """
        ...

    async def tasks(
        self,
        job_id: str,
        *,
        attempt: int | None = None,
        stage: int | None = None,
        status: TaskStatus | None = None,
        limit: int = 100,
        token: str | None = None,
    ) -> TaskPage:
        """Tasks of a job's attempt, by stage and ordinal; None: the newest and what it kept.

        Raises:
            RuleViolation: The token is not one that this method has given.
        """
        ...

    async def counts(self, job_id: str, attempt: int) -> Mapping[int, Mapping[TaskStatus, int]]:
        """Stage to how many of its tasks are in which state, at an attempt and as it kept them."""
        ...


@dataclass(frozen=True, slots=True)
class JobAlias:
    """The id that a foreign system gave to a job."""

    alias: str
    digest: str
    """Of the message that brought it, without secrets."""
    job_id: str


class JobAliases(Protocol):
    """Aliases of jobs; every method raises `Unavailable` when the database does not answer."""

    async def get(self, alias: str) -> JobAlias | None:
        """What is kept of a foreign id; None: nothing."""
        ...

    async def claim(self, alias: JobAlias) -> JobAlias:
        """Keep an alias, unless it is taken; what is kept."""
        ...

    async def move(self, alias: JobAlias) -> None:
        """Let an alias name another job: the one that it named was never started."""
        ...

    async def release(self, alias: JobAlias) -> None:
        """Forget an alias whose job will never be started; one that has changed stays."""
        ...


class JobLeftovers(Protocol):
    """Rows of jobs that ended long ago; every method raises `Unavailable` without the database."""

    async def expired(self, before: datetime, limit: int) -> Sequence[str]:
        """Ids of jobs that ended before and of which more than a record is left, oldest first."""
        ...

    async def remove(self, job_id: str, *, keep_record: bool) -> None:
        """Remove tasks and webhooks of a job; its record and aliases too unless they are kept."""
        ...

    async def remove_webhooks(self, before: datetime) -> None:
        """Remove secrets that belong to no job, and the state of hosts nothing was sent to."""
        ...


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


class WebhookSecrets(Protocol):
    """Secrets of receivers, kept under a reference."""

    async def keep(self, job_id: str, secret: str) -> str:
        """Keep a secret that came with a request; its reference.

        Raises:
            Denied: There is no key to keep it under; the message says what to set.
            Unavailable: The database is not available.
        """
        ...

    async def forget(self, reference: str) -> None:
        """Remove a secret that came with a request; one of the settings stays.

        Raises:
            Unavailable: The database is not available.
        """
        ...

    async def is_other(self, job_id: str, secret: str) -> bool:
        """Whether a secret differs from those that requests for a job brought.

        False as well where none of them is kept (any more), or can be read.

        Raises:
            Unavailable: The database is not available.
        """
        ...

    def reference_of(self, name: str) -> str:
        """The reference of a secret in the settings.

        Raises:
            Denied: There is none of that name.
        """
        ...

    async def secrets(self, reference: str) -> Sequence[bytes]:
        """Every secret that is valid under a reference, the newest first.

        Raises:
            Denied: There is none, or it cannot be read with the keys that are set.
            Unavailable: The database is not available.
        """
        ...


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """An entry of the log: one attempt to deliver one message."""

    order: WebhookOrder
    sent_at: datetime
    seconds: float
    """That the attempt took."""
    attempt: WebhookAttempt


class WebhookLog(Protocol):
    """What was sent to whom, and which hosts are left alone.

    Every method raises `Unavailable` when the database is not available.
    """

    async def message(self, id: str) -> bytes | None:
        """The body of a message that was sent before; None: it was not."""
        ...

    async def keep_message(self, id: str, job_id: str, body: bytes) -> bytes:
        """Keep the body of a message, so that every attempt sends the same; what is kept."""
        ...

    async def begin(self, host: str, now: datetime, lease: float) -> float | None:
        """Ask for an attempt; None: go ahead, else the seconds until the host may be tried.

        When the pause of a host is over, one attempt is let through; others wait for it.

        Args:
            host: Of the receiver.
            now: The moment.
            lease: Seconds after which that attempt is taken for lost.
        """
        ...

    async def end(self, host: str, now: datetime, *, healthy: bool) -> Circuit:
        """Note whether a host answered as a server that works does."""
        ...

    async def record(self, delivery: WebhookDelivery) -> None:
        """Write an entry; the same attempt is written once."""
        ...

    async def deliveries(self, job_id: str, limit: int = 200) -> Sequence[WebhookDelivery]:
        """The log of a job, the newest first."""
        ...


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
