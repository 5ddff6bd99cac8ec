"""A gateway reads few corrected exports side by side, because their readers take much memory."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workers.shared.services.errors import Refused
from workers.spreadsheets import memory, reviews
from workers.spreadsheets.memory import SpreadsheetValueFiles
from workers.spreadsheets.reviews import ReviewChanges, SpreadsheetReviewService
from workflows.spreadsheets.mappings import SpreadsheetState

Who: Any = object()
Nothing: Any = None


class _Turns(asyncio.Semaphore):
    """Says when it is asked for a turn."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.asked = asyncio.Event()

    async def acquire(self) -> Any:
        self.asked.set()
        return await super().acquire()


class _Import:
    """An import whose values are asked for."""

    async def writable(self, who: object, uuid: str) -> Any:
        return SimpleNamespace(uuid=uuid, version=1, state=SpreadsheetState.CELL_MAPPING)


class _Export:
    """A file that is uploaded."""

    filename = "values.xls"

    async def open(self) -> None: ...

    async def file(self) -> Any:
        yield b"cells"

    async def finish(self) -> None: ...


def _values(scratch: Path, reading: asyncio.Semaphore) -> Callable[..., Awaitable[Any]]:
    answers: Any = _Import()
    return SpreadsheetValueFiles(answers, Nothing, Nothing, scratch, reading).upload


def _rows(scratch: Path, reading: asyncio.Semaphore) -> Callable[..., Awaitable[Any]]:
    queries: Any = _Import()
    unused: Any = SimpleNamespace(reviews=None)
    service = SpreadsheetReviewService(queries, unused, unused, Nothing, Nothing, scratch, reading)
    return service.upload


@pytest.mark.parametrize("service", [_values, _rows])
async def test_an_export_is_read_when_another_one_is_done(
    service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reading = _Turns(1)
    read: list[str] = []

    def values(path: Path, filename: str) -> Any:
        read.append(filename)
        raise Refused("no values")

    async def rows(path: Path, filename: str, *_: object) -> Any:
        return values(path, filename)

    async def nothing(*_: object) -> Any:
        return SimpleNamespace(version=1)

    monkeypatch.setattr(memory, "_read", values)
    monkeypatch.setattr(reviews, "corrections_of", rows)
    monkeypatch.setattr(ReviewChanges, "state", nothing)
    monkeypatch.setattr(ReviewChanges, "edits", nothing)
    upload = service(tmp_path, reading)
    await reading.acquire()
    reading.asked.clear()
    uploading = asyncio.create_task(upload(Who, "5eed", _Export()))
    await reading.asked.wait()
    assert not read
    reading.release()
    with pytest.raises(Refused, match="no values"):
        await uploading
    assert read == ["values.xls"]
    assert not reading.locked()
    assert not list(tmp_path.iterdir())
