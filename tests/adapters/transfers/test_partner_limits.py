"""How often a partner is connected to: sessions, new connections, bandwidth, windows."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.ports.errors import NotYet
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.places import joined, open_places, write
from tests.support.transfers.sftp_server import PASSWORD, SftpSite, sftp_site
from workflows.transfers.partners import Limits, Partner, PlaceKind, Window

SECRETS = {"SFTP_PASSWORD": PASSWORD}


@pytest_asyncio.fixture
async def site(tmp_path: Path) -> AsyncIterator[SftpSite]:
    async with sftp_site(tmp_path / "served") as served:
        yield served


async def test_sessions_are_counted_over_all_that_use_a_partner(site: SftpSite) -> None:
    store = MemoryPartners()
    partner = site.partner(limits=Limits(sessions=2, connections_per_second=100))
    open_now = most = 0
    both = asyncio.Barrier(2)

    async def use() -> None:
        nonlocal open_now, most
        # Each as a worker of its own.
        async with open_places(SECRETS, store=store, wait=60.0).open(partner):
            open_now += 1
            most = max(most, open_now)
            await both.wait()
            open_now -= 1

    await asyncio.gather(*(use() for _ in range(6)))
    assert most == store.most_sessions["acme"] == 2


async def test_a_run_that_finds_no_session_comes_back_later(site: SftpSite) -> None:
    store = MemoryPartners()
    partner = site.partner(limits=Limits(sessions=1, connections_per_second=100))
    places = open_places(SECRETS, store=store, wait=0.0)
    async with places.open(partner):
        with pytest.raises(NotYet, match="sessions of acme are in use") as raised:
            async with places.open(partner):
                pass
    assert 5 <= raised.value.retry_after <= 15
    async with places.open(partner):
        pass


async def test_new_connections_are_spread(site: SftpSite) -> None:
    partner = site.partner(limits=Limits(sessions=9, connections_per_second=0.01))
    places = open_places(SECRETS, wait=0.0)
    async with places.open(partner):
        pass
    with pytest.raises(NotYet, match="new connections of acme"):
        async with places.open(partner):
            pass


async def test_bytes_pass_no_faster_than_a_partner_bears_in_however_many_files(
    tmp_path: Path,
) -> None:
    limits = Limits(sessions=2, connections_per_second=100, bytes_per_second=2 << 20)
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path), limits=limits)
    places = open_places(folders=[tmp_path])
    begun = time.monotonic()
    for number in range(8):
        async with places.open(partner) as place:
            written = await write(place, f"{number}.bin", bytes(100 << 10))
            await joined(place.read(written.entry))
    # Each of 100 KB is written, read back and read, in one of two sessions: 1 MB a second, of which
    # a quarter of a second may burst.
    assert time.monotonic() - begun >= 1.5


async def test_outside_of_its_windows_a_partner_is_left_alone(tmp_path: Path) -> None:
    window = Window(weekdays=(0, 1, 2, 3, 4), opens="22:00", closes="04:00")
    partner = Partner(
        name="acme",
        kind=PlaceKind.FOLDER,
        container=str(tmp_path),
        windows=(window,),
        zone="Europe/Berlin",
    )
    noon = datetime(2026, 3, 2, 20, 30, tzinfo=UTC)  # a Monday, half past nine in Berlin
    with pytest.raises(NotYet, match="2026-03-02 21:00 UTC") as raised:
        async with open_places(folders=[tmp_path], now=lambda: noon).open(partner):
            pass
    assert raised.value.retry_after == 1_800
    later = noon + timedelta(hours=5)
    async with open_places(folders=[tmp_path], now=lambda: later).open(partner):
        pass
