"""A source that is replaced between the last look at it and its removal stays."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from azure.storage.queue import AccountSasPermissions, ResourceTypes, generate_account_sas

from adapters.aws.session import AwsSettings
from adapters.azure.storage_account import StorageAccount
from adapters.places.base import BasePlace
from adapters.places.objects import ObjectPlace
from adapters.ports.places import Entry, FileChanged, Place
from tests.adapters.transfers.conftest import Endpoint, azure_end, s3_end
from tests.support.transfers.http_files import http_files
from tests.support.transfers.places import joined, open_places, pieces, write
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.settings import Overwrite

DELETED = b"<DeleteResult><Deleted><Key>a.csv</Key></Deleted></DeleteResult>"
ODD = "Übersicht %20 #1.csv"


class Between:
    """The partner puts another file there as soon as one was looked at."""

    def __init__(self, place: Place, patch: pytest.MonkeyPatch) -> None:
        assert isinstance(place, BasePlace)
        self._place, self._look, self._patch = place, place.entry, patch
        patch.setattr(place, "entry", self._entry)

    async def _entry(self, path: str) -> Entry | None:
        found = await self._look(path)
        self._patch.setattr(self._place, "entry", self._look)
        await write(self._place, path, b"newer", overwrite=Overwrite.REPLACE, owner="partner")
        return found


async def stays(end: Endpoint) -> None:
    """A file of an endpoint is deleted, unless it is replaced right before."""
    async with end.open() as place:
        entry = (await write(place, ODD, b"older")).entry
        with pytest.MonkeyPatch.context() as patch:
            Between(place, patch)
            with pytest.raises(FileChanged, match="is another"):
                await place.delete(entry)
        now = await place.stat(ODD)
        assert await joined(place.read(now)) == b"newer", end.kind
        assert await place.delete(now)
        assert not await place.delete(now)


def with_sas(end: Endpoint, account: str) -> Endpoint:
    """The same endpoint, by a URL and a SAS."""
    at = StorageAccount.from_connection_string(account)
    sas = generate_account_sas(
        at.name,
        at.key or "",
        ResourceTypes(object=True, container=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, create=True),
        datetime.now(UTC) + timedelta(hours=1),
        services="b",
    )
    partner = end.partner.model_copy(update={"host": at.endpoint})
    return replace(end, partner=partner, places=open_places({"ACCOUNT": sas}))


async def test_a_file_that_is_replaced_right_before_its_deletion_stays(
    azure_account: str, aws_account: AwsSettings
) -> None:
    await stays(azure_end(azure_account))
    await stays(with_sas(azure_end(azure_account), azure_account))
    await stays(s3_end(aws_account))
    async with http_files() as server:
        host = f"http://127.0.0.1:{server.port}"
        partner = Partner(name="acme", kind=PlaceKind.HTTPS, host=host)
        await stays(Endpoint("https", partner, open_places()))


class Hurried(ObjectPlace):
    """Its partner replaces an object as soon as that was copied."""

    async def stat(self, path: str) -> Entry:
        if path == "done/a.csv":
            await self.put("a.csv", pieces(b"newer"), 5, replaces=True)
        return await super().stat(path)


async def test_a_source_that_is_replaced_while_it_is_moved_stays(aws_account: AwsSettings) -> None:
    async with s3_end(aws_account).open() as place:
        assert isinstance(place, ObjectPlace)
        entry = (await write(place, "a.csv", b"older")).entry
        place.__class__ = Hurried
        with pytest.raises(FileChanged):
            await place.move(entry, "done/a.csv")
        assert await joined(place.content("a.csv")) == b"newer"
        assert await place.entry("done/a.csv") is None


@asynccontextmanager
async def store_without_conditions(tags: str) -> AsyncGenerator[tuple[Endpoint, list[str]]]:
    """A bucket that deletes no version alone; the tags that its object has at each look."""
    looks, asked = iter(tags), list[str]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", head)
        await reader.readexactly(int(length[1]) if length else 0)
        asked.append(head.partition(" ")[0])
        status, lines, body = "200 OK", "", DELETED
        if head.startswith("head"):
            body = b""
            lines = f'ETag: "{next(looks)}"\r\nLast-Modified: Sun, 01 Mar 2026 10:00:00 GMT\r\n'
        elif "if-match" in head:
            status = "501 Not Implemented"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{lines}".encode())
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield s3_end(AwsSettings("us-east-1", f"http://127.0.0.1:{port}")), asked


async def test_a_store_that_offers_no_such_deletes_is_looked_at_right_before() -> None:
    async with store_without_conditions("111") as (end, asked), end.open() as place:
        assert await place.delete(await place.stat("a.csv"))
        assert asked == ["head", "head", "delete", "head", "post"]
    async with store_without_conditions("112") as (end, asked), end.open() as place:
        with pytest.raises(FileChanged):
            await place.delete(await place.stat("a.csv"))
        assert asked == ["head", "head", "delete", "head"]
