"""A job as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from workers.services.jobs.queries import Revision

COME_BACK_AFTER: Final = 2000
"""Milliseconds after which a browser connects again."""


def event_stream(
    revisions: AsyncGenerator[Revision | None], render: Callable[[Revision], str]
) -> StreamingResponse:
    """Each revision as an event `job` whose id is its own."""
    return StreamingResponse(
        _events(revisions, render),
        media_type="text/event-stream",
        # Proxies must pass on each event as it comes.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _events(
    revisions: AsyncGenerator[Revision | None], render: Callable[[Revision], str]
) -> AsyncIterator[bytes]:
    yield format_sse_event(retry=COME_BACK_AFTER)
    async with aclosing(revisions):
        async for each in revisions:
            if each is None:
                yield KEEPALIVE_COMMENT
            else:
                yield format_sse_event(event="job", id=each.id, data_str=render(each))
