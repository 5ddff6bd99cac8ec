"""A destination without room is waited for; other failures of a write are the file's, and a flush
that failed is a remark."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

import asyncssh
import pytest
import pytest_asyncio

from activities.transfers.endpoints import partner_probe
from adapters.ports.places import NameTaken, PartnerFull, PlaceError
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.places import open_places, write
from tests.support.transfers.sftp_server import PASSWORD, Whole, sftp_site
from workflows.transfers.partners import Partner, Rename, ServerProfile

CONTENT = bytes(3 << 20)
PROFILE = ServerProfile(rename=Rename.ATOMIC_REPLACE)


class Full(Whole):
    """Its disk has room for some bytes; it words that as SFTP version 3 does."""

    room: ClassVar[int] = 0
    tells: ClassVar[bool] = True

    def write(self, file_obj: object, offset: int, data: bytes) -> Any:
        if offset + len(data) > self.room:
            raise asyncssh.SFTPFailure("Failure")
        return super().write(file_obj, offset, data)

    def statvfs(self, path: bytes) -> Any:
        if not self.tells:
            raise asyncssh.SFTPOpUnsupported("no such extension")
        return asyncssh.SFTPVFSAttrs(frsize=1, bavail=self.room, files=9, favail=9)


@pytest_asyncio.fixture
async def full(tmp_path: Path) -> AsyncGenerator[Partner]:
    """A partner with room for 1 MB."""
    Full.room, Full.tells = 1 << 20, True
    async with sftp_site(tmp_path, Full) as site:
        yield site.partner(profile=PROFILE)


PLACES = open_places({"SFTP_PASSWORD": PASSWORD})


async def test_a_write_without_room_waits_for_the_partner(full: Partner, tmp_path: Path) -> None:
    with pytest.raises(PartnerFull, match=r"no room for 3,145,728 bytes") as raised:
        async with PLACES.open(full) as place:
            await write(place, "file.bin", CONTENT)
    assert raised.value.room == len(CONTENT)
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []
    assert await partner_probe(PLACES, MemoryPartners(full), full.name) == 1 << 20
    Full.room = 4 << 20
    async with PLACES.open(full) as place:
        await write(place, "file.bin", CONTENT)


async def test_a_name_that_is_taken_on_a_full_disk_is_the_files_failure(full: Partner) -> None:
    async with PLACES.open(full) as place:
        await write(place, "file.bin", b"theirs")
    Full.room = 0
    with pytest.raises(NameTaken):
        async with PLACES.open(full) as place:
            await write(place, "file.bin", CONTENT)


async def test_a_server_that_does_not_tell_its_room_has_failed_the_file(full: Partner) -> None:
    Full.tells = False
    with pytest.raises(PlaceError, match="Failure"):
        async with PLACES.open(full) as place:
            await write(place, "file.bin", CONTENT)
    assert await partner_probe(PLACES, MemoryPartners(full), full.name) is None


class WithoutFlush(Whole):
    """Writes files, and fails to flush them to its disk."""

    def fsync(self, file_obj: object) -> None:
        raise asyncssh.SFTPFailure("input/output error")


@pytest.mark.parametrize("rename", [Rename.ATOMIC_REPLACE, Rename.DIRECT])
async def test_a_flush_that_failed_is_a_remark(tmp_path: Path, rename: Rename) -> None:
    profile = ServerProfile(rename=rename)
    async with (
        sftp_site(tmp_path, WithoutFlush) as site,
        PLACES.open(site.partner(profile=profile)) as place,
    ):
        written = await write(place, "file.bin", b"bytes")
    assert written.remarks == ("the server did not flush the file to its disk: input/output error",)
