"""Expected files over real tables."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.transfers import watches
from activities.transfers.store import SqlRouteStore, SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore
from activities.transfers.watches import ExpectedPorts, Expecting
from adapters.database.engine import Database
from tests.support.transfers.events import a_transfer
from workflows.transfers.events import TransferStatus, transfer_id_of
from workflows.transfers.routes import RouteRule
from workflows.transfers.watches import (
    Expectation,
    ExpectationCheckInput,
    ExpectedDay,
    ExpectedDays,
    ExpectedResult,
    ExpectedState,
)

DAY = date(2026, 3, 2)
BEGINS = datetime(2026, 3, 2, tzinfo=UTC)


class Checks:
    """An expectation over the tables; hours are those of the first day."""

    def __init__(self, database: Database, **fields: Any) -> None:
        known = {"name": "orders", "queue": "jobs", "count": 2, "deadline": time(6)}
        self.expectation = Expectation.model_validate({**known, **fields})
        self.store, self.transfers = SqlExpectedStore(database), SqlTransferStore(database)
        self.routes = SqlRouteStore(database)

    async def came(self, hour: float, id: str, **fields: Any) -> None:
        """A transfer was assigned, and its job began and ended."""
        known: dict[str, Any] = {
            "source": "TMS.Route",
            "account_id": "TMS001",
            "type": "Succeeded",
            "subject": "File Upload",
            "queue": "jobs",
            "file": f"{id}.csv",
        }
        row = {**known, **fields}
        steps = (TransferStatus.ASSIGNED, TransferStatus.READ_MESSAGE, TransferStatus.SUCCEEDED)
        for minutes, status in enumerate(steps):
            at = BEGINS + timedelta(hours=hour, minutes=minutes)
            transfer_id = transfer_id_of(row["source"], id)
            await self.transfers.record(a_transfer(transfer_id, status, at=at, event_id=id, **row))

    async def check(self, hour: float, *, record: bool = True) -> ExpectedResult:
        now = BEGINS + timedelta(hours=hour)
        steps = Expecting(ExpectedPorts(self.store, self.routes, lambda: now))
        order = ExpectationCheckInput(expectation=self.expectation)
        result = await ActivityEnvironment().run(steps.check_expected, order)
        if record:
            days = ExpectedDays(days=result.days)
            await ActivityEnvironment().run(steps.record_expected, days)
        return result


def states(days: tuple[ExpectedDay, ...]) -> list[tuple[int, str, int]]:
    return [(each.day.day, each.state.value, each.count) for each in days]


async def test_a_missing_file_causes_a_notice_and_is_closed_when_it_comes(
    database: Database,
) -> None:
    checks = Checks(database)
    await checks.came(1, "a")
    assert states((await checks.check(5)).days) == [(2, "pending", 1)]
    found = await checks.check(6.5)
    assert states(tuple(each.day for each in found.gaps)) == [(2, "missing", 1)]
    assert "1 of 2 files" in found.gaps[0].sentence
    await checks.came(7, "b")
    late = await checks.check(8)
    assert late.gaps == () and states(late.arrived) == [(2, "late", 2)]
    again = await checks.check(9)
    assert (again.gaps, again.arrived, again.days) == ((), (), ())


async def test_a_check_that_is_made_again_says_the_same(database: Database) -> None:
    checks = Checks(database)
    assert await checks.check(7, record=False) == await checks.check(7)


async def test_files_that_came_late_between_two_checks_cause_a_notice(database: Database) -> None:
    checks = Checks(database, count=1)
    await checks.check(5.9)
    await checks.came(6.01, "a")
    found = await checks.check(6.1)
    assert [each.day.state for each in found.gaps] == [ExpectedState.LATE]
    assert found.arrived == ()


async def test_too_many_cause_a_notice_before_the_deadline(database: Database) -> None:
    checks = Checks(database, count=1, most=2)
    for id in "abc":
        await checks.came(1, id)
    found = await checks.check(2)
    assert states(tuple(each.day for each in found.gaps)) == [(2, "too-many", 3)]


async def test_files_are_counted_beyond_a_page(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_PAGE", 2)
    checks = Checks(database, count=9)
    # Three of one moment, which are more than a page.
    for hour, id in ((1, "a"), (2, "b"), (2, "c"), (2, "d"), (3, "e")):
        await checks.came(hour, id)
    assert states((await checks.check(5)).days) == [(2, "pending", 5)]


async def test_only_what_the_route_takes_counts(database: Database) -> None:
    checks = Checks(database, count=9, rule="1", file="*.csv")
    await checks.routes.put(RouteRule(queue="jobs", rule="1", account_id="TMS*"))
    await checks.came(1, "a")
    await checks.came(1, "b", account_id="OTHER")
    await checks.came(1, "c", queue="jobscalgary")
    await checks.came(1, "d", file="d.txt")
    # Before the day began, and carried out again within it.
    await checks.came(-2, "e")
    await checks.came(2, "e")
    assert states((await checks.check(5)).days) == [(2, "pending", 1)]


async def test_a_missing_rule_is_reported(database: Database) -> None:
    with pytest.raises(ApplicationError, match="rule jobs/7, which is not there"):
        await Checks(database, rule="7").check(5)


async def test_days_that_no_worker_saw_are_judged_afterwards(database: Database) -> None:
    checks = Checks(database, count=1)
    await checks.came(1, "a")
    await checks.check(5)
    await checks.came(50, "b")
    found = await checks.check(24 * 2 + 7)
    assert states(found.days) == [(2, "met", 1), (3, "missing", 0), (4, "met", 1)]
    assert [each.day.day.day for each in found.gaps] == [3]
    assert (await checks.check(24 * 2 + 8)).gaps == ()


async def test_a_long_absence_is_made_up_for_in_several_checks(database: Database) -> None:
    checks = Checks(database, count=1)
    await checks.came(1, "a")
    await checks.check(5)
    now = 24 * 12 + 7
    found = [await checks.check(now) for _ in range(3)]
    reported = [each.day.day.day for result in found for each in result.gaps]
    assert sorted(set(reported)) == list(range(3, 15))
    assert [len(result.days) for result in found] == [8, 5, 0]


async def test_what_a_person_has_closed_stays_closed(database: Database) -> None:
    checks = Checks(database)
    (gap,) = (await checks.check(7)).gaps
    closed = gap.day.model_copy(update={"state": ExpectedState.CLOSED, "by": "ann"})
    await checks.store.record([closed])
    await checks.store.record([gap.day])
    assert await checks.store.days("orders", 5) == [closed]
    await checks.came(8, "a")
    assert (await checks.check(9)).days == ()
