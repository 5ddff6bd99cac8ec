"""Answers about jobs; names are those of the records."""

from datetime import datetime

from pydantic import ConfigDict, Field

from adapters.ports.webhooks import WebhookDelivery
from contracts.base import Contract
from contracts.jobs import JobRecord, JsonObject, TaskRecord
from domain.jobs.webhooks import shown
from workflows.parking import Decision


class SubmittedView(Contract):
    """What became of a request."""

    job_id: str
    attempt: int
    created: bool
    """False: the same job was asked for before; it was not started again."""
    notes: tuple[str, ...] = ()
    """What of the request was not used, and why."""


class JobList(Contract):
    """A page of jobs."""

    jobs: tuple[JobRecord, ...]
    next: str | None = None
    """`before` of the next page; null: there is none."""


class TaskList(Contract):
    """A page of tasks."""

    tasks: tuple[TaskRecord, ...]
    next: str | None = None
    """`token` of the next page; null: there is none."""


class _Body(Contract):
    """A request; an unknown field is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RestartBody(_Body):
    """Where a job begins again."""

    from_stage: int | None = Field(default=None, ge=1)
    """Null: the stage that failed."""


class AnswerBody(_Body):
    """What becomes of a job that is parked."""

    decision: Decision = Decision.RETRY
    """`retry` does the failed stage again, `skip` leaves out what has failed, `fail` gives up."""
    parameters: JsonObject = Field(default_factory=dict)
    """For `retry`: what the job asks for, and others that are corrected."""
    reason: str | None = Field(default=None, max_length=500)
    """For `skip` and `fail`."""


class DeliveryView(Contract):
    """One delivery attempt to one receiver."""

    number: int
    """Of the receiver, from 0."""
    url: str
    """Without what stands behind a question mark."""
    attempt: int
    """Of the job."""
    redelivery: int
    delivery_attempt: int
    attempts: int
    """That are made at most, unless a person asks for more."""
    message_id: str
    sent_at: datetime
    seconds: float
    delivered: bool
    status_code: int | None = None
    problem: str | None = None


def delivery_view(delivery: WebhookDelivery) -> DeliveryView:
    """An entry of the log, without what may be a secret."""
    order, result = delivery.order, delivery.attempt
    return DeliveryView(
        number=order.number,
        url=shown(order.receiver.url),
        attempt=order.attempt,
        redelivery=order.redelivery,
        delivery_attempt=order.delivery_attempt,
        attempts=order.receiver.retry_count + 1,
        message_id=order.message_id,
        sent_at=delivery.sent_at,
        seconds=delivery.seconds,
        delivered=result.delivered,
        status_code=result.status_code,
        problem=result.problem,
    )
