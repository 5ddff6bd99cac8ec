"""Connections that break, and those that stay open and say nothing, for each protocol."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import pytest

from activities.transfers.endpoints import partner_probe
from adapters.places.base import Timeouts
from adapters.ports.errors import Throttled, Unavailable
from adapters.ports.places import FileMissing, PartnerAway
from tests.adapters.transfers.conftest import Endpoint
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.cutting_proxy import CuttingProxy, cutting_proxy
from tests.support.transfers.places import MemoryNamings, joined, write
from workflows.transfers.partners import PlaceKind

CONTENT = random.Random(5).randbytes(12 << 20)
FAULTY = ["sftp", pytest.param("openssh", marks=pytest.mark.openssh), "azure", "s3", "https"]
pytestmark = pytest.mark.parametrize("kind", FAULTY, indirect=True)


@dataclass
class Faulty:
    """An endpoint, and the same one behind a proxy."""

    direct: Endpoint
    behind: Endpoint
    proxy: CuttingProxy


@asynccontextmanager
async def behind_proxy(far: Endpoint) -> AsyncGenerator[Faulty]:
    """Its connections pass a proxy."""
    partner = far.partner
    port = partner.port or urlsplit(partner.host).port or 0
    secrets = far.places.secrets.environment  # type: ignore[attr-defined]
    if partner.kind is PlaceKind.AZURE_BLOB:
        endpoint = secrets["ACCOUNT"].split("BlobEndpoint=")[1]
        port = urlsplit(endpoint).port or 0
    async with cutting_proxy(port) as proxy:
        moved = {
            name: value.replace(f":{port}", f":{proxy.port}") for name, value in secrets.items()
        }
        host = (partner.host or "").replace(f":{port}", f":{proxy.port}")
        fields = {"host": host, "port": proxy.port if partner.port else None}
        places = replace(
            far.places,
            secrets=replace(far.places.secrets, environment=moved, _known={}),
            timeouts=Timeouts(login=2.0, answer=1.5, keepalive=0.2),
        )
        behind = Endpoint(far.kind, partner.model_copy(update=fields), places, far.folder)
        yield Faulty(far, behind, proxy)


async def test_a_read_whose_connection_is_cut_continues_where_it_broke_off(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.bin", CONTENT)
    async with behind_proxy(far) as faulty:
        faulty.proxy.cut_after = 3 << 20
        read = bytearray()
        with pytest.raises(Unavailable):
            async with faulty.behind.open() as place:
                entry = await place.stat("file.bin")
                async for chunk in place.read(entry):
                    read += chunk
        assert 0 < len(read) < len(CONTENT)
        faulty.proxy.heal()
        async with faulty.behind.open() as place:
            entry = await place.stat("file.bin")
            read += await joined(place.read(entry, len(read)))
    assert bytes(read) == CONTENT


async def test_a_write_whose_connection_is_cut_is_whole_or_absent(far: Endpoint) -> None:
    namings = MemoryNamings()
    async with behind_proxy(far) as faulty:
        faulty.proxy.cut_after = 3 << 20
        with pytest.raises(Unavailable):
            async with faulty.behind.open() as place:
                await write(place, "file.bin", CONTENT, namings=namings)
        async with far.open() as place:
            with pytest.raises(FileMissing):
                await place.stat("file.bin")
        faulty.proxy.heal()
        async with faulty.behind.open() as place:
            written = await write(place, "file.bin", CONTENT, namings=namings)
            assert not written.picked_up
    async with far.open() as place:
        assert await joined(place.read(await place.stat("file.bin"))) == CONTENT


async def test_a_half_open_connection_means_that_the_partner_is_unavailable(far: Endpoint) -> None:
    async with far.open() as place:
        await write(place, "file.bin", CONTENT)
    async with behind_proxy(far) as faulty:
        faulty.proxy.stall_after = 3 << 20
        with pytest.raises(PartnerAway):
            async with faulty.behind.open() as place:
                await joined(place.read(await place.stat("file.bin")))
        assert faulty.proxy.cuts >= 1


async def test_a_server_that_accepts_and_does_not_answer_is_unavailable(far: Endpoint) -> None:
    async with behind_proxy(far) as faulty:
        faulty.proxy.stall_after = 0
        with pytest.raises((PartnerAway, Throttled)):
            async with faulty.behind.open() as place:
                await place.stat("file.bin")


async def test_a_port_without_a_listener_is_unavailable_and_the_probe_sees_it(
    far: Endpoint,
) -> None:
    async with behind_proxy(far) as faulty:
        behind = faulty.behind
    with pytest.raises(PartnerAway):
        async with behind.open() as place:
            await place.stat("file.bin")
    with pytest.raises(PartnerAway):
        await partner_probe(behind.places, MemoryPartners(behind.partner), "acme")
    await partner_probe(far.places, MemoryPartners(far.partner), "acme")


async def test_a_store_does_not_list_folders_below_the_one_that_is_asked_for(far: Endpoint) -> None:
    if far.kind not in ("azure", "s3"):
        return
    names = ["new.csv", *(f"done/{number}.csv" for number in range(20))]
    async with far.open() as place:
        await asyncio.gather(*(write(place, name, b"x") for name in names))
    async with behind_proxy(far) as faulty, faulty.behind.open() as place:
        assert [each.path for each in await place.list("*", 100)] == ["new.csv"]
        alone = faulty.proxy.passed
        assert len(await place.list("done/*", 100)) == 20
        assert alone < (faulty.proxy.passed - alone) / 2
