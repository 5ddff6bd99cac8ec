"""The processes that read documents: shared, bounded, lost, cancelled, orphaned."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from adapters.files import limits
from adapters.files.texts import pool
from adapters.files.texts.findings import Answer, ReadRequest
from adapters.files.texts.pool import FileTexts
from adapters.ports.documents import Extracted
from adapters.ports.errors import Unavailable
from stack.sample_files import pdf
from tests.support.files.hostile_documents import WRITTEN_AT, pdf_of_many_pages
from tests.support.waiting import eventually

_ROOT = Path(__file__).parents[3]
_CHILD = "adapters.files.texts.child"
_WORKER = """
import asyncio, sys
from pathlib import Path
from adapters.files.texts.pool import FileTexts

async def main():
    texts, path = FileTexts(), Path(sys.argv[1])
    await texts.extract(path, None, path.parent)
    print("read", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
_READABLE = pdf("Title", "Author", WRITTEN_AT, [["text"]])


async def _read(texts: FileTexts, folder: Path, content: bytes) -> Extracted:
    path, inside = folder / "document", folder / "inside"
    inside.mkdir(exist_ok=True)
    path.write_bytes(content)
    return await texts.extract(path, None, inside)


async def test_a_reading_process_that_is_lost_is_replaced(tmp_path: Path) -> None:
    async with FileTexts() as texts:
        await _read(texts, tmp_path, _READABLE)
        (reader,) = _readers(psutil.Process())
        reader.send_signal(signal.SIGKILL)
        with pytest.raises(Unavailable, match="was lost; try again"):
            await _read(texts, tmp_path, _READABLE)
        assert (await _read(texts, tmp_path, _READABLE)).text == "text"


async def test_a_document_whose_process_is_killed_from_outside_is_tried_again(
    tmp_path: Path,
) -> None:
    async with FileTexts() as texts:
        reading = asyncio.create_task(_read(texts, tmp_path, pdf_of_many_pages(100_000)))
        (await _busy_fork(psutil.Process())).send_signal(signal.SIGKILL)
        with pytest.raises(Unavailable, match="the machine ended the process"):
            await reading


async def test_who_is_cancelled_leaves_no_process_behind(tmp_path: Path) -> None:
    async with FileTexts() as texts:
        reading = asyncio.create_task(_read(texts, tmp_path, pdf_of_many_pages(100_000)))
        fork = await _busy_fork(psutil.Process())
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await eventually(_gone(fork))
        assert (await _read(texts, tmp_path, _READABLE)).text == "text"


async def test_a_worker_that_is_killed_takes_its_readers_with_it(tmp_path: Path) -> None:
    path = tmp_path / "document"
    path.write_bytes(_READABLE)
    with _worker(path) as worker:
        assert worker.stdout is not None
        assert await asyncio.to_thread(worker.stdout.readline) == b"read\n"
        readers = _readers(psutil.Process(worker.pid))
        assert len(readers) == 1
        os.kill(worker.pid, signal.SIGKILL)
    await eventually(_gone(*readers))


def _worker(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER, str(path)], stdout=subprocess.PIPE, cwd=_ROOT
    )


def _readers(parent: psutil.Process) -> list[psutil.Process]:
    return [child for child in parent.children() if _CHILD in child.cmdline()]


async def _busy_fork(parent: psutil.Process) -> psutil.Process:
    found: list[psutil.Process] = []

    async def forked() -> bool:
        found[:] = [fork for reader in _readers(parent) for fork in reader.children()]
        return bool(found)

    await eventually(forked)
    return found[0]


def _gone(*processes: psutil.Process) -> Callable[[], Awaitable[bool]]:
    async def gone() -> bool:
        return not any(process.is_running() for process in processes)

    return gone


async def test_many_at_once_share_few_processes(tmp_path: Path) -> None:
    def readers() -> set[psutil.Process]:
        children = psutil.Process().children()
        return {child for child in children if "adapters.files.texts.child" in child.cmdline()}

    before = readers()
    async with FileTexts(at_once=2) as texts:

        async def read_one(number: int) -> str:
            folder = tmp_path / str(number)
            folder.mkdir()
            path = folder / "document"
            path.write_bytes(b"text %d" % number)
            return (await texts.extract(path, None, folder)).text

        found = await asyncio.gather(*map(read_one, range(20)))
        assert found == [f"text {number}" for number in range(20)]
        assert len(readers() - before) == 2
    assert readers() == before


async def test_both_kinds_of_process_read_no_more_documents_than_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int] = []
    reading = 0

    async def ask(forks: object, order: ReadRequest) -> Answer:
        nonlocal reading
        reading += 1
        asked.append(reading)
        await asyncio.sleep(0)
        reading -= 1
        is_second = forks is texts._office
        return Answer(
            extracted=Extracted("text/plain", "text") if is_second else None,
            needs_library=not is_second,
        )

    monkeypatch.setattr(pool, "_ask", ask)
    async with FileTexts(at_once=2) as texts:
        reads = (texts.extract(tmp_path / "document", None, tmp_path) for _ in range(5))
        await asyncio.gather(*reads)
    assert (len(asked), max(asked)) == (10, 2)


async def test_the_library_is_loaded_only_where_an_office_file_is_read(tmp_path: Path) -> None:
    def readers() -> list[str]:
        children = psutil.Process().children()
        return [name for child in children for name in child.cmdline() if "office_child" in name]

    before = len(readers())
    (tmp_path / "inside").mkdir()
    async with FileTexts() as texts:
        for content, more in ((b"plain words", 0), (rb"{\rtf1\ansi words}", 1)):
            (tmp_path / "document").write_bytes(content)
            await texts.extract(tmp_path / "document", None, tmp_path / "inside")
            assert len(readers()) == before + more


async def test_text_beyond_the_limit_is_cut_off_and_noted(tmp_path: Path) -> None:
    async with FileTexts() as texts:
        found = await _read(texts, tmp_path, "ä".encode() * (limits.TEXT_BYTES // 2 + 10))
    assert len(found.text.encode()) == limits.TEXT_BYTES
    assert found.truncated
    assert found.notes == ["only the first 20 MB of its text are kept"]
