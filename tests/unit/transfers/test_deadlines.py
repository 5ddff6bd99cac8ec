"""Days of work and deadlines, over every time zone."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given, settings
from hypothesis import strategies as some

from tests.support.chaos import examples
from workflows.transfers.watches import (
    Expectation,
    WorkCalendar,
    first_moment,
    is_work_day,
    last_moment,
    newest_day,
    periods,
)

ZONES = sorted(available_timezones() - {"localtime", "Factory"})
zones = some.sampled_from(ZONES)
days = some.dates(date(1990, 1, 1), date(2037, 12, 30))
times = some.builds(lambda minutes: time(*divmod(minutes, 60)), some.integers(0, 24 * 60 - 1))
BERLIN = ZoneInfo("Europe/Berlin")


def expectation(**fields: object) -> Expectation:
    known = {"name": "orders", "queue": "jobs", "deadline": time(6)}
    return Expectation.model_validate({**known, **fields})


def shown(moment: datetime, zone: ZoneInfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


@settings(max_examples=examples(200))
@given(zones, days, times)
def test_clocks_show_the_time_or_have_skipped_it(name: str, day: date, at: time) -> None:
    zone, local = ZoneInfo(name), datetime.combine(day, at)
    for moment in (first_moment(day, at, zone), last_moment(day, at, zone)):
        before = shown(moment - timedelta(seconds=1), zone)
        assert shown(moment, zone) == local or before < local < shown(moment, zone)


@settings(max_examples=examples(100))
@given(zones, days, times)
def test_a_time_that_comes_twice_is_due_the_second_time(name: str, day: date, at: time) -> None:
    zone, local = ZoneInfo(name), datetime.combine(day, at)
    first, last = first_moment(day, at, zone), last_moment(day, at, zone)
    assert first <= last
    if first < last:
        assert shown(first, zone) == shown(last, zone) == local


@settings(max_examples=examples(100))
@given(zones, days, times, times, some.sets(some.integers(0, 6), min_size=1))
def test_periods_follow_each_other_without_a_gap(
    name: str, day: date, opens: time, due: time, weekdays: set[int]
) -> None:
    if opens == due:
        return
    expected = expectation(
        zone=name,
        opens=opens,
        deadline=due,
        calendar=WorkCalendar(weekdays=tuple(sorted(weekdays))),
    )
    found = list(periods(expected, day, day + timedelta(days=15)))
    for one, other in pairwise(found):
        assert one.begins < one.due and one.ends == other.begins
        assert (one.begins < other.begins and one.due < other.due) or name == "Pacific/Apia"
        assert one.ends is not None
        assert newest_day(expected, one.ends - timedelta(seconds=1)) == one.day
        assert newest_day(expected, one.ends) == other.day


def test_a_deadline_in_the_missing_hour_is_where_clocks_jump_to() -> None:
    due = last_moment(date(2026, 3, 29), time(2, 30), BERLIN)
    assert due == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    assert due.astimezone(BERLIN).hour == 3


def test_a_deadline_in_the_doubled_hour_is_over_after_the_second_one() -> None:
    day = date(2026, 10, 25)
    assert first_moment(day, time(2, 30), BERLIN) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert last_moment(day, time(2, 30), BERLIN) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_a_day_that_a_zone_has_skipped_is_due_when_the_next_one_begins() -> None:
    due = last_moment(date(2011, 12, 30), time(6), ZoneInfo("Pacific/Apia"))
    assert due == datetime(2011, 12, 30, 10, 0, tzinfo=UTC)


def test_holidays_and_weekends_expect_nothing() -> None:
    calendar = WorkCalendar(weekdays=(0, 1, 2, 3, 4), holidays=(date(2026, 12, 25),))
    assert is_work_day(calendar, date(2026, 12, 24))
    assert not is_work_day(calendar, date(2026, 12, 25))
    assert not is_work_day(calendar, date(2026, 12, 26))
    expected = expectation(zone="Europe/Berlin", calendar=calendar)
    (before, after) = periods(expected, date(2026, 12, 24), date(2026, 12, 28))
    assert (before.day, after.day) == (date(2026, 12, 24), date(2026, 12, 28))
    assert newest_day(expected, datetime(2026, 12, 26, 12, tzinfo=UTC)) == before.day


def test_a_day_may_begin_the_evening_before() -> None:
    expected = expectation(zone="Europe/Berlin", opens=time(18), deadline=time(6))
    (period,) = periods(expected, date(2026, 3, 3), date(2026, 3, 3))
    assert period.begins == datetime(2026, 3, 2, 17, tzinfo=UTC)
    assert period.due == datetime(2026, 3, 3, 5, tzinfo=UTC)
