"""Watches of endpoints, and the files that routes expect."""

from datetime import date, datetime, time
from enum import StrEnum
from typing import Annotated, Final, cast

from pydantic import Field, StringConstraints, model_validator

from contracts.answers import Person
from contracts.base import Contract
from contracts.transfers.events import Attribute
from contracts.transfers.names import FilePath, PartnerName, QueueName, RuleName, Sentence
from contracts.transfers.routes import ANY
from contracts.transfers.runs import PARK_SECONDS

WATCH_LOOK: Final = "WatchLook"
EXPECTED_CHECK: Final = "ExpectedFilesCheck"
EXPECTED_FILES: Final = "ExpectedFiles"
"""Names of the workflow types."""
WATCH_PREFIX: Final = "transfer-watch-"
EXPECTED_PREFIX: Final = "transfer-expected-"
"""What the ids of their schedules begin with."""
GAP_PREFIX: Final = "expected"
"""What the workflow ids of `ExpectedFiles` begin with, up to the slash."""
WATCHED_FILES: Final = 100_000
"""Files that one watch sees at most, unless it says otherwise."""
NAMED: Final = 10
JUDGED: Final = 8
"""Days of an expectation that one check records; the next check continues with the others."""

WatchName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Minutes = Annotated[int, Field(ge=1, le=60)]


class Clocked(Contract):
    """What a schedule does every so many minutes."""

    every_minutes: Minutes = 5

    @model_validator(mode="after")
    def _divides_an_hour(self) -> "Clocked":
        if 60 % self.every_minutes:
            raise ValueError("every_minutes has to divide 60")
        return self


class Watch(Clocked):
    """A folder of a partner that is listed by the clock; each new file is an event."""

    name: WatchName
    partner: PartnerName
    path: FilePath
    """With wildcards in the last segment: `out/*.csv`."""
    account_id: Attribute
    source: Attribute = ""
    """Of its events; `docflow.watch.NAME` where it is not given."""
    type: Attribute = "Succeeded"
    subject: Attribute = "File Upload"
    queue: QueueName | None = None
    """Its events are routed already, to this queue; None: the rules say where they go."""
    settle_seconds: int = Field(default=30, ge=0, le=86_400)
    """Two looks at least so far apart have to see the same size and time."""
    marker: str | None = Field(default=None, min_length=1, max_length=50, pattern=r"^[^/\\*?\[]+$")
    """A file is complete when there is one named so beside it: its own name and this suffix."""
    most: int = Field(default=WATCHED_FILES, ge=1, le=1_000_000)
    """Files that are looked at; more are a problem, which causes a notice."""

    @model_validator(mode="before")
    @classmethod
    def _named_source(cls, values: object) -> object:
        if not isinstance(values, dict):
            return values
        given = cast(dict[str, object], values)
        return given | {"source": given.get("source") or f"docflow.watch.{given.get('name')}"}


class SeenFile(Contract):
    """A file as a watch saw it last."""

    path: FilePath
    size: int
    changed: datetime | None = None
    tag: str | None = Field(default=None, max_length=500)
    since: datetime
    """When it was first seen with this size, time and tag."""
    event: str | None = Field(default=None, max_length=64)
    """Id of the event of this version; None: none was sent."""
    problem: Sentence | None = None
    """Why its event was not taken."""
    vanished: datetime | None = None


class LookOrder(Contract):
    """Input of a look of a watch."""

    watch: Watch
    notices: bool = True


class LookResult(Contract):
    """Result of `transfers.look`."""

    files: int = 0
    """That matched."""
    sent: int = 0
    """Events that were started."""
    settling: int = 0
    """Files that are not stable yet, or lack their marker."""
    vanished: int = 0
    """That were there at the look before."""
    vanished_unsent: tuple[Sentence, ...] = Field(default=(), max_length=NAMED)
    """Those of them that were never sent, the first few."""
    returned: int = 0
    """That had all gone at once, and are all back as they were."""
    problems: tuple[Sentence, ...] = Field(default=(), max_length=NAMED)


class WatchState(Contract):
    """What the looks of a watch came to, for lists."""

    watch: WatchName
    looked: datetime | None = None
    """When it was last listed."""
    result: LookResult = LookResult()
    problem: Sentence | None = None
    """Why the last look failed; None: it did not."""
    emptied: datetime | None = None
    """When a look last found nothing at all where several files had been."""
    unsure: datetime | None = None
    """The last look, where it found nothing at all and files had been: the next one tells whether
    they are gone."""


class LookFailure(Contract):
    """Input of `transfers.note_look`: a look that failed for good."""

    watch: WatchName
    problem: Sentence


class WorkCalendar(Contract):
    """Days on which something is expected."""

    name: WatchName = "every-day"
    weekdays: tuple[int, ...] = Field(default=(0, 1, 2, 3, 4, 5, 6), min_length=1, max_length=7)
    """0 is Monday."""
    holidays: tuple[date, ...] = Field(default=(), max_length=1_000)


class Expectation(Clocked):
    """So many files by a time, on each day of a calendar."""

    name: WatchName
    queue: QueueName
    """Of the transfers that count."""
    rule: RuleName | None = None
    """Only what this rule of the queue takes; None: all of the queue."""
    account_id: Attribute = ANY
    source: Attribute = ANY
    type: Attribute = ANY
    subject: Attribute = ANY
    file: Attribute = ANY
    """Name of the file, as the patterns of rules."""
    count: int = Field(default=1, ge=1, le=100_000)
    most: int | None = Field(default=None, ge=1, le=100_000)
    """More than these are too many; None: any number is right."""
    opens: time = time(0, 0)
    """When its day begins: later than `deadline` it is meant on the calendar day before."""
    deadline: time
    zone: str = Field(default="UTC", max_length=64)
    calendar: WorkCalendar = WorkCalendar()

    @model_validator(mode="after")
    def _has_room(self) -> "Expectation":
        if self.most is not None and self.most < self.count:
            raise ValueError("most is less than count")
        if self.opens == self.deadline:
            raise ValueError("opens and deadline are the same time")
        return self


class ExpectedState(StrEnum):
    """What is known of one day of an expectation."""

    PENDING = "pending"
    """Its deadline is still to come."""
    MET = "met"
    MISSING = "missing"
    LATE = "late"
    """All came, some of them after the deadline."""
    TOO_MANY = "too-many"
    CLOSED = "closed"
    """A person has closed it: it is not looked at again."""


class ExpectedDay(Contract):
    """What came for one day of an expectation."""

    name: WatchName
    day: date
    state: ExpectedState
    count: int = 0
    """Files that came."""
    in_time: int = 0
    deadline: datetime
    over: bool = False
    """The next day has begun: what comes now counts for that one."""
    by: Person | None = None
    """Who closed it."""


class ExpectedOrder(Contract):
    """Input of the check of an expectation."""

    expectation: Expectation
    notices: bool = True


class GapOrder(Contract):
    """Input of `ExpectedFiles`: something is missing, late or too much."""

    day: ExpectedDay
    sentence: Sentence
    park_for_seconds: int = PARK_SECONDS
    notices: bool = True


class ExpectedResult(Contract):
    """Result of `transfers.check_expected`; nothing is recorded yet."""

    days: tuple[ExpectedDay, ...] = Field(default=(), max_length=JUDGED)
    """To be recorded when the notices were sent."""
    gaps: tuple[GapOrder, ...] = Field(default=(), max_length=JUDGED)
    arrived: tuple[ExpectedDay, ...] = Field(default=(), max_length=JUDGED)
    """Days whose missing files have come since."""


class ExpectedDays(Contract):
    """Input of `transfers.record_expected`."""

    days: tuple[ExpectedDay, ...] = Field(max_length=JUDGED)


class GapView(Contract):
    """Result of the query `status` of `ExpectedFiles`, and of the run."""

    day: ExpectedDay
    sentence: Sentence
    since: datetime | None = None
    """When it began to wait; None: it does not."""


def gap_id(name: str, day: date, state: ExpectedState) -> str:
    """Workflow id of the run about one gap: it causes one notice."""
    return f"{GAP_PREFIX}/{name}/{day.isoformat()}/{state}"
