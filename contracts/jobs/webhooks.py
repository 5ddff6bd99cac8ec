"""Who is notified by HTTP when a job has ended, and what became of each attempt."""

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from contracts.base import Contract
from contracts.jobs.records import JobId, JobStatus, Text

WEBHOOK_DELIVERY: Final = "WebhookDelivery"
"""Name of the workflow type."""
DELIVER_WEBHOOK: Final = "jobs.deliver_webhook"
"""Name of the activity that makes one attempt: `WebhookOrder` in, `WebhookAttempt` out."""
WEBHOOK_PREFIX: Final = "job-webhook"
"""What the workflow ids of deliveries begin with, up to the slash."""

Reference = Annotated[str, StringConstraints(max_length=200)]


class WebhookReceiver(Contract):
    """One receiver of a job, as it stands in histories: without any secret."""

    url: str = Field(max_length=2_048)
    secret: Reference | None = None
    """Names the secret where it is kept; None: the messages are not signed."""
    retry_count: int = Field(default=3, ge=0, le=20)
    timeout_seconds: int = Field(default=30, ge=1, le=120)
    """Of one attempt."""


class WebhookOrder(Contract):
    """Input of `WebhookDelivery`, and with the number of the attempt of `jobs.deliver_webhook`."""

    job_id: JobId
    attempt: int
    """Of the job; its record has the results that are sent."""
    status: JobStatus
    ended_at: datetime
    receiver: WebhookReceiver
    number: int = 0
    """Place of the receiver among those of the job, from 0."""
    redelivery: int = 0
    """How often a person has asked for it again; 0: the job itself has."""
    delivery_attempt: int = 1
    """Attempt of this delivery, from 1."""

    @property
    def message_id(self) -> str:
        """The same for every attempt, so that receivers recognise what came before."""
        return f"msg_{self.job_id[:32]}_{self.attempt}_{self.status.lower()}_{self.number}"


class WebhookAttempt(Contract):
    """Result of `jobs.deliver_webhook`; a receiver that refuses or fails is not a failure of it."""

    delivered: bool
    final: bool = False
    """Not delivered, and another attempt cannot help (refused address, 410 Gone)."""
    counted: bool = True
    """False: nothing was sent (the circuit of the host is open); it uses up no attempt."""
    retry_after: float | None = None
    """Seconds until the next attempt, where the receiver or the circuit says so."""
    status_code: int | None = None
    problem: Text | None = None


class WebhookEnd(Contract):
    """Result of `WebhookDelivery`."""

    delivered: bool
    attempts: int
    problem: Text | None = None


def webhook_delivery_id(order: WebhookOrder) -> str:
    """Workflow id of a delivery."""
    again = f"/{order.redelivery}" if order.redelivery else ""
    return f"{WEBHOOK_PREFIX}/{order.job_id}/{order.attempt}/{order.number}{again}"
