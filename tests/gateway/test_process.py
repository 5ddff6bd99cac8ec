"""A gateway that starts, and one that is asked to stop."""

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator

import pytest

from tests.support.gateway import Stack, served, token
from workers.shared.errors import SettingsError
from workers.shared.gateway.process import serve

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_port_that_is_taken(stack: Stack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"^port {port} cannot be used: .* another"):
            await serve(stack.app, asyncio.Event(), host="127.0.0.1", port=port)


async def test_a_host_that_cannot_be_used_is_named_with_its_setting(stack: Stack) -> None:
    says = "^--host or DOCFLOW_HTTP_HOST: cannot listen at 'nosuch.invalid'"
    with pytest.raises(SettingsError, match=says):
        await serve(stack.app, asyncio.Event(), host="nosuch.invalid", port=0)


async def test_the_address_that_it_logs_is_a_url(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    stop = asyncio.Event()
    stop.set()
    with caplog.at_level(logging.INFO, "workers.shared.gateway.process"):
        await serve(stack.app, stop, host="::1", port=0)
    assert re.fullmatch(r"listening on http://\[::1\]:\d+", caplog.messages[0])


async def test_an_upload_in_progress_completes(stack: Stack) -> None:
    stop, begun = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield (
            b"--b\r\nContent-Disposition: form-data; name=importType\r\n\r\nEVENT_PARTICIPANT\r\n"
            b"--b\r\nContent-Disposition: form-data; name=contextId\r\n\r\n7\r\n"
            b'--b\r\nContent-Disposition: form-data; name=file; filename="a.csv"\r\n\r\n'
            b"First name,Last name\r\n"
        )
        await begun.wait()
        stop.set()
        yield b"Anna,Meier\r\n\r\n--b--\r\n"

    headers = {"content-type": "multipart/form-data; boundary=b"}
    async with (
        served(stack.app, stop) as address,
        stack.browser(token("uma"), address=address) as uma,
    ):
        uploading = asyncio.create_task(uma.post("/api/imports", content=body(), headers=headers))
        async with stack.browser("", address=address) as balancer:
            assert (await balancer.get("/health/ready")).status_code == 200
        begun.set()
        assert (await uploading).status_code == 201
