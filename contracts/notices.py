"""Notices: what people are sent about a run, and what a run says of itself for one."""

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field, StringConstraints

from contracts.answers import Person
from contracts.base import Contract

REASON_CHARACTERS: Final = 2_000
DELIVERY: Final = "NoticeDelivery"
"""Name of the workflow type that sends the notice about the end of a run."""
DELIVERY_PREFIX: Final = "notice"
"""What the workflow ids of deliveries begin with, up to the slash."""
WANTED: Final = "docflow.notices.wanted"
"""Name under which a worker lets its workflows ask whether a notice is wanted."""

WorkflowId = Annotated[str, StringConstraints(max_length=1_000)]
Address = Annotated[str, StringConstraints(max_length=320)]
Link = Annotated[str, StringConstraints(max_length=2_000)]
Word = Annotated[str, StringConstraints(max_length=100)]
Text = Annotated[str, StringConstraints(max_length=REASON_CHARACTERS)]
Facts = Annotated[dict[Word, Text | int], Field(max_length=20)]


class NoticeKind(StrEnum):
    """What has happened."""

    NEEDS_YOU = "needs-you"
    """A run waits for an answer that only a person can give, or has left something to a person."""
    REMINDER = "reminder"
    """It still waits, for an answer or parked."""
    ESCALATION = "escalation"
    """Reminders of the person who was asked had no answer."""
    PARKED = "parked"
    """A step has failed permanently; the run waits for a decision."""
    ABANDONED = "abandoned"
    """It was cancelled, because the answer never came."""
    FAILED = "failed"
    ENDED = "ended"
    """It has ended in any other way: completed, skipped, cancelled."""
    UNDONE = "undone"
    OUTAGE = "outage"
    """Something that docflow itself needs is down, or answers again."""


class NextStep(Contract):
    """One thing that a person can do now."""

    does: Annotated[str, StringConstraints(max_length=200)]
    command: Text
    """To be pasted into a shell."""


class NoticeOrder(Contract):
    """Input of `notices.send`: what a run says of itself."""

    id: Word
    """The same for every attempt at the same notice."""
    kind: NoticeKind
    workflow_id: WorkflowId
    run_id: Word
    at: datetime
    state: Word
    reason: Text
    """What is awaited, or why it ended, in a sentence."""
    waiting_since: datetime | None = None
    gives_up_at: datetime | None = None
    """When it stops waiting without an answer."""
    answers: tuple[Word, ...] = Field(default=(), max_length=10)
    """Verbs of the run that it awaits, as `retry`."""
    steps: tuple[NextStep, ...] = Field(default=(), max_length=10)
    """What else a person can do."""
    assignee: Person | None = None
    """Who is to answer; None: any operator."""
    notify: Address | None = None
    """The assignee's mail address."""
    link: Link | None = None
    """Page of the run; None: the one that its register names."""
    about: Facts = Field(default_factory=dict)
    """Facts that only this pipeline has."""


class NoticeReceipt(Contract):
    """Result of `notices.send`: when the policy reminds people of a parked run; seconds."""

    remind_after: int | None = None
    remind_every: int | None = None


class Notice(Contract):
    """What people are sent."""

    id: Word
    kind: NoticeKind
    pipeline: Word
    workflow_id: WorkflowId
    run_id: Word
    at: datetime
    title: Annotated[str, StringConstraints(max_length=300)]
    """What a person knows the run by."""
    state: Word
    reason: Text
    steps: tuple[NextStep, ...] = Field(default=(), max_length=20)
    link: Link | None = None
    recipients: tuple[Address, ...] = Field(default=(), max_length=101)
    """Mail addresses."""
    waiting_since: datetime | None = None
    gives_up_at: datetime | None = None
    assignee: Person | None = None
    notify: Address | None = None
    about: Facts = Field(default_factory=dict)


def notice_id(*parts: object) -> str:
    """Id of a notice, the same for the same parts: receivers see by it that it came before.

    It holds no full stop, which separates it from what follows it in a signature.
    """
    text = "\0".join(str(part) for part in parts)
    return f"notice_{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def delivery_id(notice: str) -> str:
    """Workflow id of the delivery of a notice."""
    return f"{DELIVERY_PREFIX}/{notice}"
