"""Webhooks about runs: what receivers are told of a change, and when they are told again."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pydantic import Field

from workflows.shared.contracts import Contract
from workflows.shared.runs import RunRecord

RUN_WEBHOOKS: Final = "RunWebhooks"
"""Name of the workflow type."""
SCHEDULE: Final = "run-webhooks"
"""Id of the schedule that starts its runs."""


class RunWebhooksInput(Contract):
    """Input of one look at what has changed."""

    changes: int = Field(default=500, ge=1, le=5_000)
    """Changes that are read at once."""
    seconds: int = Field(default=20, ge=0, le=300)
    """After so many no further attempt begins; what is due then is left to the next run."""


class RunsTold(Contract):
    """Result of one look."""

    queued: int = 0
    """Messages that were made."""
    delivered: int = 0
    failed: int = 0
    """Attempts that were not accepted."""


class RunEvent(StrEnum):
    """What a message says."""

    ENDED = "run.ended"
    NEEDS_ATTENTION = "run.needs_attention"
    ROWS_REJECTED = "rows.rejected"
    TEST = "webhook.test"


TOLD: Final = (RunEvent.ENDED, RunEvent.NEEDS_ATTENTION, RunEvent.ROWS_REJECTED)
"""What may become of a run; a test is sent when a person asks for it."""
_PAUSES: Final = tuple(
    timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 300, 600, 600, 1440, 1440)
)
ATTEMPTS: Final = len(_PAUSES) + 1
"""Then a message has failed, after three days; a person can have it sent again."""


def next_attempt(attempts: int, now: datetime, retry_after: float | None) -> datetime | None:
    """When a message is sent again that was not accepted; None: it has failed.

    Args:
        attempts: So many were made.
        now: The time.
        retry_after: Seconds that the receiver asks to be left alone.
    """
    if attempts >= ATTEMPTS:
        return None
    return now + max(_PAUSES[attempts - 1], timedelta(seconds=retry_after or 0))


@dataclass(frozen=True)
class RunMessage:
    """A message to one receiver."""

    id: str
    """The same at every attempt, and if the same change is read again."""
    event: RunEvent
    run: str
    """Empty: it is about none."""
    body: str


def messages_about(
    run: RunRecord, events: Sequence[RunEvent], rejected: Sequence[str], receiver: int
) -> Iterator[RunMessage]:
    """What a receiver is told of a run as it stands after a change.

    Args:
        run: The run.
        events: What the receiver wants to know.
        rejected: Names of the counts of rejected rows.
        receiver: Its number.
    """
    rows = sum(run.counts.get(name, 0) for name in rejected)
    said = (
        (RunEvent.ENDED, run.ended_at),
        (RunEvent.ROWS_REJECTED, run.ended_at if rows else None),
        (RunEvent.NEEDS_ATTENTION, run.changed_at if run.needs_attention else None),
    )
    for event, at in said:
        if at is not None and event in events:
            data = {**run.model_dump(mode="json"), "rejected_rows": rows}
            yield _message(event, at, data, receiver, run.id)


def test_message(receiver: int, at: datetime) -> RunMessage:
    """A message that a person has asked for."""
    return _message(RunEvent.TEST, at, {}, receiver, "")


def _message(
    event: RunEvent, at: datetime, data: Mapping[str, object], receiver: int, run: str
) -> RunMessage:
    named = f"{receiver}\0{event}\0{run}\0{at.isoformat()}".encode()
    body = {"type": event, "timestamp": at.isoformat().replace("+00:00", "Z"), "data": data}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return RunMessage(f"msg_{hashlib.sha256(named).hexdigest()[:32]}", event, run, text)
