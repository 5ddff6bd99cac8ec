"""`transfers.check_expected` and `transfers.record_expected`: files that routes expect."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.endpoints import now_utc
from adapters.ports.transfers import RouteStore
from adapters.ports.watches import Arrival, ExpectedStore
from contracts.transfers import RouteRule
from contracts.transfers.watches import (
    JUDGED,
    Expectation,
    ExpectedDay,
    ExpectedDays,
    ExpectedOrder,
    ExpectedResult,
    ExpectedState,
    GapOrder,
)
from domain.errors import RuleViolation
from domain.transfers.deadlines import Period, newest_day, periods
from domain.transfers.expectations import (
    BACK,
    first_day,
    has_arrived,
    judge,
    needs_notice,
    sentence_of,
)
from domain.transfers.patterns import matches
from domain.transfers.routing import takes

_DAYS: Final = BACK.days + 1
_PAGE: Final = 10_000
"""Arrivals that are read at once."""


@dataclass(frozen=True)
class ExpectedPorts:
    """What checks are given."""

    store: ExpectedStore
    routes: RouteStore
    now: Callable[[], datetime] = now_utc


class Expecting:
    """Judges days of expectations.

    Args:
        ports: Arrivals, what was recorded, and the rules.
    """

    def __init__(self, ports: ExpectedPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.check_expected")
    @translate_failures
    async def check_expected(self, order: ExpectedOrder) -> ExpectedResult:
        """Judge the days that are not over, and those that no check has seen; changes nothing.

        Raises:
            RuleViolation: The zone or the rule of a route is unknown.
        """
        expected, now = order.expectation, self._ports.now()
        newest = newest_day(expected, now)
        if newest is None:
            return ExpectedResult()
        rules = await self._rules(expected)
        recorded = {each.day: each for each in await self._ports.store.days(expected.name, _DAYS)}
        days: list[ExpectedDay] = []
        gaps: list[GapOrder] = []
        arrived: list[ExpectedDay] = []
        for period in periods(expected, first_day(newest, tuple(recorded.values())), newest):
            before = recorded.get(period.day)
            if before is not None and before.state is ExpectedState.CLOSED:
                continue
            day = judge(expected, period, await self._arrivals(expected, rules, period, now), now)
            if needs_notice(before, day):
                sentence = sentence_of(expected, day)[:500]
                gaps.append(GapOrder(day=day, sentence=sentence, notices=order.notices))
            if has_arrived(before, day):
                arrived.append(day)
            if day != before:
                days.append(day)
            if len(days) == JUDGED:
                # The next check continues behind them.
                break
        return ExpectedResult(days=tuple(days), gaps=tuple(gaps), arrived=tuple(arrived))

    async def _rules(self, expected: Expectation) -> Sequence[RouteRule]:
        """Those that an event has to match, all of them."""
        names = ("account_id", "source", "type", "subject")
        own = RouteRule(
            queue=expected.queue, rule="own", **{name: getattr(expected, name) for name in names}
        )
        if expected.rule is None:
            return [own]
        for rule in await self._ports.routes.rules():
            if (rule.queue, rule.rule) == (expected.queue, expected.rule):
                return [own, rule]
        raise RuleViolation(
            f"{expected.name} expects files of the rule {expected.queue}/{expected.rule}, which is "
            "not there; see `docflow routes list`"
        )

    async def _arrivals(
        self, expected: Expectation, rules: Sequence[RouteRule], period: Period, now: datetime
    ) -> Sequence[datetime]:
        begin, end = period.begins, now if period.ends is None else min(period.ends, now)
        counted: list[datetime] = []
        known, limit = set[str](), _PAGE
        while True:
            found = await self._ports.store.arrivals(expected.queue, begin, end, limit)
            new = [each for each in found if each.transfer_id not in known]
            counted += [each.at for each in new if _counts(expected, rules, each)]
            if len(found) < limit:
                return counted
            # Those of one moment may stand on two pages, or fill one.
            limit = limit if new else limit * 2
            begin = found[-1].at
            known = {each.transfer_id for each in found if each.at == begin}

    @activity.defn(name="transfers.record_expected")
    @translate_failures
    async def record_expected(self, order: ExpectedDays) -> None:
        """Record what notices were sent about."""
        await self._ports.store.record(order.days)


def _counts(expected: Expectation, rules: Sequence[RouteRule], arrival: Arrival) -> bool:
    if not matches(expected.file, arrival.file or ""):
        return False
    key = arrival.key
    return key is not None and all(takes(rule, key) for rule in rules)
