"""Reads documents in processes that are kept ready for the next one."""

import asyncio
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

from pydantic import ValidationError

from adapters.files import limits, sandbox
from adapters.files.texts.child import CODE
from adapters.files.texts.protocol import ANSWER_BYTES, Answer, Bounds, ReadOrder
from adapters.ports import Extracted, Unavailable, UnreadableDocument

_CHILD: Final = "adapters.files.texts.child"
_AT_ONCE: Final = 4
_MARGIN: Final = 30
"""Seconds beyond the reader's own limit, after which it is not trusted to keep it."""


class _Lost(Exception):
    """The reader process has ended, or returned invalid data."""


class FileTexts:
    """Reads local files; a `DocumentTexts`.

    An async context manager: it ends its processes. One that is never closed leaves none behind
    either, since they end with the process that asks them.

    Args:
        bounds: What reading one document may cost.
        at_once: Documents read side by side; the others wait.
    """

    def __init__(self, bounds: Bounds | None = None, at_once: int = _AT_ONCE) -> None:
        self._bounds = bounds or Bounds()
        self._room = asyncio.Semaphore(at_once)
        self._idle: list[_Reader] = []
        # Of its own: who waits for readers must not keep others from the loop's few threads.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="texts")

    async def extract(self, path: Path, filename: str | None, folder: Path) -> Extracted:
        """Read a document by what it holds."""
        order = ReadOrder(
            path=path.absolute(), filename=filename, folder=folder.absolute(), bounds=self._bounds
        )
        async with self._room:
            code, body = await self._ask(order)
        return _checked(_understood(code, body, self._bounds), order.folder)

    async def aclose(self) -> None:
        """End the processes; no document is being read any more."""
        while self._idle:
            self._idle.pop().stop()
        self._threads.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _ask(self, order: ReadOrder) -> tuple[int, bytes]:
        reader = self._idle.pop() if self._idle else _Reader()
        body = order.model_dump_json().encode()
        asked = asyncio.get_running_loop().run_in_executor(self._threads, reader.ask, body)
        try:
            async with asyncio.timeout(self._bounds.seconds + _MARGIN):
                answer = await asyncio.shield(asked)
        except TimeoutError:
            raise UnreadableDocument(_too_slow(self._bounds)) from None
        except _Lost as error:
            raise Unavailable("the process that reads documents was lost; try again") from error
        finally:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                self._idle.append(reader)
            else:
                reader.stop()
                await asyncio.gather(asked, return_exceptions=True)
        return answer


class _Reader:
    """One process that reads documents, one after the other."""

    def __init__(self) -> None:
        self._child = sandbox.start(_CHILD, talks=True)

    def ask(self, order: bytes) -> tuple[int, bytes]:
        """Have a document read; exit code of what read it, and its answer.

        Raises:
            _Lost: The process has ended.
        """
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            sandbox.write_frame(self._child.stdin, order)
            frame = sandbox.read_frame(self._child.stdout, ANSWER_BYTES + CODE.size)
        except (OSError, ValueError, sandbox.FrameTooLong) as error:
            raise _Lost from error
        if frame is None or len(frame) < CODE.size:
            raise _Lost
        (code,) = CODE.unpack_from(frame)
        return code, frame[CODE.size :]

    def stop(self) -> None:
        """End it at once."""
        sandbox.stop(self._child)


def _understood(code: int, body: bytes, bounds: Bounds) -> Extracted:
    if code in (-signal.SIGXCPU, -signal.SIGALRM):
        raise UnreadableDocument(_too_slow(bounds))
    if code == -signal.SIGKILL:
        raise Unavailable("the machine ended the process that read the document; try again")
    if code != 0:
        raise UnreadableDocument(
            "reading the document failed: it is damaged, or needs more than"
            f" {bounds.memory_bytes // limits.MB:,} MB of memory; save it again and send the new"
            " file"
        )
    try:
        answer = Answer.model_validate_json(body)
    except ValidationError as error:
        raise UnreadableDocument(
            "the document could not be read: its reader process returned invalid data;"
            " save it again and send the new file"
        ) from error
    if answer.unavailable is not None:
        raise Unavailable(answer.unavailable, answer.dependency)
    if answer.extracted is None:
        raise UnreadableDocument(answer.unreadable or "the document cannot be read")
    return answer.extracted


def _checked(extracted: Extracted, folder: Path) -> Extracted:
    """Refuse files elsewhere than in the folder: a document may have taken its reader over."""
    for found in extracted.files:
        if found.path.parent != folder or found.path.is_symlink() or not found.path.is_file():
            raise UnreadableDocument(
                "the document could not be read: its reader process named files of others;"
                " it was rejected"
            )
    return extracted


def _too_slow(bounds: Bounds) -> str:
    return (
        f"reading the document takes more than {bounds.cpu_seconds} s of processor time, or"
        f" {bounds.seconds} s in all; print it to a new PDF, or split it"
    )
