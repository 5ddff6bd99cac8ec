"""Days of a calendar, and the moments at which they begin and are due, in any time zone.

A time of day that clocks skip is the first moment after the gap. Of one that comes twice, a day
begins at the first, and is due at the second: nothing is late before its time has passed for good.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from contracts.transfers.watches import Expectation, WorkCalendar
from domain.transfers.windows import zone_of

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
