"""Blocking code in threads beside the event loop.

Streams have a thread of their own, not one of the loop's pool: a thread that waits for bytes whose
reading needs another thread of the same pool would wait without end once all of them do.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_QUEUED: Final = 2
"""Pieces of up to 1 MB that a stream is ahead of its reader."""


async def to_end(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking call in a thread and wait for its end, also when cancelled.

    For calls that use a folder that is removed, or a connection that is closed, afterwards.
    """
    task = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise


class PulledBytes(io.RawIOBase):
    """Reads in a thread what an asynchronous iterator yields in the event loop.

    What the iterator raises is kept in `failure`, and reads as the end of the bytes: libraries
    would log it, or lose it.
    """

    def __init__(
        self, chunks: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__()
        self._chunks = chunks
        self._loop = loop or asyncio.get_running_loop()
        self._stopped = False
        self.failure: BaseException | None = None
        self.size = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """The next piece, of whatever size; nothing at the end."""
        while not self._stopped:
            pending = asyncio.run_coroutine_threadsafe(self._next(), self._loop)
            try:
                piece = pending.result()
            except Exception as error:
                self.failure = error
                break
            if piece is None:
                break
            if piece:
                self.size += len(piece)
                return piece
        self._stopped = True
        return b""

    async def _next(self) -> bytes | None:
        return await anext(self._chunks, None)

    def stop(self) -> None:
        """Let the reader see the end at once."""
        self._stopped = True


class BlockingStream(Generic[T]):
    """A blocking call that writes bytes piece by piece, as an asynchronous iterator.

    Args:
        call: Is given a function that takes the pieces; its result is `result` after the end.
        stop: Called when the reader has ended, so that the call ends soon.
    """

    def __init__(
        self, call: Callable[[Callable[[bytes], object]], T], stop: Callable[[], None]
    ) -> None:
        self._call = call
        self._stop = stop
        self._left = False
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUED)
        self._loop = asyncio.get_running_loop()

    async def run(self) -> AsyncGenerator[bytes, None]:
        """The pieces; raises at their end what the call raised.

        Yields:
            Pieces of any size.
        """
        pool = ThreadPoolExecutor(1, thread_name_prefix="stream")
        running = self._loop.run_in_executor(pool, self._work)
        pool.shutdown(wait=False)
        try:
            while (piece := await self._queue.get()) is not None:
                yield piece
        finally:
            self._left = True
            self._stop()
            while not self._queue.empty():
                self._queue.get_nowait()
            await asyncio.wait({running})
        self.result = running.result()

    def _work(self) -> T:
        try:
            return self._call(self._take)
        finally:
            self._put(None)

    def _take(self, piece: bytes) -> bool:
        """Hand a piece over; False, as libraries ask it, so that they do not collect it."""
        if piece and not self._left:
            self._put(piece)
        return False

    def _put(self, piece: bytes | None) -> None:
        with suppress(CancelledError):
            asyncio.run_coroutine_threadsafe(self._queue.put(piece), self._loop).result()


async def from_iterator(pieces: Iterator[bytes]) -> AsyncGenerator[bytes]:
    """Run a blocking iterator in a thread of its own, a step at a time."""
    loop = asyncio.get_running_loop()
    pool = ThreadPoolExecutor(1, thread_name_prefix="stream")
    step: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            step = loop.run_in_executor(pool, next, pieces, None)
            piece = await asyncio.shield(step)
            if piece is None:
                return
            yield piece
    finally:
        pool.shutdown(wait=False)
        if step is not None:
            await asyncio.wait({step})
