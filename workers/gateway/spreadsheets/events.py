"""The status of an import as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

from adapters.database.spreadsheets.views import SpreadsheetRow

COME_BACK_AFTER: Final = 2000
"""Milliseconds after which a browser connects again."""


def last_revision(header: str | None) -> int | None:
    """The revision that a browser saw last; None: it sent none, or an invalid one."""
    return int(header) if header and header.isascii() and header.isdecimal() else None


async def status_events(
    rows: AsyncGenerator[SpreadsheetRow | None], render: Callable[[SpreadsheetRow], str]
) -> AsyncIterator[bytes]:
    """Write each status as an event `status` whose id is its revision.

    Args:
        rows: As `SpreadsheetService.events` gives them.
        render: The data of an event.
    """
    yield format_sse_event(retry=COME_BACK_AFTER)
    async with aclosing(rows):
        async for row in rows:
            if row is None:
                yield KEEPALIVE_COMMENT
            else:
                yield format_sse_event(event="status", id=str(row.revision), data_str=render(row))
