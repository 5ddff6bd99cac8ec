"""Watches of partners, and what they make of the files that they see.

Days of a calendar, and the moments at which they begin and are due, in any time zone.

A time of day that clocks skip is the first moment after the gap. Of one that comes twice, a day
begins at the first, and is due at the second: nothing is late before its time has passed for good.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Annotated, Final, cast

from pydantic import Field, StringConstraints, model_validator

from workflows.shared.contracts import Contract, Person
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import (
    LARGEST_ORGANISATION,
    ORGANISATION,
    Attribute,
    FilePath,
    PartnerName,
    QueueName,
    RuleName,
    Sentence,
)
from workflows.transfers.partners import zone_of
from workflows.transfers.paths import TEMPORARY_PREFIX, pattern_problem, printable, split
from workflows.transfers.routes import ANY
from workflows.transfers.runs import PARK_SECONDS

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
    organisation_id: int | None = Field(default=None, ge=1, le=LARGEST_ORGANISATION)
    """Organisation that its transfers belong to; None: the installation."""
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


class PollWatchInput(Contract):
    """Input of a look of a watch."""

    watch: Watch
    notices: bool = True


class PollWatchResult(Contract):
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
    result: PollWatchResult = PollWatchResult()
    problem: Sentence | None = None
    """Why the last look failed; None: it did not."""
    emptied: datetime | None = None
    """When a look last found nothing at all where several files had been."""
    unsure: datetime | None = None
    """The last look, where it found nothing at all and files had been: the next one tells whether
    they are gone."""


class PollFailure(Contract):
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


class ExpectationCheckInput(Contract):
    """Input of the check of an expectation."""

    expectation: Expectation
    notices: bool = True


class GapInput(Contract):
    """Input of `ExpectedFiles`: something is missing, late or too much."""

    day: ExpectedDay
    sentence: Sentence
    park_for_seconds: int = PARK_SECONDS
    notices: bool = True


class ExpectedResult(Contract):
    """Result of `transfers.check_expected`; nothing is recorded yet."""

    days: tuple[ExpectedDay, ...] = Field(default=(), max_length=JUDGED)
    """To be recorded when the notices were sent."""
    gaps: tuple[GapInput, ...] = Field(default=(), max_length=JUDGED)
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


_MILLIS: Final = "milliseconds"
_NUMBER: Final = re.compile("[0-9]+")
_DIGITS: Final = 20


@dataclass(frozen=True, slots=True)
class Version:
    """A file, as it is listed."""

    path: str
    size: int
    changed: datetime | None
    tag: str | None


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a look makes of one file."""

    file: SeenFile
    is_new: bool
    """It has to be written down: it was not there, or was another one."""
    due: bool
    """It is complete, and its event was not sent."""


def check_watch(watch: Watch) -> None:
    """Check what only a rule can.

    Raises:
        RuleViolation: Its path is none.
    """
    if (problem := pattern_problem(watch.path)) is not None:
        raise RuleViolation(f"watch {watch.name}: {problem}")


def is_watched(watch: Watch, path: str) -> bool:
    """Whether a listed file is watched: markers, and files of docflow's own, are not."""
    if split(path)[1].startswith(TEMPORARY_PREFIX):
        return False
    return watch.marker is None or not path.endswith(watch.marker)


def detect_change(
    watch: Watch,
    version: Version,
    before: SeenFile | None,
    markers: Collection[str],
    now: datetime,
) -> Sighting:
    """Judge one file.

    Args:
        watch: Whose look this is.
        version: As it is listed now.
        before: As it was seen last; None: it was not.
        markers: Paths of files that were listed before the files.
        now: The time.
    """
    is_same = before is not None and before.vanished is None and is_version(before, version)
    if is_same:
        assert before is not None
        file = before
    else:
        file = SeenFile(
            path=version.path,
            size=version.size,
            changed=version.changed,
            tag=version.tag,
            since=now,
        )
    due = file.event is None and file.problem is None and _is_complete(watch, file, markers, now)
    return Sighting(file, not is_same, due)


def is_version(before: SeenFile, version: Version) -> bool:
    """Whether a file is as it was seen, as far as its size, time and tag tell."""
    seen = (before.size, before.changed, before.tag)
    return seen == (version.size, version.changed, version.tag)


def have_returned(gone: Sequence[SeenFile], listed: Iterable[Version]) -> bool:
    """Whether several files that had all gone at once are all back as they were.

    So it is with a share that was unmounted for a while: they are the same files, and none is new.
    Where some of them come back, a person has put them there.
    """
    versions = {each.path: each for each in listed}
    return len(gone) > 1 and all(
        each.path in versions and is_version(each, versions[each.path]) for each in gone
    )


def never_sent(gone: Iterable[SeenFile], listed: Iterable[Version] = ()) -> list[str]:
    """Paths, for people, of files that are gone and were not sent; not of those that are back."""
    versions = {each.path: each for each in listed}
    return [
        printable(each.path)
        for each in gone
        if each.event is None
        and not (each.path in versions and is_version(each, versions[each.path]))
    ]


def vanished_sentence(watch: Watch, names: Sequence[str], since: datetime) -> str:
    """The sentence for people about files that went with everything else, and were not sent.

    Args:
        watch: Whose.
        names: Of the files, the first few.
        since: When they were found gone.
    """
    return (
        f"nothing is at {printable(watch.path)} since {since:%Y-%m-%d %H:%M} UTC, and these files "
        f"were not sent before: {', '.join(names)}; if it is a share, see that it is mounted: they "
        "are sent once they are back"
    )


def returned_sentence(files: int, failed: int, since: datetime) -> str:
    """The sentence for people about files that are back.

    Args:
        files: How many.
        failed: How many of them have a transfer that has failed.
        since: When they were found gone.
    """
    more = f", also the {failed:,} whose transfers have failed" if failed else ""
    return (
        f"{files:,} files that were all gone at {since:%Y-%m-%d %H:%M} UTC are back as they were: "
        f"they count as the same files, and none is sent again{more}; change the time of one "
        "(`touch`) to have it sent again"
    )


def _is_complete(watch: Watch, file: SeenFile, markers: Collection[str], now: datetime) -> bool:
    if watch.marker is not None:
        return f"{file.path}{watch.marker}" in markers
    # A file that was seen just now was seen once: two looks have to agree.
    return file.since < now and (now - file.since).total_seconds() >= watch.settle_seconds


def event_id(watch: Watch, file: SeenFile, *, again: bool = False) -> str:
    """Id of the event of a version: the same file with other content is another one.

    Args:
        watch: Whose.
        file: As it is seen.
        again: The version was there before, and has come back.
    """
    version = [watch.name, file.path, file.size, _time(file).isoformat(), file.tag]
    if again:
        version.append(file.since.isoformat())
    return hashlib.sha256(json.dumps(version).encode()).hexdigest()


def file_event_body(watch: Watch, file: SeenFile, *, again: bool = False) -> str:
    """The event of a version, the same at every attempt: JSON in structured mode."""
    return json.dumps(_fields(watch, file, again), sort_keys=True, ensure_ascii=False)


def _fields(watch: Watch, file: SeenFile, again: bool) -> Mapping[str, object]:
    owner = watch.organisation_id
    return {
        **({} if owner is None else {ORGANISATION: owner}),
        "specversion": "1.0",
        "id": event_id(watch, file, again=again),
        "source": watch.source,
        "type": watch.type,
        "subject": watch.subject,
        "time": _time(file).isoformat(timespec=_MILLIS),
        "datacontenttype": "application/json",
        "data": {
            "accountId": watch.account_id,
            "fileName": split(file.path)[1],
            "path": file.path,
            "partner": watch.partner,
            "size": file.size,
            "watch": watch.name,
        },
    }


def send_order(file: SeenFile) -> tuple[datetime, str, str]:
    """Where a file stands among those that are sent: the oldest first, then by name.

    Times of many endpoints are whole seconds: of one moment, 2.csv comes before 10.csv.
    """
    counted = _NUMBER.sub(lambda found: found[0].zfill(_DIGITS), file.path)
    return _time(file), counted, file.path


def _time(file: SeenFile) -> datetime:
    """Of the file; where the endpoint has none, when it was first seen so."""
    return file.changed or file.since


_DAY: Final = timedelta(days=1)
_LONGEST: Final = 366
"""Days in a row without a day of work that are looked through."""
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Period:
    """What counts for one day of an expectation; times in UTC."""

    day: date
    begins: datetime
    due: datetime
    ends: datetime | None
    """When the next one begins; None: none does within a year."""


def is_work_day(calendar: WorkCalendar, day: date) -> bool:
    """Whether something is expected on a day."""
    return day.weekday() in calendar.weekdays and day not in calendar.holidays


def first_moment(day: date, at: time, zone: tzinfo) -> datetime:
    """When clocks of a zone show a time of a day for the first time, or skip it; in UTC."""
    local = datetime.combine(day, at)
    early = _utc(local, zone, fold=0)
    return early if _shows(early, zone) == local else _gap_end(local, zone)


def last_moment(day: date, at: time, zone: tzinfo) -> datetime:
    """When clocks of a zone show a time of a day for the last time, or skip it; in UTC."""
    local = datetime.combine(day, at)
    late = _utc(local, zone, fold=1)
    return late if _shows(late, zone) == local else _gap_end(local, zone)


def _utc(local: datetime, zone: tzinfo, fold: int) -> datetime:
    return local.replace(tzinfo=zone, fold=fold).astimezone(UTC)


def _shows(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None, fold=0)


def _gap_end(local: datetime, zone: tzinfo) -> datetime:
    """The moment at which clocks skip a time, to the second."""
    # The offset after the change places it too early, the one before it too late.
    low, high = _utc(local, zone, fold=1), _utc(local, zone, fold=0)
    while high - low > _SECOND:
        middle = low + _SECOND * ((high - low) // _SECOND // 2)
        if _shows(middle, zone) < local:
            low = middle
        else:
            high = middle
    return high


def periods(expectation: Expectation, first: date, last: date) -> Iterator[Period]:
    """The periods of the days of work from `first` to `last`, both included.

    Raises:
        RuleViolation: The zone is unknown.
    """
    zone = zone_of(expectation.zone)
    day = first
    while day <= last:
        if is_work_day(expectation.calendar, day):
            following = _next(expectation.calendar, day)
            yield Period(
                day,
                _begins(expectation, day, zone),
                last_moment(day, expectation.deadline, zone),
                None if following is None else _begins(expectation, following, zone),
            )
        day += _DAY


def newest_day(expectation: Expectation, now: datetime) -> date | None:
    """The last day of work whose period has begun; None: none has within a year.

    Raises:
        RuleViolation: The zone is unknown.
    """
    zone = zone_of(expectation.zone)
    day = now.astimezone(zone).date() + 2 * _DAY
    for _ in range(_LONGEST):
        if is_work_day(expectation.calendar, day) and _begins(expectation, day, zone) <= now:
            return day
        day -= _DAY
    return None


def _begins(expectation: Expectation, day: date, zone: tzinfo) -> datetime:
    earlier = day - _DAY if expectation.opens > expectation.deadline else day
    return first_moment(earlier, expectation.opens, zone)


def _next(calendar: WorkCalendar, day: date) -> date | None:
    for _ in range(_LONGEST):
        day += _DAY
        if is_work_day(calendar, day):
            return day
    return None
