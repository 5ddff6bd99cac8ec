"""Reading processes: what an order may do and cost, and that it ends with its caller."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from adapters.files import gdal, landlock, limits
from adapters.files.forks import Bounds, ForkRequest, Forks
from adapters.ports.errors import PortError, ReaderFailed, Unavailable, UnreadableDocument
from tests.support.processes import ROOT
from tests.support.waiting import eventually

CHILD = "tests.support.jobs.probing_child"
BOUNDS = Bounds(memory_bytes=512 * limits.MB, cpu_seconds=1, seconds=20, file_bytes=1000)


@pytest.fixture
async def forks() -> AsyncIterator[Forks]:
    async with Forks(CHILD, 2, gdal.ENVIRONMENT) as found:
        yield found


async def ask(forks: Forks, body: str, *writable: Path) -> list[str]:
    order = ForkRequest(body=body, bounds=BOUNDS, writable=writable)
    async with aclosing(forks.answer(order)) as pieces:
        return [piece.decode() async for piece in pieces]


async def test_an_answer_comes_in_pieces_and_the_process_serves_the_next(forks: Forks) -> None:
    assert await ask(forks, "echo one two") == ["one", "two"]
    assert await ask(forks, "echo") == []
    assert await ask(forks, "echo three") == ["three"]


async def test_the_environment_hardens_gdal(forks: Forks) -> None:
    assert await ask(forks, "hardened") == []
    async with Forks(CHILD, 1) as bare:
        with pytest.raises(UnreadableDocument):
            await ask(bare, "hardened")


def test_this_process_is_not_hardened() -> None:
    with pytest.raises(gdal.NotHardened, match="GDAL_SKIP"):
        gdal.require()


async def test_nothing_outside_its_folders_is_read_written_or_deleted(
    forks: Forks, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert await ask(forks, f"read {secret}", folder) == ["PermissionError"]
    assert await ask(forks, f"write {tmp_path / 'new'}", folder) == ["PermissionError"]
    assert await ask(forks, f"delete {secret}", folder) == ["PermissionError"]
    assert await ask(forks, "read /etc/passwd", folder) == ["PermissionError"]
    assert await ask(forks, f"write {folder / 'new'}", folder) == ["done 1"]
    assert await ask(forks, "where", folder) == [str(folder)]
    assert secret.read_text() == "s3cret"


async def test_no_host_is_reached(forks: Forks, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert await ask(forks, f"connect {port}", tmp_path) == ["PermissionError"]


async def test_memory_and_files_are_bounded(forks: Forks, tmp_path: Path) -> None:
    assert await ask(forks, f"swell {1 << 30}", tmp_path) == ["MemoryError"]
    assert await ask(forks, "fill 1000000", tmp_path) == ["OSError"]
    assert (tmp_path / "filled").stat().st_size <= BOUNDS.file_bytes


async def test_processor_time_is_bounded(forks: Forks) -> None:
    with pytest.raises(UnreadableDocument, match="more than 1 s of processor time"):
        await ask(forks, "spin")
    assert await ask(forks, "echo still") == ["still"]


@pytest.mark.parametrize(
    ("order", "error", "says"),
    [
        ("raise key", ReaderFailed, "unexpected KeyError at probing_child.py:[0-9]+: 'band'; this"),
        (
            "raise panic",
            ReaderFailed,
            "unexpected __main__.Panic at probing_child.py:[0-9]+: index out of",
        ),
        ("raise denied", ReaderFailed, "unexpected PermissionError at probing_child.py:[0-9]+"),
        ("raise zlib", UnreadableDocument, r"damaged or cut off \(zlib.error at .*invalid"),
        ("raise lzma", UnreadableDocument, r"damaged or cut off \(_lzma.LZMAError at .*Corrupt"),
        ("raise struct", UnreadableDocument, r"damaged or cut off \(struct.error at .*unpack"),
        (
            "raise seek",
            UnreadableDocument,
            r"damaged or cut off \(OSError at .*Invalid",
        ),
        ("raise large", UnreadableDocument, "unpacks to a larger file than docflow writes"),
        ("raise memory", UnreadableDocument, "needs more than 512 MB of memory; split it"),
        ("raise mapping", UnreadableDocument, "needs more than 512 MB of memory; split it"),
        ("raise full", Unavailable, "the scratch disk is full"),
        ("raise quota", Unavailable, "the scratch disk is full"),
        ("raise disk", Unavailable, "the disk of this machine failed"),
        (
            "abort",
            UnreadableDocument,
            r"the reader crashed with signal 6 \(SIGABRT\); save",
        ),
        ("exit", UnreadableDocument, "the reader ended with code 3 and without an answer"),
        ("lie", UnreadableDocument, "the reader ended with code 76 and without an answer"),
    ],
)
async def test_an_exception_is_damage_our_disk_or_the_reader(
    forks: Forks, order: str, error: type[PortError], says: str
) -> None:
    with pytest.raises(PortError, match=says) as failed:
        await ask(forks, order)
    assert type(failed.value) is error
    assert "/usr" not in str(failed.value)
    assert await ask(forks, "echo still") == ["still"]


async def test_a_cancelled_order_ends_at_once(forks: Forks) -> None:
    order = ForkRequest(body="pid", bounds=Bounds())
    pids: list[int] = []

    async def wait() -> None:
        async with aclosing(forks.answer(order)) as pieces:
            async for piece in pieces:
                pids.append(int(piece))

    waiting = asyncio.create_task(wait())

    async def started() -> bool:
        return bool(pids)

    await eventually(started)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    async def gone() -> bool:
        return not psutil.pid_exists(pids[0])

    await eventually(gone)


async def test_a_killed_caller_leaves_no_process() -> None:
    command = (sys.executable, "-m", "tests.support.fork_caller", CHILD)
    caller = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert caller.stdout is not None
    fork = psutil.Process(int(await caller.stdout.readline()))
    parent = fork.parent()
    assert parent is not None
    caller.kill()
    await caller.wait()

    async def gone() -> bool:
        return not fork.is_running() and not parent.is_running()

    try:
        await eventually(gone)
    finally:
        for each in (fork, parent):
            if each.is_running():
                each.kill()


def test_a_kernel_without_landlock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_CREATE_RULESET", 100_000)
    assert landlock.confine([], []) is False
