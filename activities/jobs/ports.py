"""What jobs ask of their tables and of receivers of webhooks, and what a search is asked."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Protocol, Self

from adapters.webhooks import WebhookAnswer, WebhookMessage
from workflows.jobs.records import TaskRecord, TaskStatus, WebhookAttempt, WebhookInput
from workflows.jobs.vectors import LoadMode, LoadReport, VectorTable
from workflows.shared.contracts import PlainRecord, not_served, served
from workflows.shared.webhook_addresses import shown


class TaskPage(PlainRecord):
    """Some of the tasks of a job."""

    tasks: Annotated[Sequence[TaskRecord], served("By stage and place in it", [])]
    next: Annotated[str | None, served("`token` of the next page; null: there is none", None)]


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """When one task, or all tasks of a stage in one status, were planned and seen last."""

    stage: int
    status: TaskStatus
    tasks: int
    kept: bool
    """Their results are from before: they were not done again."""
    begun: datetime
    ended: datetime
    index: str | None = None
    """Of the task; None: it stands for all of them."""


@dataclass(frozen=True, slots=True)
class JobAlias:
    """The id that a foreign system gave to a job."""

    alias: str
    digest: str
    """Of the message that brought it, without secrets."""
    job_id: str


class Webhooks(Protocol):
    """Posts messages."""

    async def post(self, message: WebhookMessage) -> WebhookAnswer:
        """Post one message, once."""
        ...


class WebhookDelivery(PlainRecord):
    """An entry of the log: one attempt to deliver one message to one receiver."""

    number: Annotated[int, served("Of the receiver, from 0", 0)]
    url: Annotated[str, served("Without its query", "https://client.example.com/done")]
    attempt: Annotated[int, served("Of the job", 1)]
    redelivery: Annotated[int, served("How often a person has asked for it again", 0)]
    delivery_attempt: Annotated[int, served("Attempt of this delivery, from 1", 1)]
    attempts: Annotated[int, served("That are made at most, unless a person asks for more", 4)]
    message_id: Annotated[str, served("The same for every attempt", "msg_5eed5eed_1_completed_0")]
    sent_at: Annotated[datetime, served("When it was sent", "2026-01-03T10:00:00Z")]
    seconds: Annotated[float, served("That the attempt took", 0.2)]
    delivered: Annotated[bool, served("The receiver has accepted it", True)]
    status_code: Annotated[int | None, served("Of the answer", 200)]
    problem: Annotated[str | None, served("Why it was not accepted", None)]
    order: Annotated[WebhookInput, not_served()]
    result: Annotated[WebhookAttempt, not_served()]

    @classmethod
    def of(
        cls, order: WebhookInput, sent_at: datetime, seconds: float, result: WebhookAttempt
    ) -> Self:
        """Describe an attempt, without what may be a secret."""
        return cls(
            **dict(order) | dict(result),
            url=shown(order.receiver.url),
            attempts=order.receiver.retry_count + 1,
            message_id=order.message_id,
            sent_at=sent_at,
            seconds=seconds,
            order=order,
            result=result,
        )


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
