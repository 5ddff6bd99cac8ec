"""Homes of GnuPG that last for one step, in memory where the machine has a disk of memory."""

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from adapters.ports import NotInstalled, PortError, Unavailable
from contracts.dependencies import Dependency

T = TypeVar("T")
PREFIX: Final = "docflow-pgp-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_AGENT: Final = """\
allow-loopback-pinentry
allow-preset-passphrase
s2k-count 65536
"""
"""The last line is about the copy in the home alone: without it the agent measures the machine for
seconds, and each use of a key takes as long again."""
SHORT_SECONDS: Final = 10.0
"""For what programs ask the agent."""
_LONGEST: Final = 70
"""Characters of a home: paths of sockets end after 107."""


def environment() -> Mapping[str, str]:
    """What programs of GnuPG are given of the worker's environment, which holds secrets."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


@asynccontextmanager
async def gnupg_home(
    folder: Path | None = None, seconds: float = SHORT_SECONDS
) -> AsyncGenerator[Path]:
    """A home for the length of the block; its agent is ended and all of it removed.

    Homes of killed workers are removed on the way: each is locked by its process, and an agent
    whose home is gone ends by itself.

    Args:
        folder: Where homes are made; None: in memory, else in the folder for temporary files.
        seconds: That its agent may take to end; then it is killed.

    Raises:
        Unavailable: No folder can be made.
    """
    where = folder or _folder()
    try:
        await asyncio.to_thread(_sweep, where)
        home = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        (home / "gpg-agent.conf").write_text(_AGENT)
    except OSError as error:
        raise Unavailable(
            f"no keyring can be made in {where}: {error.strerror}", Dependency.SCRATCH_DISK
        ) from error
    try:
        yield home
    finally:
        await asyncio.shield(_end(home, lock, seconds))


async def _end(home: Path, lock: int, seconds: float) -> None:
    try:
        await run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent", seconds=seconds)
    except Unavailable:
        await asyncio.to_thread(end_programs, home)
    await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
    os.close(lock)


async def run(
    program: str, *arguments: str, given: bytes = b"", seconds: float = SHORT_SECONDS
) -> None:
    """Run a program of GnuPG that asks the agent for something small.

    Args:
        program: Its name.
        arguments: Without secrets: every process of the machine can read them.
        given: Its standard input.
        seconds: That it may take.

    Raises:
        NotInstalled: It is not.
        Unavailable: It hangs.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=environment(),
        )
    except FileNotFoundError as error:
        raise missing() from error
    try:
        async with asyncio.timeout(seconds):
            await process.communicate(given)
    except TimeoutError:
        raise hanging() from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answered(home: Path, seconds: float, call: Callable[[], T]) -> T:
    """Call GnuPG in a thread; where it hangs, its programs are ended, and so is the thread.

    Raises:
        Unavailable: It hung.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(running)
    except TimeoutError:
        await asyncio.to_thread(end_programs, home)
        await asyncio.gather(running, return_exceptions=True)
        raise hanging() from None


@asynccontextmanager
async def watched(home: Path, seconds: float, moved: Callable[[], object]) -> AsyncGenerator[None]:
    """End the programs of a home that move nothing for a while inside the block.

    Args:
        home: Theirs.
        seconds: How long they may take over nothing.
        moved: How far they are; anything that changes.

    Raises:
        Unavailable: They were ended, in place of the failure that followed from it.
    """
    has_hung = False

    async def watch() -> None:
        nonlocal has_hung
        while True:
            before = moved()
            await asyncio.sleep(seconds)
            if moved() == before:
                has_hung = True
                await asyncio.to_thread(end_programs, home)

    watching = asyncio.create_task(watch())
    try:
        yield
    except (PortError, OSError) as error:
        if has_hung:
            raise hanging() from error
        raise
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def end_programs(home: Path) -> None:
    """Kill what works in a home: the command lines of all its programs name it."""
    name = os.fsencode(home)
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if name in command.read_bytes().split(b"\0"):
                os.kill(int(command.parent.name), signal.SIGKILL)


def hanging() -> Unavailable:
    """The failure of a step whose programs do not answer; the next attempt has others."""
    return Unavailable("GnuPG hung: gpg or its agent did nothing for too long, and was ended")


def missing() -> NotInstalled:
    """The failure of a machine without GnuPG."""
    return NotInstalled("GnuPG is not installed on this machine: OpenPGP needs the program gpg")


def _folder() -> Path:
    if os.access(_MEMORY, os.W_OK | os.X_OK):
        return _MEMORY
    usual = Path(tempfile.gettempdir())
    return usual if len(str(usual)) < _LONGEST - len(PREFIX) else Path("/tmp")  # noqa: S108


def _sweep(where: Path) -> None:
    for home in where.glob(f"{PREFIX}*"):
        with suppress(OSError):
            lock = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if home.stat().st_uid == os.getuid() and (home / "gpg-agent.conf").exists():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(home, ignore_errors=True)
            finally:
                os.close(lock)
