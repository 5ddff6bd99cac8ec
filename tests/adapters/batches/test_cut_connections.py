"""Groups of documents whose connection to PostgreSQL is cut in the middle of their transaction."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from adapters.database.engine import Database, open_database
from adapters.files.texts.pool import FileTexts
from tests.support.batches.document_loading import KEY, DocumentLoading
from tests.support.fresh_database import administer
from workflows.batches.loads import DocumentProcessed, DocumentRelations, GroupEnd, Relation
from workflows.shared.dependencies import Dependency

DOCUMENTS = 3


@dataclass
class Cut:
    """Ends the session of a database before one of its statements or its commit."""

    server_url: str
    left: int = 0
    """Statements until then; 0: it has happened, or nothing is to happen."""

    def watch(self, database: Database) -> None:
        engine = database.engine.sync_engine
        event.listen(engine, "before_cursor_execute", lambda connection, *_: self._pass(connection))
        event.listen(engine, "commit", self._pass)

    def _pass(self, connection: Any) -> None:
        if self.left == 0:
            return
        self.left -= 1
        if self.left:
            return
        session = connection.connection.driver_connection.get_server_pid()
        command = f"SELECT pg_terminate_backend({session}, 10000)"
        # Within the loop of the statement there is no way to wait for another connection.
        other = threading.Thread(target=asyncio.run, args=(administer(self.server_url, command),))
        other.start()
        other.join()


@pytest.fixture
async def texts() -> AsyncIterator[FileTexts]:
    async with FileTexts() as texts:
        yield texts


async def test_a_group_whose_connection_is_cut_anywhere_waits_and_loads_everything_once(
    database_url: str, postgres_url: str, tmp_path: Path, texts: FileTexts
) -> None:
    cut, outages = Cut(postgres_url), 0
    async with open_database(database_url) as database:
        cut.watch(database)
        loading = DocumentLoading(tmp_path, database, texts)
        await loading.start_batch()
        for number in itertools.count(1):
            names = [f"D-{number}-{each}" for each in range(DOCUMENTS)]
            events: list[DocumentProcessed | DocumentRelations] = [
                await loading.send(name, name.encode(), "words.txt", tags=(f"tag {name}",))
                for name in names
            ]
            ids = {"case_id": KEY.case_id, "batch_id": KEY.batch_id, "document_id": names[0]}
            related = (Relation(related_id=names[1]),)
            events.append(DocumentRelations(**ids, relations=related))
            cut.left = number
            outcomes = await loading.load_group(*events)
            was_cut, cut.left = cut.left == 0, 0
            for each in outcomes:
                # A person never hears of it: what is not done yet waits for the database.
                assert each.end in (GroupEnd.DONE, GroupEnd.OUTAGE), each
                if each.end is GroupEnd.OUTAGE:
                    assert each.awaited is not None
                    assert each.awaited.dependency is Dependency.DATABASE
                    outages += 1
            again = await loading.load_group(*events)
            assert [each.end for each in again] == [GroupEnd.DONE] * len(events)
            await _assert_loaded_once(loading, names)
            if not was_cut:
                break
    # The transaction of three documents takes more statements than this, reads included.
    assert number > 8 and outages


async def _assert_loaded_once(loading: DocumentLoading, names: list[str]) -> None:
    texts = await loading.rows("document_texts", "document_id", "text")
    assert [row for row in texts if row[0] in names] == [(name, name) for name in names]
    tags = await loading.rows("document_tags", "document_id", "tag")
    for name in names:
        assert tags.count((name, f"tag {name}")) == 1
    related = await loading.rows("document_relations", "document_id", "related_id")
    assert related.count((names[0], names[1])) == 1
    states = await loading.rows("documents", "document_id", "state")
    assert [state for name, state in states if name in names] == ["loaded"] * len(names)
