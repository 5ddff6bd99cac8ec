"""What object stores answer, and what follows: a file's failure is not an outage of a partner."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from activities.transfers.endpoints import Breaker
from adapters.azure.storage_account import StorageAccount
from adapters.ports.errors import Denied, Throttled
from adapters.ports.places import LoginRefused, NameRefused, PartnerAway, Place, PlaceError
from stack.children import free_port
from tests.support.transfers.places import open_places
from workflows.transfers.partners import Partner, PlaceKind

Asked = Callable[[Place], Awaitable[Any]]
XML = '<?xml version="1.0"?><Error><Code>{}</Code><Message>planted</Message></Error>'
BULK = (
    '<?xml version="1.0"?><DeleteResult><Error><Key>file.csv</Key><Code>{}</Code>'
    "<Message>no</Message></Error></DeleteResult>"
)


@asynccontextmanager
async def answering(status: str, body: str) -> AsyncGenerator[Partner]:
    """A bucket whose server answers every request the same."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next((each for each in head.split("\r\n") if "content-length" in each), ":0")
        await reader.readexactly(int(length.partition(":")[2]))
        content = b"" if head.startswith("head") else body.encode()
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n".encode())
        writer.write(b"Connection: close\r\n\r\n" + content)
        await writer.drain()
        writer.close()

    port = free_port()
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield Partner(
            name="acme",
            kind=PlaceKind.S3,
            host=f"http://127.0.0.1:{port}",
            container="far",
            user="test",
            token="env:SECRET",
        )


async def listed(place: Place) -> None:
    await place.list("*", 5)


async def asked_for(place: Place) -> None:
    await place.stat("file.csv")


async def removed(place: Place) -> None:
    await place.remove("file.csv")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("status", "body", "asked", "raised", "said"),
    [
        (
            "403 Forbidden",
            XML.format("SignatureDoesNotMatch"),
            listed,
            LoginRefused,
            "SignatureDoes",
        ),
        ("400 Bad Request", XML.format("ExpiredToken"), listed, LoginRefused, "ExpiredToken"),
        ("403 Forbidden", XML.format("InvalidAccessKeyId"), asked_for, LoginRefused, "credentials"),
        ("403 Forbidden", XML.format("AccessDenied"), asked_for, Denied, "access to 'file.csv'"),
        ("400 Bad Request", XML.format("KeyTooLongError"), listed, NameRefused, "cannot be a name"),
        ("400 Bad Request", XML.format("BadDigest"), listed, PlaceError, "400"),
        ("404 Not Found", XML.format("NoSuchBucket"), listed, PlaceError, "no container or bucket"),
        ("503 Slow Down", XML.format("SlowDown"), listed, Throttled, "fewer requests"),
        ("500 Oops", XML.format("InternalError"), listed, PartnerAway, "cannot be reached"),
        ("200 OK", BULK.format("AccessDenied"), removed, Denied, "refuses access to 'file.csv'"),
        ("200 OK", BULK.format("SlowDown"), removed, Throttled, "fewer requests"),
        ("200 OK", BULK.format("ObjectLocked"), removed, PlaceError, "ObjectLocked"),
    ],
)
async def test_an_answer_is_a_failure_of_its_kind(
    status: str, body: str, asked: Asked, raised: type[Exception], said: str
) -> None:
    async with answering(status, body) as partner:
        with pytest.raises(raised, match=said) as failure:
            async with open_places({"SECRET": "planted-secret-key"}).open(partner) as place:
                await asked(place)
    assert type(failure.value) is raised
    assert "planted-secret" not in str(failure.value)


async def test_credentials_that_have_expired_are_an_outage_of_the_partner_and_no_files_failure(
    azure_account: str,
) -> None:
    """Every run waits behind the breaker, whose probe sees it too."""
    endpoint = StorageAccount.from_connection_string(azure_account).endpoint
    expired = "sv=2022-11-02&sr=c&sp=rwl&se=2020-01-01T00%3A00%3A00Z&sig=AAAA"
    partner = Partner(
        name="acme",
        kind=PlaceKind.AZURE_BLOB,
        host=endpoint,
        container="far",
        token="env:SECRET",
    )
    breaker = Breaker(open_places({"SECRET": expired}))
    for _ in range(2):
        with pytest.raises(PartnerAway, match="does not accept our credentials") as failure:
            async with breaker.open(partner) as place:
                await place.stat("file.csv")
        assert "AAAA" not in str(failure.value)
    with pytest.raises(PartnerAway, match="does not accept our credentials"):
        async with breaker.probing.open(partner) as place:
            await place.ping()


def a_list(*objects: tuple[str, int], folders: tuple[str, ...] = ()) -> str:
    changed = "<LastModified>2026-03-01T10:00:00.000Z</LastModified>"
    found = "".join(
        f'<Contents><Key>{key}</Key>{changed}<Size>{size}</Size><ETag>"1"</ETag></Contents>'
        for key, size in objects
    )
    found += "".join(
        f"<CommonPrefixes><Prefix>{each}/</Prefix></CommonPrefixes>" for each in folders
    )
    return (
        '<?xml version="1.0"?><ListBucketResult><Name>far</Name><IsTruncated>false</IsTruncated>'
        f"<KeyCount>{len(objects)}</KeyCount>{found}</ListBucketResult>"
    )


@pytest.mark.parametrize(
    ("objects", "folders", "files"),
    [
        ([("in/", 0), ("in/a.csv", 1)], (), ["in/a.csv"]),
        ([("in/a.csv", 1), ("in/done", 0)], ("in/done",), ["in/a.csv"]),
        ([("in/a.csv", 1), ("in/done", 0)], (), ["in/a.csv", "in/done"]),
        ([("in/a.csv", 1), ("in/done", 7)], ("in/done",), ["in/a.csv", "in/done"]),
    ],
)
async def test_an_object_that_marks_a_folder_is_no_file(
    objects: list[tuple[str, int]], folders: tuple[str, ...], files: list[str]
) -> None:
    async with (
        answering("200 OK", a_list(*objects, folders=folders)) as partner,
        open_places({"SECRET": "planted"}).open(partner) as place,
    ):
        assert [each.path for each in await place.list("in/*", 5)] == files


@pytest.mark.parametrize("key", ["in//a.csv", "in/../a.csv", "in/./a.csv"])
async def test_a_key_that_is_no_path_is_named_and_is_no_outage(key: str) -> None:
    async with (
        answering("200 OK", a_list((key, 1))) as partner,
        open_places({"SECRET": "planted"}).open(partner) as place,
    ):
        with pytest.raises(PlaceError, match="give that object another key") as raised:
            await listed(place)
    assert ascii(key) in str(raised.value) and "cannot be reached" not in str(raised.value)
