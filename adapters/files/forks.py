"""Reading processes: one that loads the libraries, and a fork of it for every order.

A fork bounds its memory, processor time, time and the size of files, and takes from itself all
files but those of its order and TCP, where the kernel has Landlock; whatever a hostile document
does to it ends with it. A caller who is cancelled ends its process at once.

To the process go frames of JSON, an `Order` each. Back come frames: a byte `+` and a piece of the
answer, any number of them, then `.`, the exit code of the fork as 4 bytes, little endian, signed,
and a `Fault` in JSON, if an exception ended the fork.
"""

import asyncio
import os
import select
import signal
import struct
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Self

from pydantic import BaseModel

from adapters.files import landlock, limits, sandbox
from adapters.files.failures import Bounds, Wording
from adapters.files.faults import ended_by
from adapters.ports.errors import ProcessLost

_PIECE: Final = b"+"
_FAULT: Final = b"!"
_ENDED: Final = b"."
_CODE: Final = struct.Struct("<l")
_ORDER_BYTES: Final = 8 * limits.MB
_PIECE_BYTES: Final = 64 * limits.MB
_FAULT_BYTES: Final = 10_000
_MARGIN: Final = 30
"""Seconds beyond the fork's own limit, after which it is not trusted to keep it."""

Send = Callable[[bytes], None]
"""Sends a piece of the answer."""


class ForkRequest(BaseModel):
    """One piece of work."""

    body: str
    """What the module of the process understands."""
    bounds: Bounds
    readable: tuple[Path, ...] = ()
    """Files and folders that it reads."""
    writable: tuple[Path, ...] = ()
    """Folders that it works in; the first is its current one."""


class Forks:
    """Has orders done by processes that are kept ready for the next one.

    An async context manager: it ends its processes. One that is never closed leaves none behind
    either, since they end with the process that gives the orders.

    Args:
        module: Its `main` calls `serve`.
        at_once: Orders side by side; the others wait.
        environment: Of the processes, beyond the search path.
        wording: Of failures.
    """

    def __init__(
        self,
        module: str,
        at_once: int,
        environment: Mapping[str, str] | None = None,
        wording: Wording | None = None,
    ) -> None:
        self._module = module
        self._wording = wording or Wording()
        self._environment = dict(environment or {})
        self._room = asyncio.Semaphore(at_once)
        self._idle: list[_Process] = []
        # Of its own: who waits for processes must not keep others from the loop's few threads.
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="forks")

    async def answer(self, order: ForkRequest) -> AsyncGenerator[bytes]:
        """Have an order done; close the generator (`contextlib.aclosing`) to end it early.

        Yields:
            The pieces of the answer, as they come; none is asked for before the one before it
            has been taken.

        Raises:
            UnreadableDocument: The document is damaged, needs more than its bounds, or crashed
                the process.
            ReaderFailed: The process met an exception that no rule explains.
            Unavailable: The disk is full or failed.
            ProcessLost: It was killed, which is not the document's doing.
        """
        async with self._room:
            process = self._idle.pop() if self._idle else self._start()
            whole = False
            try:
                async with asyncio.timeout(order.bounds.seconds + _MARGIN):
                    piece = await self._aside(lambda: process.ask(order))
                    while isinstance(piece, bytes):
                        yield piece
                        piece = await self._aside(process.next)
                whole = True
            except TimeoutError:
                raise self._wording.too_slow(order.bounds) from None
            except _Lost as error:
                raise ProcessLost(
                    f"the process {self._wording.work} was lost; try again"
                ) from error
            finally:
                if whole:
                    self._idle.append(process)
                else:
                    process.stop()
        if piece.code != os.EX_OK:
            raise self._wording.failure(piece.code, piece.fault, order.bounds)

    async def aclose(self) -> None:
        """End the processes; no order is being done any more."""
        while self._idle:
            self._idle.pop().stop()
        self._threads.shutdown()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _start(self) -> "_Process":
        return _Process(self._module, self._environment)

    async def _aside(self, call: "Callable[[], bytes | _End]") -> "bytes | _End":
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


class _Lost(Exception):
    """The process has ended, or does not keep to the protocol."""


class _End(NamedTuple):
    """The end of an answer."""

    code: int
    fault: bytes


class _Process:
    """One process that does orders, one after the other."""

    def __init__(self, module: str, environment: Mapping[str, str]) -> None:
        self._child = sandbox.start(module, talks=True, environment=environment)

    def ask(self, order: ForkRequest) -> bytes | _End:
        """Give an order; the first piece of its answer, or its end.

        Raises:
            _Lost: The process has ended.
        """
        assert self._child.stdin is not None
        try:
            sandbox.write_frame(self._child.stdin, order.model_dump_json().encode())
        except (OSError, ValueError) as error:
            raise _Lost from error
        return self.next()

    def next(self) -> bytes | _End:
        """The next piece of an answer, or its end.

        Raises:
            _Lost: The process has ended.
        """
        assert self._child.stdout is not None
        try:
            frame = sandbox.read_frame(self._child.stdout, _PIECE_BYTES + 1)
        except (OSError, ValueError, sandbox.FrameTooLong) as error:
            raise _Lost from error
        if frame and frame.startswith(_PIECE):
            return frame[1:]
        if frame and frame.startswith(_ENDED) and len(frame) > _CODE.size:
            (code,) = _CODE.unpack_from(frame, 1)
            return _End(code, frame[1 + _CODE.size :])
        raise _Lost

    def stop(self) -> None:
        """End it at once, and whatever it has forked."""
        sandbox.stop(self._child)


def serve(
    handle: Callable[[str, Send], None], libraries: Sequence[Path] = (), niceness: int = 0
) -> None:
    """Do orders until the pipe is closed; the main function of a reading process.

    Args:
        handle: Called in a fork with the body of an order; an exception of its own ends the fork,
            and the caller gets its type, its place and whose fault it is.
        libraries: Folders, beyond those of Python and the system, that a fork may load from.
        niceness: By how much it gives way to other processes of the machine.
    """
    os.nice(niceness)
    readable = (*landlock.system_folders(), *libraries)
    while body := sandbox.read_frame(sys.stdin.buffer, _ORDER_BYTES):
        code, fault = _in_a_fork(ForkRequest.model_validate_json(body), handle, readable)
        sandbox.write_frame(sys.stdout.buffer, _ENDED + _CODE.pack(code) + fault)


def _in_a_fork(
    order: ForkRequest, handle: Callable[[str, Send], None], readable: Sequence[Path]
) -> _End:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(order, handle, readable, writing)
    os.close(writing)
    fault, is_refused = b"", False
    with _ended_with_its_caller(child), open(reading, "rb") as pipe:
        try:
            while (frame := sandbox.read_frame(pipe, 1 + _PIECE_BYTES)) is not None:
                if frame.startswith(_FAULT):
                    fault = frame[1:_FAULT_BYTES]
                else:
                    # A document that has taken the fork over may not say how it ended.
                    sandbox.write_frame(sys.stdout.buffer, _PIECE + frame[1:])
        except sandbox.FrameTooLong:
            is_refused = True
            os.kill(child, signal.SIGKILL)
        # Its number stays its own as long as it may be killed.
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    _, status = os.waitpid(child, 0)
    return _End(os.EX_PROTOCOL if is_refused else os.waitstatus_to_exitcode(status), fault)


@contextmanager
def _ended_with_its_caller(child: int) -> Generator[None]:
    """Inside the block, a fork ends when the process that has given its order does."""
    stopped, stop = os.pipe()
    # A thread, since this one waits for the fork; it has ended before the next fork.
    watching = threading.Thread(target=_kill_without_caller, args=(child, stopped))
    watching.start()
    try:
        yield
    finally:
        os.close(stop)
        watching.join()
        os.close(stopped)


def _kill_without_caller(child: int, stopped: int) -> None:
    # No order comes before the answer to this one is whole: all that can be read is the end.
    orders = sys.stdin.fileno()
    readable, _, _ = select.select([orders, stopped], [], [])
    if orders in readable:
        os.kill(child, signal.SIGKILL)


def _work(
    order: ForkRequest, handle: Callable[[str, Send], None], readable: Sequence[Path], writing: int
) -> None:
    """Do one order and end the process."""
    code = os.EX_SOFTWARE
    try:
        # What a library prints must not look like an answer.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        bounds = order.bounds
        sandbox.limit(bounds.memory_bytes, bounds.cpu_seconds, bounds.seconds, bounds.file_bytes)
        if order.writable:
            os.chdir(order.writable[0])
            os.environ["TMPDIR"] = os.environ["CPL_TMPDIR"] = str(order.writable[0])
        landlock.confine((*readable, *order.readable), order.writable)
        with open(writing, "wb") as pipe:
            try:
                handle(order.body, lambda piece: sandbox.write_frame(pipe, _PIECE + piece))
                code = os.EX_OK
            except BaseException as error:
                # Native libraries end with exceptions that are no `Exception`.
                code, fault = ended_by(error)
                sandbox.write_frame(pipe, _FAULT + fault)
    finally:
        # Not by an exception: it would continue with the loop of the process that forked.
        os._exit(code)
