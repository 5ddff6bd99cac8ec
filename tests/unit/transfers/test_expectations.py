"""The file of watches and expected files, and what arrivals mean."""

from datetime import UTC, date, datetime, time, timedelta

import pytest

from activities.transfers.operators_files import (
    first_day,
    has_arrived,
    judge,
    needs_notice,
    read_clocks,
    sentence_of,
)
from workflows.shared.errors import RuleViolation
from workflows.transfers.watches import Expectation, ExpectedDay, ExpectedState, Period

FILE = """
watches:
  - name: acme-orders
    partner: acme
    path: out/*.csv     # wildcards in the last segment
    account_id: "4711"
    every_minutes: 5
    marker: .done

calendars:
  - name: bank
    weekdays: mon-fri
    holidays: 2026-12-25, 2026-12-28

expected:
  - name: orders
    queue: jobs
    account_id: ACME*
    count: 2
    most: 3
    deadline: 06:00
    zone: Europe/Berlin
    calendar: bank
"""
DAY = date(2026, 3, 2)
BEGINS = datetime(2026, 3, 2, tzinfo=UTC)
PERIOD = Period(DAY, BEGINS, BEGINS + timedelta(hours=6), BEGINS + timedelta(days=1))
EXPECTED = Expectation(name="orders", queue="jobs", count=2, most=3, deadline=time(6))


def at(*hours: float) -> list[datetime]:
    return [BEGINS + timedelta(hours=each) for each in hours]


def judged(arrivals: list[datetime], hour: float) -> ExpectedDay:
    return judge(EXPECTED, PERIOD, arrivals, BEGINS + timedelta(hours=hour))


def test_the_file_is_read() -> None:
    clocks = read_clocks(FILE)
    watch, expected = clocks.watches["acme-orders"], clocks.expected["orders"]
    assert (watch.account_id, watch.marker, watch.every_minutes) == ("4711", ".done", 5)
    assert watch.source == "docflow.watch.acme-orders"
    assert expected.calendar.weekdays == (0, 1, 2, 3, 4)
    assert expected.calendar.holidays == (date(2026, 12, 25), date(2026, 12, 28))
    assert (expected.deadline, expected.opens) == (time(6), time(0))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("calendar: bank", "calendar: banks", "there is no calendar banks"),
        ("zone: Europe/Berlin", "zone: Europe/Berlín", "there is no time zone"),
        ("weekdays: mon-fri", "weekdays: mon-fry", "names no weekdays"),
        ("every_minutes: 5", "every_minutes: 7", "every_minutes has to divide 60"),
        ("most: 3", "most: 1", "most is less than count"),
        ("deadline: 06:00", "deadline: 26:00", "expected orders: deadline"),
        ("partner: acme", "partners: acme", "partners is not known"),
        ('account_id: "4711"', "account_id: [4711]", "only plain values are read here"),
        ("- name: bank", "- name: bank\n  - name: bank", "calendar bank is there twice"),
        ("watches:", "watched:", "line 2: watched is not known; known are watches, calendars"),
        ("calendars:", "watches:", "watches is there twice"),
    ],
)
def test_what_is_wrong_with_the_file_is_reported(before: str, after: str, said: str) -> None:
    assert before in FILE
    with pytest.raises(RuleViolation, match=said):
        read_clocks(FILE.replace(before, after, 1))


@pytest.mark.parametrize(
    ("arrivals", "hour", "state"),
    [
        ([], 5, ExpectedState.PENDING),
        ([5.5], 5.9, ExpectedState.PENDING),
        ([1, 6], 5.9, ExpectedState.MET),
        ([1, 6], 12, ExpectedState.MET),
        ([1], 6.1, ExpectedState.MISSING),
        ([1, 6.5], 7, ExpectedState.LATE),
        ([1, 2, 3, 4], 5, ExpectedState.TOO_MANY),
        ([1, 2, 3, 14], 15, ExpectedState.TOO_MANY),
    ],
)
def test_arrivals_are_judged(arrivals: list[float], hour: float, state: ExpectedState) -> None:
    day = judged(at(*arrivals), hour)
    assert (day.state, day.count, day.over) == (state, len(arrivals), False)


def test_a_day_is_over_when_the_next_one_begins() -> None:
    assert judged(at(1, 2), 24).over


def test_a_sentence_says_what_is_wrong() -> None:
    missing, late, many = judged(at(1), 7), judged(at(1, 7), 8), judged(at(1, 2, 3, 4), 5)
    assert sentence_of(EXPECTED, missing) == (
        "orders: 1 of 2 files came on queue jobs by 06:00 (UTC) on 2026-03-02"
    )
    assert "1 of 2 files on queue jobs came after 06:00" in sentence_of(EXPECTED, late)
    assert "4 files came on queue jobs for 2026-03-02; 3 are" in sentence_of(EXPECTED, many)


def test_one_notice_is_sent_of_what_is_not_known_yet() -> None:
    missing, late, many = judged(at(1), 7), judged(at(1, 7), 8), judged(at(1, 2, 3, 4), 5)
    assert needs_notice(None, missing) and needs_notice(None, late) and needs_notice(None, many)
    assert not needs_notice(missing, late) and has_arrived(missing, late)
    assert not needs_notice(late, late) and not has_arrived(late, late)
    closed = missing.model_copy(update={"state": ExpectedState.CLOSED})
    assert not needs_notice(closed, many) and not has_arrived(closed, late)
    # Until the day is over it is said again: the run of it is begun once.
    assert needs_notice(missing, missing)
    over = missing.model_copy(update={"over": True})
    assert not needs_notice(over, over)


def test_days_without_a_worker_are_made_up_for() -> None:
    friday = judged(at(1, 2), 7).model_copy(update={"day": date(2026, 2, 27)})
    assert first_day(DAY, []) == DAY
    assert first_day(DAY, [friday]) == friday.day
    ancient = friday.model_copy(update={"day": date(2024, 1, 1)})
    assert first_day(DAY, [ancient]) == DAY - timedelta(days=31)
