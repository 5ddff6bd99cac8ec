"""What people do with rules, and what is refused."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from activities.transfers.reception import RouteCache
from activities.transfers.records import Transfer
from tests.support.memory.routes import MemoryRoutes
from tests.support.transfers.events import a_transfer
from workers.shared.services.errors import Forbidden, InvalidRequest, NotFound, Refused
from workers.shared.services.identity import MAPPER, OPERATOR, Identity
from workers.transfers.routes import RouteService, UnmatchedEvents, read_key
from workflows.shared.runs import Visible
from workflows.transfers.events import RouteKey, TransferStatus
from workflows.transfers.routes import RouteRemark, RouteRule

ADA = Identity("ada", (), frozenset({OPERATOR}))
EVENT = b'{"source": "TMS", "type": "t", "subject": "s", "data": {"accountId": "A"}}'


class Unmatched:
    """A `SqlTransferStore` in which one event was matched by nothing, or so many as that one."""

    number = 1
    row = a_transfer("0" * 64, TransferStatus.NO_ASSIGNED, source="TMS")

    async def record(self, row: Transfer) -> bool:
        raise NotImplementedError

    async def trail(self, transfer_id: str) -> Sequence[Transfer]:
        return [self.row]

    async def newest(
        self,
        *,
        limit: int,
        visible: Visible | None = None,
        status: TransferStatus | None = None,
        queue: str | None = None,
        account_id: str | None = None,
        before: datetime | None = None,
        behind: str | None = None,
    ) -> Sequence[Transfer]:
        return [self.row] * min(limit, self.number) if status is self.row.status else []

    async def count(self, status: TransferStatus) -> int:
        return self.number if status is self.row.status else 0


@pytest.fixture
def store() -> MemoryRoutes:
    return MemoryRoutes()


@pytest.fixture
def routes(store: MemoryRoutes) -> RouteService:
    return RouteService(store, Unmatched(), ["jobs", "jobstmsroute"])


async def test_a_rule_is_added_with_who_and_when(routes: RouteService) -> None:
    added = await routes.add(ADA, {"queue": "jobs", "source": "TMS"})
    assert (added.rule, added.by) == ("1", "ada")
    assert added.changed_at is not None
    assert (await routes.listing(ADA)).rules == [added]
    assert await routes.trail(ADA) == [(added, "added")]


async def test_rules_without_a_name_are_numbered(routes: RouteService) -> None:
    await routes.add(ADA, {"queue": "jobs", "source": "a", "rule": "2"})
    added = await routes.add(ADA, {"queue": "jobs", "source": "b"})
    assert added.rule == "3"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"queue": "jobtmsroute"}, "did you mean jobstmsroute"),
        ({"queue": "elsewhere"}, "there are jobs, jobstmsroute"),
        ({"queue": "jobs", "rule": "taken"}, "has a rule taken already"),
        ({"queue": "jobs", "source": "TMS.*"}, "jobs/taken, with nothing to say"),
        ({"queue": "jobs", "source": "T*"}, None),
        ({"queue": "jobs", "source": "TMS.*", "priority": 1}, None),
    ],
)
async def test_what_is_refused_says_why(
    routes: RouteService, fields: dict[str, Any], reason: str | None
) -> None:
    await routes.add(ADA, {"queue": "jobs", "rule": "taken", "source": "TMS.*"})
    if reason is None:
        await routes.add(ADA, fields)
    else:
        with pytest.raises(Refused, match=reason):
            await routes.add(ADA, fields)


async def test_every_wrong_field_is_named(routes: RouteService) -> None:
    with pytest.raises(InvalidRequest, match=r"queue: .*; accountId: .*; priority: "):
        await routes.add(ADA, {"queue": "No Queue", "account_id": "", "priority": "high"})


async def test_only_operators_see_and_change_rules(routes: RouteService) -> None:
    mapper = Identity("bob", (1,), frozenset({MAPPER}))
    with pytest.raises(Forbidden):
        await routes.listing(mapper)
    with pytest.raises(Forbidden):
        await routes.add(mapper, {"queue": "jobs"})


async def test_enabling_a_rule_may_be_a_tie(routes: RouteService) -> None:
    await routes.add(ADA, {"queue": "jobs", "rule": "old", "source": "TMS"})
    await routes.enable(ADA, "jobs", "old", enabled=False)
    await routes.add(ADA, {"queue": "jobs", "rule": "new", "source": "TMS"})
    with pytest.raises(Refused, match="jobs/new"):
        await routes.enable(ADA, "jobs", "old", enabled=True)
    changes = [(rule.rule, change, rule.enabled) for rule, change in await routes.trail(ADA)]
    assert changes == [("new", "added", True), ("old", "changed", False), ("old", "added", True)]


async def test_what_is_not_there_cannot_be_changed(routes: RouteService) -> None:
    with pytest.raises(NotFound):
        await routes.enable(ADA, "jobs", "1", enabled=False)
    with pytest.raises(NotFound):
        await routes.remove(ADA, "jobs", "1")


async def test_the_listing_names_what_is_wrong(store: MemoryRoutes, routes: RouteService) -> None:
    tied = [RouteRule(queue="jobs", rule=name, source="TMS") for name in ("a", "b")]
    for each in tied:
        await store.put(each)
    store.foreign = [RouteRemark(queue="jobs", rule="c", reason="EventType missing or blank")]
    found = await routes.listing(ADA)
    assert found.ties == [(tied[0], tied[1])]
    assert found.unusable == store.foreign


async def test_unmatched_events_are_listed(routes: RouteService) -> None:
    assert await routes.unmatched(ADA) == UnmatchedEvents([Unmatched.row], 1)


async def test_of_many_unmatched_events_the_number_is_reported(
    routes: RouteService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Unmatched, "number", 51)
    found = await routes.unmatched(ADA)
    assert (len(found.rows), found.total) == (50, 51)


async def test_an_event_is_tested(routes: RouteService) -> None:
    await routes.add(ADA, {"queue": "jobs", "source": "TMS"})
    verdict = await routes.test(ADA, read_key(EVENT))
    assert verdict.winner is not None
    assert verdict.winner.queue == "jobs"


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"source": "s", "type": 3}', "lacks data.accountId, type, subject"),
        (b"[" * 70_000, "over 64 KiB"),
        (b"[" * 60_000, "not JSON"),
    ],
)
def test_what_is_no_event_is_explained(event: bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read_key(event)


async def test_rules_are_read_again_only_when_they_have_changed() -> None:
    store, now = MemoryRoutes([RouteRule(queue="jobs", rule="1")]), [0.0]
    cache = RouteCache(store, seconds=5, clock=lambda: now[0])
    key = RouteKey(account_id="a", source="b", type="c", subject="d")
    assert (await cache.table()).find(key) is not None
    await store.remove("jobs", "1", None)
    now[0] = 4.9
    assert (await cache.table()).find(key) is not None
    now[0] = 5.0
    assert (await cache.table()).find(key) is None
    now[0] = 60.0
    await cache.table()
    assert store.reads == 2
