"""Health endpoints distinguish starting from ready."""

import asyncio
import json
import logging
import urllib.error
import urllib.request

import pytest

from workers.shared.errors import SettingsError
from workers.shared.health import Health
from workers.shared.health_server import serve_health


def _get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


async def test_ready_follows_the_process() -> None:
    health = Health()
    async with serve_health(health, 0) as port:
        assert await asyncio.to_thread(_get, port, "/health/live") == (200, {"status": "live"})
        assert (await asyncio.to_thread(_get, port, "/health/ready"))[0] == 503
        health.ready = True
        assert await asyncio.to_thread(_get, port, "/health/ready") == (200, {"status": "ready"})


async def test_a_taken_port_is_named() -> None:
    async with serve_health(Health(), 0) as port:
        with pytest.raises(SettingsError, match=str(port)):
            async with serve_health(Health(), port):
                pass


async def test_the_address_of_a_free_port_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "workers.shared.health_server"):
        async with serve_health(Health(), 0, "::1") as port:
            answer = await asyncio.to_thread(_get, port, "/health/live", "[::1]")
    assert answer == (200, {"status": "live"})
    assert caplog.messages == [f"health at http://[::1]:{port}/health/ready"]


async def test_problems_are_reported_with_503_until_they_are_solved() -> None:
    health = Health(ready=True, missing=["search attributes: there are none"])
    bridge = health.part("service-bus")
    bridge.refuse("there is no queue")
    async with serve_health(health, 0) as port:
        problems = ["search attributes: there are none", "service-bus: there is no queue"]
        answer = {"status": "not ready", "problems": problems}
        assert await asyncio.to_thread(_get, port, "/health/ready") == (503, answer)
        assert (await asyncio.to_thread(_get, port, "/health/live"))[0] == 200
        health.missing = ()
        bridge.take()
        assert await asyncio.to_thread(_get, port, "/health/ready") == (200, {"status": "ready"})
