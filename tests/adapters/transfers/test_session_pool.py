"""SFTP sessions are handed on from step to step, within what the partner bears."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.places.partner_places import PartnerPlaces, SessionPool
from adapters.places.sftp_session import SftpSession
from adapters.ports.errors import NotYet
from adapters.ports.places import FileMissing, PartnerAway
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.cutting_proxy import cutting_proxy
from tests.support.transfers.places import joined, open_places, write
from tests.support.transfers.sftp_server import PASSWORD, SftpSite, sftp_site
from tests.support.waiting import eventually
from workflows.transfers.partners import Limits

SECRETS = {"SFTP_PASSWORD": PASSWORD}
ONE = Limits(sessions=1, connections_per_second=100)


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncGenerator[SftpSite]:
    async with sftp_site(tmp_path / "served") as running:
        yield running


def places_of(pool: SessionPool[SftpSession], store: MemoryPartners) -> PartnerPlaces:
    return open_places(SECRETS, store=store, pool=pool, wait=60.0)


async def sessions_of(store: MemoryPartners) -> int:
    """Sessions of the partner that are not available to others now."""
    most = 0
    while await store.lease("acme", f"probe-{most}", 20, 60.0):
        most += 1
    for number in range(most):
        await store.release("acme", f"probe-{number}")
    return 20 - most


async def test_steps_one_after_another_have_one_session(site: SftpSite) -> None:
    store = MemoryPartners()
    async with SessionPool[SftpSession](idle=60.0) as pool:
        places = places_of(pool, store)
        for number in range(3):
            async with places.open(site.partner()) as place:
                written = await write(place, f"{number}.csv", b"x")
        # The failure of one file is none of the session, and nor is another revision of the record.
        with pytest.raises(FileMissing):
            async with places.open(site.partner()) as place:
                await place.stat("none.csv")
        async with places.open(site.partner(revision=7, profile=place.profile)) as place:
            assert await joined(place.read(written.entry)) == b"x"
        assert site.logins == ["password"]
        assert await sessions_of(store) == 1
    assert await sessions_of(store) == 0


async def test_steps_at_the_same_time_have_their_own(site: SftpSite) -> None:
    async with SessionPool[SftpSession](idle=60.0) as pool:
        places = places_of(pool, MemoryPartners())
        async with places.open(site.partner()), places.open(site.partner()):
            assert len(site.logins) == 2
        async with places.open(site.partner()), places.open(site.partner()):
            assert len(site.logins) == 2


async def test_who_has_other_credentials_or_keys_has_another_session(site: SftpSite) -> None:
    key = site.client_key.export_private_key().decode()
    async with SessionPool[SftpSession](idle=60.0) as pool:
        places = open_places({**SECRETS, "KEY": key}, pool=pool)
        async with places.open(site.partner()):
            pass
        async with places.open(site.partner(password=None, private_key="env:KEY")):
            pass
        assert set(site.logins) == {"password", "key"}


async def test_an_idle_session_is_given_back(site: SftpSite) -> None:
    store = MemoryPartners()
    async with SessionPool[SftpSession](idle=0.0) as pool:
        async with places_of(pool, store).open(site.partner()):
            pass

        async def is_free() -> bool:
            return await sessions_of(store) == 0

        await eventually(is_free)


async def test_workers_share_the_one_session_of_a_partner(site: SftpSite) -> None:
    store, partner = MemoryPartners(), site.partner(limits=ONE)
    async with (
        SessionPool[SftpSession](idle=0.1) as first,
        SessionPool[SftpSession](idle=0.1) as second,
    ):
        for pool in (first, second, first):
            async with places_of(pool, store).open(partner) as place:
                await place.list("*", 1)
    assert store.most_sessions["acme"] == 1
    assert len(site.logins) == 3


async def test_an_old_session_is_left_to_others(site: SftpSite) -> None:
    store = MemoryPartners()
    async with SessionPool[SftpSession](age=0.0) as pool:
        places = places_of(pool, store)
        for _ in range(2):
            async with places.open(site.partner(limits=ONE)):
                pass
            assert await sessions_of(store) == 0
    assert len(site.logins) == 2


async def test_a_step_that_finds_no_session_comes_back_later(site: SftpSite) -> None:
    async with SessionPool[SftpSession](wait=0.0) as pool:
        places = places_of(pool, MemoryPartners())
        async with places.open(site.partner(limits=ONE)):
            with pytest.raises(NotYet, match="all sessions") as raised:
                async with places.open(site.partner(limits=ONE)):
                    pass
    assert 5 <= raised.value.retry_after <= 15


async def test_a_session_that_died_is_not_handed_on(site: SftpSite) -> None:
    async with SessionPool[SftpSession](idle=60.0) as pool, cutting_proxy(site.port) as proxy:
        places = places_of(pool, MemoryPartners())
        partner = site.partner(port=proxy.port)
        async with places.open(partner):
            pass
        # It is cut with the next byte.
        proxy.cut_after = 0
        with pytest.raises(PartnerAway):
            async with places.open(partner):
                pass
        proxy.heal()
        async with places.open(partner) as place:
            assert await place.list("*", 1) == []
