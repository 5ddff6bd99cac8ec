"""Rules of notices: who is sent which, when people are reminded, and what a text may hold."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Final

from pydantic import ConfigDict, Field

from contracts.base import Contract
from contracts.notices import Address, NoticeKind, NoticeReceipt

LAST_REMINDERS: Final = (0.5, 0.9)
"""Parts of its timeout after which a run that gives up by itself has said so once, and twice."""
EVERY_KIND_BUT_ENDED: Final = frozenset(NoticeKind) - {NoticeKind.ENDED}
TO_OPERATORS: Final = frozenset(
    {
        NoticeKind.PARKED,
        NoticeKind.ESCALATION,
        NoticeKind.FAILED,
        NoticeKind.ENDED,
        NoticeKind.UNDONE,
        NoticeKind.OUTAGE,
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


class NoticePolicy(Contract):
    """Who of one pipeline is sent which notices, and when they are reminded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: Annotated[tuple[Address, ...], Field(max_length=100)] | None = None
    """Mail addresses; None: those of the default."""
    kinds: frozenset[NoticeKind] = EVERY_KIND_BUT_ENDED
    remind_after_hours: Hours | None = None
    """Until the first reminder of a parked run."""
    remind_every_hours: Hours | None = None
    """Between reminders; None: there is one."""

    @property
    def receipt(self) -> NoticeReceipt:
        """When a parked run is to remind people."""
        return NoticeReceipt(
            remind_after=_seconds(self.remind_after_hours),
            remind_every=_seconds(self.remind_every_hours),
        )


@dataclass(frozen=True)
class NoticePolicies:
    """The policies of an installation."""

    operators: tuple[str, ...] = ()
    """Mail addresses where a policy names none."""
    default: NoticePolicy = field(default_factory=NoticePolicy)
    named: Mapping[str, NoticePolicy] = field(default_factory=dict[str, NoticePolicy])
    """Those of their own, by pipeline."""

    def of(self, pipeline: str) -> NoticePolicy:
        """The policy of one pipeline."""
        return self.named.get(pipeline, self.default)

    def recipients(self, pipeline: str, kind: NoticeKind, notify: str | None) -> tuple[str, ...]:
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
    timeout: timedelta, reminded: Reminded, receipt: NoticeReceipt
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
