"""Progress as it happens."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from tests.support.gateway import GOOD, HEADER, Stack, import_in, served, sheet, token
from tests.support.waiting import eventually
from workers.shared.services.identity import Identity

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def events_of(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Events of a stream, as a browser takes them apart."""
    event: dict[str, Any] = {}
    async for line in answer.aiter_lines():
        if not line:
            if "data" in event:
                yield event
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = json.loads(value) if name == "data" else value


async def silent_import(browser: httpx.AsyncClient) -> str:
    """An import that waits for a person while nothing else happens to it."""
    uuid = await import_in(browser, "COLUMN_MAPPING", sheet(HEADER, *GOOD))

    async def counted() -> bool:
        return (await browser.get(f"/api/imports/{uuid}")).json()["totalRows"] == len(GOOD)

    await eventually(counted)
    return uuid


async def test_the_life_of_an_import(stack: Stack) -> None:
    async with served(stack.app) as address, stack.browser(address=address) as anna:
        uuid = await import_in(anna, "COLUMN_MAPPING")
        states: list[str] = []
        revisions: list[int] = []
        async with anna.stream("GET", f"/api/v1/uploads/{uuid}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert stream.headers["cache-control"] == "no-store"
            async for event in events_of(stream):
                assert event["event"] == "upload"
                assert event["data"]["uuid"] == uuid
                if not states:
                    assert (await anna.post(f"/api/imports/{uuid}/start")).status_code == 202
                states.append(event["data"]["state"])
                revisions.append(int(event["id"]))
        assert states[0] == "COLUMN_MAPPING"
        assert states[-1] == "COMPLETED"
        assert revisions == sorted(set(revisions))

        seen = {"last-event-id": str(revisions[-1])}
        done = await anna.get(f"/api/v1/uploads/{uuid}/events", headers=seen)
        assert done.status_code == 204


async def test_a_reconnected_client_gets_what_is_new(stack: Stack) -> None:
    async with served(stack.app) as address, stack.browser(address=address) as anna:
        uuid = await silent_import(anna)
        url = f"/api/v1/uploads/{uuid}/events"
        async with anna.stream("GET", url) as stream:
            first = await anext(events_of(stream))
        seen = {"last-event-id": first["id"]}

        async with anna.stream("GET", url, headers=seen) as stream:
            events = events_of(stream)
            waiting = asyncio.create_task(anext(events))
            change = {"assignee": {"to": "ben"}}
            answer = await anna.patch(f"/api/v1/uploads/{uuid}", json=change)
            assert answer.status_code == 200
            news = await waiting
        assert int(news["id"]) > int(first["id"])
        assert news["data"]["assignee"] == "ben"

        # What happened while the client was disconnected is reported at once.
        async with anna.stream("GET", url, headers=seen) as stream:
            missed = await anext(events_of(stream))
        assert missed["data"]["assignee"] == "ben"
        async with anna.stream("GET", url, headers={"last-event-id": "no number"}) as stream:
            assert (await anext(events_of(stream)))["id"] == missed["id"]


async def test_streams_end_when_the_gateway_stops(stack: Stack) -> None:
    stop = asyncio.Event()
    app = stack.gateway(stopping=stop.is_set)
    async with served(app, stop) as address, stack.browser(address=address) as anna:
        uuid = await silent_import(anna)
        async with anna.stream("GET", f"/api/v1/uploads/{uuid}/events") as stream:
            events = events_of(stream)
            await anext(events)
            stop.set()
            async with asyncio.timeout(60):
                assert [event async for event in events] == []


async def test_a_silent_connection_sends_keep_alives(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.shared.services.lists.SILENCE_SECONDS", 0.1)
    async with stack.browser() as anna:
        uuid = await silent_import(anna)
    who = Identity("anna", (1,), frozenset({"viewer"}))
    async with aclosing(stack.service.events(who, uuid)) as rows:
        first, *later = [await anext(rows) for _ in range(3)]
        assert first is not None
        assert first.uuid == uuid
        # Its run may write once more.
        assert None in later


async def test_a_watcher_is_disconnected_after_a_while(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come back with their token, which is checked anew."""
    async with stack.browser(token("will")) as will:
        uuid = await silent_import(will)
        monkeypatch.setattr("workers.shared.services.lists.WATCH_SECONDS", 0)
        answer = await will.get(f"/api/v1/uploads/{uuid}/events")
        assert answer.status_code == 200
        assert answer.text.count("event: upload") == 1
