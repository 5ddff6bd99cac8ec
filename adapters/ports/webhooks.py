"""Who is told by HTTP of runs, and what was sent to whom."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from workflows.shared.contracts import PlainRecord, served
from workflows.shared.run_webhooks import RunEvent


class RunWebhook(PlainRecord):
    """A receiver of messages about runs."""

    id: Annotated[int, served("Number of the webhook", 7)]
    organisation_id: Annotated[
        int | None, served("Whose runs; null: all runs of the installation", 3)
    ]
    url: Annotated[
        str,
        served("Where messages go, without a query, which may be a token", "https://erp.example/"),
    ]
    events: Annotated[Sequence[RunEvent], served("What it is told", ["run.ended"])]
    pipelines: Annotated[Sequence[str], served("Of which pipelines; none: of all", [])]
    made_by: Annotated[str, served("Who made it", "ann")]
    made_at: Annotated[datetime, served("When it was made", "2026-05-04T10:00:00Z")]
    enabled: Annotated[bool, served("Messages are sent; else they wait", True)]
    problem: Annotated[str | None, served("Why docflow has disabled it", None)]


class SentMessage(PlainRecord):
    """A message to a receiver, and what became of it."""

    id: Annotated[int, served("Number of the message", 12)]
    message_id: Annotated[str, served("Header `webhook-id`, at every attempt", "msg_5eed")]
    event: Annotated[RunEvent, served("What it says", "run.ended")]
    run_id: Annotated[str, served("The run that it is about; empty: none", "run/P1/T1")]
    made_at: Annotated[datetime, served("When it was made", "2026-05-04T10:00:00Z")]
    due_at: Annotated[datetime | None, served("Next attempt; null: there is none", None)]
    attempts: Annotated[int, served("How often it was sent", 1)]
    delivered_at: Annotated[datetime | None, served("When it was accepted", "2026-05-04T10:00:01Z")]
    status_code: Annotated[int | None, served("Of the last answer; null: none", 200)]
    problem: Annotated[str | None, served("Why it was not accepted", None)]


@dataclass(frozen=True)
class Due:
    """A message whose next attempt is due."""

    id: int
    webhook_id: int
    url: str
    secrets: Sequence[bytes] = field(repr=False)
    """Encrypted; each signs."""
    message_id: str
    body: bytes
    attempts: int


@dataclass(frozen=True)
class Attempted:
    """What became of an attempt."""

    status: int | None = None
    """Of the answer."""
    problem: str | None = None
    """Why it was not accepted; None: it was."""
    due_at: datetime | None = None
    """Of the next attempt; None: there is none."""
    rests_until: datetime | None = None
    """The receiver wants nothing before; None: it has not said so."""
    disables: str | None = None
    """Why the receiver is sent nothing more; None: it is."""
