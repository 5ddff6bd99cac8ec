"""Messages in overlapping groups, delivered several times, whose workers are lost."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic_core import to_jsonable_python
from temporalio.testing import ActivityEnvironment

from adapters.files.texts.pool import FileTexts
from tests.support.batches.document_loading import KEY, DocumentLoading, document_loading
from tests.support.batches.overlapping import REDRIVES, groups_of_one_pass, messages, rows
from workflows.batches.loads import DocumentEvent, DocumentGroupInput, DocumentLoadInput, GroupEnd

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Killed(BaseException):
    """The worker is gone at this very moment."""


@dataclass
class Deaths:
    """Kills workers at moments that chance chooses: before or after one of their transactions."""

    dice: random.Random
    left: int
    every: int
    """On average, so many transactions pass between two deaths."""

    def lurk(self, loading: DocumentLoading, patch: pytest.MonkeyPatch) -> None:
        for name in (
            *("save_new", "save_whole", "save_version", "save_relations"),
            *("begun", "facts"),
        ):
            patch.setattr(loading.store, name, self._deadly(getattr(loading.store, name)))

    def _deadly(self, call: Any) -> Any:
        async def called(*arguments: Any) -> Any:
            self._maybe_die()
            result = await call(*arguments)
            self._maybe_die()
            return result

        return called

    def _maybe_die(self) -> None:
        if self.left and self.dice.randrange(self.every) == 0:
            self.left -= 1
            raise Killed


@pytest_asyncio.fixture(loop_scope="module")
async def texts() -> AsyncIterator[FileTexts]:
    async with FileTexts() as texts:
        yield texts


async def load_group(loading: DocumentLoading, events: Sequence[DocumentEvent]) -> None:
    """One group, as the server runs it: after a lost worker with its last heartbeat."""
    order = DocumentGroupInput(
        key=KEY, loads=tuple(DocumentLoadInput(event=event) for event in events)
    )
    attempt, heartbeat = 1, list[Any]()
    while True:
        environment = ActivityEnvironment()
        details = to_jsonable_python(heartbeat[-1:])
        environment.info = replace(
            environment.info,
            attempt=attempt,
            heartbeat_details=details,
            heartbeat_timeout=timedelta(seconds=10),
        )
        environment.on_heartbeat = lambda *sent: heartbeat.extend(sent)
        groups = loading.groups()
        try:
            done = await environment.run(groups.load_group, order)
        except Killed:
            attempt += 1
            continue
        except BaseExceptionGroup as lost:
            assert lost.subgroup(Killed) is not None
            attempt += 1
            continue
        break
    for outcome in done.outcomes:
        if outcome.end is GroupEnd.SINGLE:
            await _load_alone(loading, events[outcome.number])


async def _load_alone(loading: DocumentLoading, event: DocumentEvent) -> None:
    while True:
        try:
            await loading.load(event)
        except Killed:
            continue
        return


async def test_overlapping_groups_whose_workers_are_lost_leave_what_one_by_one_leaves(
    tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(14)
    count, deaths = 30, Deaths(dice, 4, 20)
    for name in ("calm", "wild"):
        (tmp_path / name).mkdir()
    async with document_loading(tmp_path / "calm", texts) as calm:
        for event in await messages(calm.put, count):
            await calm.load(event)
        expected = await rows(calm)
    async with document_loading(tmp_path / "wild", texts) as wild:
        events = await messages(wild.put, count)
        deaths.lurk(wild, monkeypatch)
        for _ in range(1 + REDRIVES):
            for group in groups_of_one_pass(events, dice):
                await load_group(wild, group)
        assert not deaths.left
        found = await rows(wild)
    for table, expected_rows in expected.items():
        assert found[table] == expected_rows, table
