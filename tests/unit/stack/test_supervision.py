"""Parts are started again whenever they end, and end whenever they are told to."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from stack.children import StackError
from stack.parts import Part
from stack.supervision import Keeper
from tests.support.waiting import eventually

SERVER = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / "starts").open("a").write(f"{os.getpid()}\\n")
if (folder / "broken").exists():
    sys.exit("the disk is broken")
if not (folder / "slow").exists():
    (folder / "up").touch()
time.sleep(600)
"""


async def until(happened: Callable[[], bool]) -> None:
    async def ask() -> bool:
        return happened()

    await eventually(ask)


class Server:
    """A part that writes down each of its starts; a file says what becomes of the next one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.part = Part(
            "the server",
            [sys.executable, "-c", SERVER, str(folder)],
            [],
            folder / "server.log",
            self._is_up,
            prepare=lambda: (folder / "up").unlink(missing_ok=True),
        )

    async def _is_up(self) -> bool:
        return (self.folder / "up").exists()

    @property
    def starts(self) -> list[int]:
        """Process ids, the latest last."""
        file = self.folder / "starts"
        return [int(line) for line in file.read_text().splitlines()] if file.exists() else []

    async def kill(self, *, start: int) -> None:
        """Kill the process of a start, counted from 1, as soon as there is one."""
        await until(lambda: len(self.starts) >= start)
        os.kill(self.starts[start - 1], signal.SIGKILL)

    @asynccontextmanager
    async def kept(self, *, patient: bool = True, long: float = 0.05) -> AsyncIterator[Keeper]:
        pauses = (0.0, 0.0, 0.0, 0.0)
        keeper = Keeper(
            self.part, self.said.append, patient=patient, pauses=pauses, long_pause=long
        )
        try:
            yield keeper
        finally:
            await keeper.stop()
            assert not any(psutil.pid_exists(pid) for pid in self.starts)


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


async def test_a_part_that_is_killed_is_started_again(server: Server) -> None:
    async with server.kept() as keeper:
        await keeper.until_up()
        await server.kill(start=1)
        await until(lambda: len(server.said) == 2)
    assert len(server.starts) == 2
    assert server.said == [
        "the server ended with -9; starting it again",
        "the server is up again",
    ]


async def test_a_part_that_is_killed_while_it_starts_is_started_again(server: Server) -> None:
    (server.folder / "slow").touch()
    async with server.kept(patient=False) as keeper:
        await server.kill(start=1)
        await server.kill(start=2)
        await until(lambda: len(server.starts) == 3)
        (server.folder / "up").touch()
        await keeper.until_up()
    log = server.part.log
    again = f"the server ended with -9; see {log}; starting it again"
    assert server.said == [again, again, "the server is up"]


async def test_a_part_that_fails_at_each_start_is_reported_and_tried_again(server: Server) -> None:
    (server.folder / "broken").touch()
    log = server.part.log
    async with server.kept() as keeper:
        await until(lambda: len(server.said) >= 6)
        (server.folder / "broken").unlink()
        await keeper.until_up()
    failed = f"the server ended with 1; see {log}"
    assert server.said[:4] == [f"{failed}; starting it again"] * 4
    assert server.said[4].splitlines() == [
        f"{failed}; it fails at each start; the last lines of {log}:",
        *["  the disk is broken"] * 5,
        "trying the server again every 0.05 s",
    ]
    assert server.said[5].splitlines()[0] == f"{failed}; it fails at each start"
    assert server.said[-1] == "the server is up"


async def test_a_part_that_has_never_been_up_ends_what_does_not_wait_for_it(server: Server) -> None:
    (server.folder / "broken").touch()
    async with server.kept(patient=False) as keeper:
        with pytest.raises(StackError, match=r"the last lines of(.|\n)*the disk is broken"):
            await keeper.until_up()
    assert len(server.starts) == 5


async def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    server = Server(tmp_path)
    missing = str(tmp_path / "missing")
    part = Part("the server", [missing], [], tmp_path / "log", server.part.is_up)
    keeper = Keeper(part, server.said.append, patient=False, pauses=(), long_pause=0)
    with pytest.raises(StackError, match=r"^the server cannot be started: .*missing"):
        await keeper.until_up()
    await keeper.stop()


@pytest.mark.parametrize("moment", ["starting", "up", "pausing"])
async def test_a_part_is_stopped_at_any_moment(server: Server, moment: str) -> None:
    if moment != "up":
        (server.folder / {"starting": "slow", "pausing": "broken"}[moment]).touch()
    async with server.kept(long=3600) as keeper:
        await until(lambda: bool(server.starts))
        if moment == "up":
            await keeper.until_up()
        if moment == "pausing":
            await until(lambda: len(server.said) == 5)
        async with asyncio.timeout(60):
            await keeper.stop()
    assert keeper.task.cancelled()
