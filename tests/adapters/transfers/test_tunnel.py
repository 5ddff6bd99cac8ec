"""The tunnel that checks the addresses which `obstore` connects to."""

import asyncio
import base64
import fcntl
import os
import socket
import struct
import termios
from urllib.parse import urlsplit

import httpx
import obstore
import pytest
from obstore.store import S3Store

from adapters.places.egress import Egress, Tunnel
from tests.support.certificates import certificate_for
from tests.support.transfers.http_files import http_files
from tests.support.waiting import eventually


async def test_what_is_permitted_passes_encrypted_end_to_end() -> None:
    certificate = certificate_for("127.0.0.1")
    content = bytes(300_000)
    async with http_files(certificate.server) as server, Tunnel(Egress(local=True)).serve() as way:
        store = S3Store(
            "far",
            endpoint=f"https://127.0.0.1:{server.port}",
            region="us-east-1",
            access_key_id="id",
            secret_access_key="planted-secret",
            client_options={"proxy_url": way.url, "allow_invalid_certificates": True},
        )
        await obstore.put_async(store, "file.bin", content, use_multipart=False)
        assert server.files == {"far/file.bin": content}
        url = f"https://127.0.0.1:{server.port}/far/file.bin"
        async with httpx.AsyncClient(
            proxy=way.url, verify=certificate.client, trust_env=False
        ) as client:
            assert (await client.get(url)).content == content
        assert way.refused is None


async def test_what_is_not_permitted_is_refused_and_reported() -> None:
    async with (
        Tunnel(Egress()).serve() as way,
        httpx.AsyncClient(proxy=way.url, trust_env=False) as client,
    ):
        with pytest.raises(httpx.ProxyError, match="403"):
            await client.get("https://127.0.0.1:443/")
        assert way.refused is not None and "127.0.0.1" in way.refused


async def test_others_on_this_machine_cannot_use_it() -> None:
    certificate = certificate_for("127.0.0.1")
    async with http_files(certificate.server) as server, Tunnel(Egress(local=True)).serve() as way:
        stranger = way.url.replace("docflow:", "docflow:x")
        async with httpx.AsyncClient(
            proxy=stranger, verify=certificate.client, trust_env=False
        ) as client:
            with pytest.raises(httpx.ProxyError, match="502"):
                await client.get(f"https://127.0.0.1:{server.port}/")
        assert server.requests == []


async def test_a_peer_that_stopped_reading_does_not_keep_its_connection_open() -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        before = open_files()
        async with Tunnel(Egress(local=True)).serve() as way:
            asked = urlsplit(way.url)
            _, writer = await asyncio.open_connection(asked.hostname, asked.port)
            password = base64.b64encode(f"docflow:{asked.password}".encode()).decode()
            target = f"127.0.0.1:{listener.getsockname()[1]}"
            head = f"CONNECT {target} HTTP/1.1\r\nProxy-Authorization: Basic {password}\r\n\r\n"
            writer.write(head.encode() + bytes(32 << 20))
            far, _ = await loop.sock_accept(listener)
            await eventually(lambda: is_full(far))
        writer.transport.abort()
        with far:
            # The server of the tunnel and both ends of its connection are closed; `far` is ours.
            await eventually(lambda: are_open(before + 1))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def are_open(expected: int) -> bool:
    return open_files() == expected


async def is_full(connection: socket.socket) -> bool:
    """Whether more has arrived than its reader took, and no more comes."""
    waiting = struct.pack("i", 0)
    earlier = fcntl.ioctl(connection, termios.FIONREAD, waiting)
    await asyncio.sleep(0.05)
    return earlier != waiting and fcntl.ioctl(connection, termios.FIONREAD, waiting) == earlier
