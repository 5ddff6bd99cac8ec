"""Something that changes, as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

COME_BACK_AFTER: Final = 2000
"""Milliseconds after which a browser connects again."""

Item = TypeVar("Item")


def event_stream(
    items: AsyncGenerator[Item | None],
    *,
    event: str,
    id: Callable[[Item], str],
    render: Callable[[Item], str],
) -> StreamingResponse:
    """An event for each item, whose id is that of its revision; no cache may store them.

    Args:
        items: As `watched` gives them (`workers/services/progress_stream.py`).
        event: Name of the events.
        id: What a browser sends back as `Last-Event-ID`.
        render: The data of an event.
    """
    return StreamingResponse(
        _events(items, event, id, render),
        media_type="text/event-stream",
        # Proxies must pass on each event as it comes.
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _events(
    items: AsyncGenerator[Item | None],
    event: str,
    id: Callable[[Item], str],
    render: Callable[[Item], str],
) -> AsyncIterator[bytes]:
    yield format_sse_event(retry=COME_BACK_AFTER)
    async with aclosing(items):
        async for each in items:
            if each is None:
                yield KEEPALIVE_COMMENT
            else:
                yield format_sse_event(event=event, id=id(each), data_str=render(each))
