"""Leases of sessions and new connections, as the database and memory keep them."""

import asyncio

import pytest

from activities.transfers.partner_store import SqlPartnerStore
from adapters.database.engine import Database
from adapters.places.partner_places import Sessions, connections_of
from adapters.ports.errors import NotYet
from adapters.ports.transfers import PartnerStore
from tests.support.memory.partners import MemoryPartners
from workflows.transfers.partners import Limits, Partner, PlaceKind

ACME = Partner(
    name="acme",
    kind=PlaceKind.SFTP,
    host="sftp.acme.example",
    limits=Limits(sessions=2, connections_per_second=50),
)


@pytest.fixture(params=["memory", "database"])
async def store(request: pytest.FixtureRequest, database: Database) -> PartnerStore:
    return MemoryPartners() if request.param == "memory" else SqlPartnerStore(database)


async def test_workers_share_the_sessions_of_a_partner(store: PartnerStore) -> None:
    await store.put(ACME)
    used = most = 0

    async def work() -> None:
        nonlocal used, most
        async with Sessions(store, 60.0).session(ACME):
            used += 1
            most = max(used, most)
            await asyncio.sleep(0)
            used -= 1

    await asyncio.gather(*(work() for _ in range(6)))
    assert 1 <= most <= 2
    async with Sessions(store, 0.0).session(ACME), Sessions(store, 0.0).session(ACME):
        with pytest.raises(NotYet, match="sessions of acme"):
            async with Sessions(store, 0.0).session(ACME):
                pass


async def test_new_connections_are_no_sessions(store: PartnerStore) -> None:
    await store.put(ACME)
    slow = ACME.model_copy(update={"limits": Limits(sessions=9, connections_per_second=0.01)})
    async with Sessions(store, 0.0).session(slow):
        pass
    with pytest.raises(NotYet, match="new connections of acme"):
        async with Sessions(store, 0.0).session(slow):
            pass


@pytest.mark.parametrize("name", ["acme", connections_of("acme")])
async def test_of_those_who_ask_at_once_no_more_than_there_are_slots_are_let_in(
    store: PartnerStore, name: str
) -> None:
    await store.put(ACME)
    asked = [store.lease(name, f"worker-{number}", 3, 60.0) for number in range(12)]
    assert sum(await asyncio.gather(*asked)) == 3
