"""Homes of GnuPG that last for one step, in memory where the machine has a disk of memory."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from adapters.ports import NotInstalled, Unavailable
from contracts.dependencies import Dependency

PREFIX: Final = "docflow-pgp-"
_MEMORY: Final = Path("/dev/shm")  # noqa: S108
_AGENT: Final = """\
allow-loopback-pinentry
allow-preset-passphrase
s2k-count 65536
"""
"""The last line is about the copy in the home alone: without it the agent measures the machine for
seconds, and each use of a key takes as long again."""
_LONGEST: Final = 70
"""Characters of a home: paths of sockets end after 107."""


def environment() -> Mapping[str, str]:
    """What programs of GnuPG are given of the worker's environment, which holds secrets."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}


@asynccontextmanager
async def gnupg_home(folder: Path | None = None) -> AsyncGenerator[Path]:
    """A home for the length of the block; its agent is ended and all of it removed.

    Homes of killed workers are removed on the way: each is locked by its process, and an agent
    whose home is gone ends by itself.

    Args:
        folder: Where homes are made; None: in memory, else in the folder for temporary files.

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
        await asyncio.shield(_end(home, lock))


async def _end(home: Path, lock: int) -> None:
    await run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")
    await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)
    os.close(lock)


async def run(program: str, *arguments: str, given: bytes = b"") -> None:
    """Run a program of GnuPG.

    Args:
        program: Its name.
        arguments: Without secrets: every process of the machine can read them.
        given: Its standard input.

    Raises:
        NotInstalled: It is not.
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
    await process.communicate(given)


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
