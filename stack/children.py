"""Child processes that never outlive their parent."""

import asyncio
import contextlib
import ctypes
import random
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from workers.shared.cli.errors import CommandError

_PR_SET_PDEATHSIG = 1
SLOW_SECONDS = 60.0
"""After so long, and each time again, a child that is not up yet is reported."""
_PORTS = range(15_000, 32_768)
"""Below those that Linux lends to connections."""
_MOST_TRIES = 100
_CHANCE = random.SystemRandom()
"""Not seeded by tests, which would all be given the same ports."""


class StackError(CommandError):
    """A part of the embedded stack did not start; the message says which and where its log is."""


def free_port() -> int:
    """A loopback TCP port that is free right now.

    It is none of those that the kernel lends to connections: one of them could take it before its
    server listens, or while its server is killed and started again.

    Raises:
        StackError: Every port that was tried is taken.
    """
    for _ in range(_MOST_TRIES):
        port = _CHANCE.choice(_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise StackError(f"no free port found between {_PORTS.start} and {_PORTS.stop - 1}")


def require_free(port: int) -> None:
    """Make sure that a server can listen on a loopback port.

    Raises:
        StackError: The port is taken, or reserved for root.
    """
    with socket.socket() as probe:
        # Connections of a server that has ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise StackError(f"port {port} is reserved for root; choose another") from None
        except OSError:
            raise StackError(f"port {port} is taken; choose another") from None


def die_with_parent() -> None:
    """Have the kernel end this process when its parent is killed, which cannot stop its children.

    On Linux only: elsewhere a killed parent leaves them behind.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


async def start_child(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Process:
    """Start a process in a session of its own, so that Ctrl-C reaches us alone.

    Args:
        command: Program and arguments.
        log: File that takes its output, appended to.
        environment: Its environment; ours when None.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment) if environment is not None else None,
            start_new_session=True,
            preexec_fn=die_with_parent if sys.platform == "linux" else None,
        )


async def stop_child(process: Process, timeout: float = 10) -> int:
    """Ask a process to end, then make it; its exit code."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        return await asyncio.wait_for(process.wait(), timeout)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        return await process.wait()


def _unreported(text: str) -> None:
    return


async def wait_for_port(process: Process, port: int, name: str, log: Path) -> None:
    """Wait until a child listens.

    Raises:
        StackError: It ended.
    """
    await wait_until(lambda: listens(port), process, name, log)


async def wait_until(
    is_up: Callable[[], Awaitable[bool]],
    process: Process,
    name: str,
    log: Path,
    announce: Callable[[str], None] = _unreported,
    slow_seconds: float = SLOW_SECONDS,
) -> None:
    """Wait until a child does what it was started for, for as long as it runs.

    Args:
        is_up: Whether it does.
        process: The child.
        name: As messages call it.
        log: Where its output goes.
        announce: Gets a line each time it has been slow for `slow_seconds` more.
        slow_seconds: Between two such lines.

    Raises:
        StackError: It ended.
    """
    began, reports = time.monotonic(), 0
    while True:
        answered = await is_up()
        # Asked last: another server may have answered for one that has ended.
        if process.returncode is not None:
            raise StackError(f"{name} ended with {process.returncode}; see {log}")
        if answered:
            return
        waited = time.monotonic() - began
        if waited >= (reports + 1) * slow_seconds:
            reports += 1
            announce(f"{name} is not up after {waited:.0f} s; still waiting, its log is {log}")
        await asyncio.sleep(0.05)


async def listens(port: int) -> bool:
    """Whether something accepts connections on a loopback port."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


@asynccontextmanager
async def child(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[Process]:
    """A process that is stopped on the way out, whatever happens inside."""
    process = await start_child(command, log, environment)
    try:
        yield process
    finally:
        await asyncio.shield(stop_child(process))
