"""Answers and outages of an Azure Storage account become errors of the port."""

import asyncio
from pathlib import Path

import pytest

from adapters.azure.blobs import AzureBlobs
from adapters.ports.errors import PortError, Throttled, Unavailable
from stack.children import free_port
from workflows.shared.dependencies import Dependency

WRONG = (Dependency.BLOB_STORE, True)
"""Dependency of a failure, and that a setting is wrong."""


async def test_a_server_that_does_not_listen_is_unavailable(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}/devstoreaccount1"
    blobs = AzureBlobs(f"AccountName=a;AccountKey=a2V5;BlobEndpoint={endpoint}", "c")
    with pytest.raises(Unavailable):
        await blobs.delete("a")
    with pytest.raises(Unavailable):
        await blobs.create_container()
    with pytest.raises(Unavailable) as down:
        await blobs.probe()
    assert down.value.dependency is Dependency.BLOB_STORE
    assert not down.value.misconfigured


@pytest.mark.parametrize(
    ("status", "header", "expected", "retry_after"),
    [
        ("503 Busy", "Retry-After: 7", Throttled, 7),
        ("429 Slow down", "x: y", Throttled, None),
        ("500 Oops", "x: y", Unavailable, None),
        ("403 Forbidden", "x-ms-error-code: AuthenticationFailed", Unavailable, None),
        ("404 Gone", "x-ms-error-code: ContainerNotFound", Unavailable, None),
    ],
)
async def test_answers_become_errors_of_the_port(
    status: str, header: str, expected: type[PortError], retry_after: float | None
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\n{header}\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        blobs = AzureBlobs(
            f"AccountName=a;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:{port}/a", "c"
        )
        with pytest.raises(expected) as raised:
            await blobs.delete("x")
    assert type(raised.value) is expected
    if isinstance(raised.value, Throttled):
        assert raised.value.retry_after == retry_after


async def test_no_secret_stands_in_an_error(tmp_path: Path) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}/a"
    blobs = AzureBlobs(
        f"BlobEndpoint={endpoint};AccountName=a;SharedAccessSignature=sv=1&sig=topsecret", "c"
    )
    with pytest.raises(Unavailable) as raised:
        await blobs.stat("a")
    assert "topsecret" not in str(raised.value)
    with pytest.raises(Unavailable) as raised:
        await blobs.delete("a")
    assert "topsecret" not in str(raised.value)


async def test_an_address_that_does_not_exist_is_a_wrong_setting() -> None:
    endpoint = "http://no-such-host.invalid/a"
    blobs = AzureBlobs(f"AccountName=a;AccountKey=a2V5;BlobEndpoint={endpoint}", "c")
    with pytest.raises(Unavailable) as refused:
        await blobs.delete("a")
    assert (refused.value.dependency, refused.value.misconfigured) == WRONG
    with pytest.raises(Unavailable) as refused:
        await blobs.stat("a")
    assert (refused.value.dependency, refused.value.misconfigured) == WRONG
