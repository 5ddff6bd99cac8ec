"""Messages in overlapping groups, delivered several times, whose workers are lost."""

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.testing import ActivityEnvironment

from adapters.files.texts.pool import FileTexts
from contracts.batches import (
    DocumentEvent,
    DocumentProcessed,
    DocumentRelations,
    GroupEnd,
    GroupOrder,
    GroupProgress,
    LoadOrder,
    Relation,
)
from tests.support.batches.document_loading import KEY, DocumentLoading, document_loading
from tests.support.chaos import kills
from tests.support.files.hostile_documents import WRITTEN_AT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chaos]

DELIVERIES, REDRIVES = 4, 2
TABLES = {
    "documents": ("document_id", "state", "blob_name", "sha256", "message_key"),
    "document_texts": ("document_id", "text"),
    "document_tags": ("document_id", "tag"),
    "document_relations": ("document_id", "related_id", "kind"),
    "document_versions": ("document_id", "blob_name", "sha256"),
    "process_checkpoints": ("document_id", "message_key", "event_type"),
    "failed_messages": ("document_id",),
}


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
        for name in ("save_whole", "save_version", "save_relations", "facts"):
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


async def messages(loading: DocumentLoading, count: int) -> list[DocumentEvent]:
    """Documents with up to three versions each, and relations of every fifth."""
    events: list[DocumentEvent] = []
    for number in range(count):
        document = f"D-{number * 2 // 5}"
        where = {"case_id": KEY.case_id, "batch_id": KEY.batch_id, "document_id": document}
        if number % 5 == 4:
            related = (Relation(related_id=f"R-{number}"),)
            events.append(DocumentRelations(**where, relations=related))
            continue
        name = f"in/{number}"
        await loading.put(name, b"words of %d" % number)
        events.append(
            DocumentProcessed(
                **where,
                blob_name=name,
                filename="words.txt",
                tags=(f"t-{number}",),
                sent_at=WRITTEN_AT + timedelta(minutes=number),
            )
        )
    return events


async def load_group(loading: DocumentLoading, events: Sequence[DocumentEvent]) -> None:
    """One group, as the server runs it: after a lost worker with its last heartbeat."""
    order = GroupOrder(key=KEY, loads=tuple(LoadOrder(event=event) for event in events))
    attempt, heartbeat = 1, list[GroupProgress]()
    while True:
        environment = ActivityEnvironment()
        details = [each.model_dump(mode="json") for each in heartbeat[-1:]]
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


async def rows(loading: DocumentLoading) -> dict[str, list[tuple[Any, ...]]]:
    return {
        table: sorted(set(await loading.rows(table, *columns))) for table, columns in TABLES.items()
    }


async def test_overlapping_groups_whose_workers_are_lost_leave_what_one_by_one_leaves(
    migrated: Path, tmp_path: Path, texts: FileTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(14)
    count, deaths = kills(30, 300), Deaths(dice, kills(4, 20), kills(20, 100))
    for name in ("calm", "wild"):
        (tmp_path / name).mkdir()
    async with document_loading(migrated, tmp_path / "calm", texts) as calm:
        for event in await messages(calm, count):
            await calm.load(event)
        expected = await rows(calm)
    async with document_loading(migrated, tmp_path / "wild", texts) as wild:
        events = await messages(wild, count)
        deaths.lurk(wild, monkeypatch)
        for _ in range(1 + REDRIVES):
            delivered = [event for event in events for _ in range(dice.randint(1, DELIVERIES))]
            dice.shuffle(delivered)
            while delivered:
                size = dice.randint(1, 10)
                group, delivered = delivered[:size], delivered[size:]
                # Some of them are in another group too.
                await load_group(wild, [*group, *dice.sample(events, 10 - size)])
        assert not deaths.left
        found = await rows(wild)
    for table, expected_rows in expected.items():
        assert found[table] == expected_rows, table
