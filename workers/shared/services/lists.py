"""Cursors of lists, and following something until it is over."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self, TypeVar

from pydantic import TypeAdapter

from workflows.shared.contracts import built_when_used

_MOMENT: Final[TypeAdapter[datetime]] = TypeAdapter(datetime, config=built_when_used())


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of a page; the next page begins behind it.

    Many rows can have changed at one moment: those that were written together have done so.
    """

    at: datetime
    """When it changed, UTC."""
    id: str | None = None
    """None, as releases before had it: the next page has only what changed earlier."""

    def __str__(self) -> str:
        # An offset of `+00:00` would have to be quoted in an address.
        moment = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return moment if self.id is None else f"{moment}_{self.id}"

    @classmethod
    def read(cls, text: str) -> Self:
        """A cursor from its text.

        Raises:
            ValueError: The text is none.
        """
        moment, _, id = text.partition("_")
        at = _MOMENT.validate_python(moment)
        try:
            at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        except OverflowError as error:
            raise ValueError(f"{moment} is, in UTC, beyond the years 1 to 9999") from error
        return cls(at, id or None)


Item = TypeVar("Item")
Revision = TypeVar("Revision", int, str)
Result = TypeVar("Result")


def page_of(
    items: Sequence[Item], key: Callable[[Item], tuple[str, ...]], limit: int, cursor: str | None
) -> tuple[Sequence[Item], str | None]:
    """A page of a list that is read as a whole, and the cursor of the next one.

    Args:
        items: All of them, in the order of their keys.
        key: Names an item; its parts have no slash.
        limit: Items of the page.
        cursor: Key of the last item of the page before; None: the first page.
    """
    begin = 0 if cursor is None else bisect_right(items, tuple(cursor.split("/")), key=key)
    page = items[begin : begin + limit]
    return page, "/".join(key(page[-1])) if len(items) > begin + limit else None


POLL_SECONDS: Final = 0.5
SILENCE_SECONDS: Final = 15
WATCH_SECONDS: Final = 15 * 60
"""A watcher is disconnected then and reconnects with a token that is checked again."""


async def watched(
    read: Callable[[], Coroutine[Any, Any, Item]],
    revision: Callable[[Item], Revision],
    is_over: Callable[[Item], bool],
    *,
    last_seen: Revision | None,
    stopping: Callable[[], bool],
    look: Callable[[], Coroutine[Any, Any, Revision | None]] | None = None,
) -> AsyncGenerator[Item | None]:
    """Something whenever it changes, until it is over.

    Now and then None, so that a connection without news does not time out.

    Args:
        read: Reads it, with the rights of the watcher.
        revision: Changes whenever the content does.
        is_over: Whether nothing more will happen to it.
        last_seen: Revision that the watcher has; None: begin with it as it is.
        stopping: Whether the process is about to end.
        look: Reads its revision at less cost; None: it is read in full each time.
    """
    clock = asyncio.get_running_loop().time
    until = clock() + WATCH_SECONDS
    silent_since = clock()
    while True:
        item = await _uninterrupted(read())
        if revision(item) != last_seen:
            last_seen, silent_since = revision(item), clock()
            yield item
        if is_over(item):
            return
        while True:
            if stopping() or clock() > until:
                return
            if clock() - silent_since > SILENCE_SECONDS:
                silent_since = clock()
                yield None
            await asyncio.sleep(POLL_SECONDS)
            if look is None or await _uninterrupted(look()) != last_seen:
                break


async def _uninterrupted(reading: Coroutine[Any, Any, Result]) -> Result:
    """Let a read end by itself when the watcher disconnects.

    Interrupted, it would leave its connection to the database behind.
    """
    return await asyncio.shield(asyncio.ensure_future(reading))
