"""What answers to HEAD and to clients that can unpack are like."""

import asyncio
import gzip

import httpx
import pytest

from tests.support.gateway import Stack, served, token

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_head_says_what_get_says_without_a_body(stack: Stack) -> None:
    async with (
        served(stack.gateway()) as address,
        stack.browser(token("hedda"), address=address) as hedda,
    ):
        for path in ("/api/v1/runs", "/api/v1/runs/none", "/api/imports", "/docs"):
            asked = [await hedda.request(method, path) for method in ("GET", "HEAD")]
            assert asked[0].status_code == asked[1].status_code, path
            assert asked[0].content and not asked[1].content, path
            assert asked[0].headers["content-type"] == asked[1].headers["content-type"], path
        # It would send events for ever.
        stream = await asyncio.wait_for(hedda.head("/api/v1/events"), timeout=20)
        assert (stream.status_code, stream.content) == (200, b"")
        assert stream.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_answers_are_packed_for_who_can_unpack_them(stack: Stack, coding: str) -> None:
    async with stack.browser() as anna:
        request = anna.build_request("GET", "/openapi.json", headers={"accept-encoding": coding})
        answer = await anna.send(request, stream=True)
        raw = b"".join([each async for each in answer.aiter_raw()])
        assert answer.headers.get("content-encoding", "identity") == coding
        assert answer.headers["vary"] == "Accept-Encoding"
        text = gzip.decompress(raw) if coding == "gzip" else raw
        assert httpx.Response(200, content=text).json()["openapi"].startswith("3.")
