"""Notices: what people are sent about a run, who is sent which, and when they are reminded."""

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from workflows.shared.contracts import Contract, Person

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


class NotificationKind(StrEnum):
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


class NotificationInput(Contract):
    """Input of `notices.send`: what a run says of itself."""

    id: Word
    """The same for every attempt at the same notice."""
    kind: NotificationKind
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


class NotificationReceipt(Contract):
    """Result of `notices.send`: when the policy reminds people of a parked run; seconds."""

    remind_after: int | None = None
    remind_every: int | None = None


class Notification(Contract):
    """What people are sent."""

    id: Word
    kind: NotificationKind
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


LAST_REMINDERS: Final = (0.5, 0.9)
"""Parts of its timeout after which a run that gives up by itself has said so once, and twice."""
EVERY_KIND_BUT_ENDED: Final = frozenset(NotificationKind) - {NotificationKind.ENDED}
TO_OPERATORS: Final = frozenset(
    {
        NotificationKind.PARKED,
        NotificationKind.ESCALATION,
        NotificationKind.FAILED,
        NotificationKind.ENDED,
        NotificationKind.UNDONE,
        NotificationKind.OUTAGE,
    }
)
"""Kinds that go to the addresses of the policy even where a person is named."""

_HOUR: Final = 3_600
_PASSWORD: Final = re.compile(r"(?<=://)[^/\s@]*@")
_SECRET: Final = re.compile(
    r"(?i)\b(\w*(?:api|account|access)_?key|\w*(?:token|secret|password|pwd|signature)|sig)"
    r"(\s*=\s*)[^\s&;,]+"
)

Hours = Annotated[int, Field(ge=1, le=24 * 365)]


class NotificationPolicy(BaseModel):
    """Who of one pipeline is sent which notices, and when they are reminded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: Annotated[tuple[Address, ...], Field(max_length=100)] | None = None
    """Mail addresses; None: those of the default."""
    kinds: frozenset[NotificationKind] = EVERY_KIND_BUT_ENDED
    remind_after_hours: Hours | None = None
    """Until the first reminder of a parked run."""
    remind_every_hours: Hours | None = None
    """Between reminders; None: there is one."""

    @property
    def receipt(self) -> NotificationReceipt:
        """When a parked run is to remind people."""
        return NotificationReceipt(
            remind_after=_seconds(self.remind_after_hours),
            remind_every=_seconds(self.remind_every_hours),
        )


@dataclass(frozen=True)
class NotificationPolicies:
    """The policies of an installation."""

    operators: tuple[str, ...] = ()
    """Mail addresses where a policy names none."""
    default: NotificationPolicy = field(default_factory=NotificationPolicy)
    named: Mapping[str, NotificationPolicy] = field(default_factory=dict[str, NotificationPolicy])
    """Those of their own, by pipeline."""

    def of(self, pipeline: str) -> NotificationPolicy:
        """The policy of one pipeline."""
        return self.named.get(pipeline, self.default)

    def recipients(
        self, pipeline: str, kind: NotificationKind, notify: str | None
    ) -> tuple[str, ...]:
        """Mail addresses that a notice goes to, each once.

        Args:
            pipeline: Whose policy counts.
            kind: Of the notice.
            notify: Address of the person who is asked, if any is.
        """
        asked = (notify,) if notify else ()
        if notify and kind not in TO_OPERATORS:
            return asked
        to = self.of(pipeline).to
        to = self.default.to if to is None else to
        return tuple(dict.fromkeys((*asked, *(self.operators if to is None else to))))


@dataclass(frozen=True)
class Reminded:
    """The reminders that a run has sent while it waits."""

    count: int = 0
    last: timedelta = timedelta()
    """When the last one was sent, counted from the beginning of the wait."""


def next_reminder(
    timeout: timedelta, reminded: Reminded, receipt: NotificationReceipt
) -> timedelta | None:
    """When a run that waits reminds people next, counted from the beginning of its wait.

    Whatever the policy says, it has done so once at half of its timeout, and twice at nine
    tenths.

    Returns:
        None when no reminder comes before its timeout ends.
    """
    due = [part * timeout for part in LAST_REMINDERS[reminded.count : reminded.count + 1]]
    if receipt.remind_after is not None:
        due += _regular(reminded, receipt.remind_after, receipt.remind_every)
    return min((time for time in due if time < timeout), default=None)


def _regular(reminded: Reminded, after: int, every: int | None) -> list[timedelta]:
    if reminded.count == 0:
        return [timedelta(seconds=after)]
    if every is None:
        return []
    # A worker that was down for long does not make up for each reminder that it missed.
    passed = max((reminded.last.total_seconds() - after) / every, -1)
    return [timedelta(seconds=after + (math.floor(passed) + 1) * every)]


def clean(text: str, most: int) -> str:
    """Text from outside as one printable line of bounded length, without passwords and keys."""
    line = _SECRET.sub(r"\1\2***", _PASSWORD.sub("***@", " ".join(text.split())))
    return "".join(each if each.isprintable() else "?" for each in line)[:most]


def counted(counts: Contract) -> str:
    """What was done, from a contract of numbers."""
    numbers = counts.model_dump().items()
    return ", ".join(f"{each} {name.replace('_', ' ')}" for name, each in numbers if each) or (
        "nothing to do"
    )


def _seconds(hours: int | None) -> int | None:
    return None if hours is None else hours * _HOUR


ALONE: Final = 3
"""Notices of one cause that are sent by themselves."""
HELD: Final = timedelta(minutes=5)
"""For so long further ones are held, and then sent as one."""
_CAUSES: Final = 1_000
"""Causes that are remembered at most."""


@dataclass
class _Group:
    alone: set[str] = field(default_factory=set[str])
    held: dict[str, float] = field(default_factory=dict[str, float])
    """Notices that are held, and when they came."""
    covered: set[str] = field(default_factory=set[str])
    """Those that another one has counted."""
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """A notice that comes back later."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Due:
    """A notice that is sent now.

    Attributes:
        others: For how many others of its cause it stands; 0: for itself alone.
    """

    others: int = 0


class NotificationGroups:
    """Decides of each notice whether it is sent now, comes back, or was counted by another.

    It remembers nothing over the end of its process: notices that were held come back, and the
    first ones are sent by themselves again.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def decide(self, cause: str, notice: str, now: float) -> Held | Due | None:
        """What becomes of a notice.

        Args:
            cause: What it shares with others.
            notice: Its id; the same each time that it comes.
            now: Seconds.

        Returns:
            None: another one has counted it.
        """
        self._forget(now)
        group = self._groups.setdefault(cause, _Group())
        group.last = now
        if notice in group.covered:
            return None
        if notice in group.alone or len(group.alone) < ALONE:
            group.alone.add(notice)
            return Due()
        left = HELD.total_seconds() - (now - group.held.setdefault(notice, now))
        if left > 0:
            return Held(timedelta(seconds=left))
        return Due(len(group.held) - 1)

    def sent(self, cause: str, notice: str) -> None:
        """A notice was sent, and with it those that it has counted."""
        group = self._groups.get(cause)
        if group is not None and notice in group.held:
            group.covered |= group.held.keys() - {notice}
            group.held.clear()

    def _forget(self, now: float) -> None:
        old = now - 4 * HELD.total_seconds()
        gone = [cause for cause, group in self._groups.items() if group.last < old]
        if len(self._groups) - len(gone) > _CAUSES:
            gone = [*self._groups]
        for cause in gone:
            del self._groups[cause]


ANY_NAME: Final = "…"
"""Stands for the name of a file."""
_NAME: Final = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)""")
"""As reasons quote it; an apostrophe within a word is none."""
_DIGITS: Final = 16


def failure_fingerprint(reason: str) -> str:
    """A reason without the names that it quotes: the same for all files of one cause."""
    return _NAME.sub(ANY_NAME, reason)


def cause_key(kind: str, reason: str) -> str:
    """What names a cause in addresses and commands.

    Args:
        kind: What tells apart runs that are answered differently, as their queue.
        reason: Why one of them waits.
    """
    return hashlib.sha256(f"{kind}\n{failure_fingerprint(reason)}".encode()).hexdigest()[:_DIGITS]
