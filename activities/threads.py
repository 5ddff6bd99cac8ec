"""Blocking work beside the event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class WorkerThread:
    """Runs blocking calls one after another, in one thread of their own.

    An async context manager; it ends when the last call has ended, cancelled or not, so what the
    calls use may be closed after it.

    Args:
        inline: Run the calls at once in the caller's thread instead: for work that is over in
            less time than two threads need to talk.
    """

    def __init__(self, *, inline: bool = False) -> None:
        self._pool = None if inline else ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._started: set[asyncio.Future[Any]] = set()

    def start(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        """Queue a call."""
        loop = asyncio.get_running_loop()
        if self._pool is not None:
            future = loop.run_in_executor(self._pool, call)
        else:
            future = loop.create_future()
            try:
                future.set_result(call())
            except Exception as error:
                future.set_exception(error)
        self._started.add(future)
        future.add_done_callback(self._started.discard)
        return future

    async def run(self, call: Callable[[], T]) -> T:
        """Queue a call and wait for it; a cancelled wait leaves the call to its end."""
        return await asyncio.shield(self.start(call))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # An abandoned call may have raised; its work is given up.
        await asyncio.gather(*self._started, return_exceptions=True)
        if self._pool is not None:
            self._pool.shutdown()


def from_thread(pages: AsyncIterator[Sequence[T]], stopped: threading.Event) -> Iterator[T]:
    """What stands on pages that the event loop fetches, for a reader in another thread.

    Call it in the event loop; once `stopped` is set, no further page is asked for.
    """
    loop = asyncio.get_running_loop()

    async def next_page() -> Sequence[T] | None:
        return await anext(pages, None)

    def items() -> Iterator[T]:
        while not stopped.is_set():
            page = asyncio.run_coroutine_threadsafe(next_page(), loop).result()
            if page is None:
                return
            yield from page

    return items()
