"""Overlapping groups of documents, while their workers are killed in the middle of transactions."""

import asyncio
import random
import signal
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from adapters.database.engine import open_database
from adapters.files.texts.pool import FileTexts
from stack.temporal import temporal_server
from tests.crash import group_worker
from tests.support.batches.document_loading import KEY, DocumentLoading
from tests.support.batches.overlapping import REDRIVES, groups_of_one_pass, messages, rows
from tests.support.forks import FORKS, ended
from tests.support.fresh_database import fresh_url
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workflows.batches.loads import (
    DocumentEvent,
    DocumentGroupInput,
    DocumentLoadInput,
    GroupStatus,
)
from workflows.batches.names import TASK_QUEUE

pytestmark = pytest.mark.chaos(alone=True)

MESSAGES, DEATHS = 80, 20
LATEST_DEATH = 150
"""Statements of a worker before it dies, at the most."""
WORKERS = 2
AT_ONCE = 16
SMALLEST = 4
TASK_TIMEOUT = timedelta(seconds=3)
"""How long the death of a worker goes unnoticed."""


class Workers:
    """Processes that load groups; whenever one has died, another one starts."""

    def __init__(self, folder: Path, settings: dict[str, str], chance: random.Random) -> None:
        self._folder, self._settings, self._chance = folder, settings, chance
        self._left = DEATHS
        self.deaths = 0

    async def keep_working(self) -> None:
        """Start a worker, and another one whenever it dies, until cancelled."""
        while True:
            last = self._chance.randint(20, LATEST_DEATH) if self._left else 0
            self._left -= bool(last)
            worker = FORKS.Process(
                target=group_worker.main, args=(self._folder, self._settings, last)
            )
            worker.start()
            try:
                await ended(worker)
            finally:
                worker.kill()
                await ended(worker)
            assert worker.exitcode == -signal.SIGKILL
            self.deaths += 1


@asynccontextmanager
async def _loading(url: str, folder: Path) -> AsyncGenerator[DocumentLoading]:
    """A batch with tables of its own."""
    folder.mkdir()
    async with open_database(url) as database, FileTexts() as texts:
        loading = DocumentLoading(folder, database, texts)
        await loading.start_batch()
        yield loading


async def _load_pass(client: Client, groups: Sequence[Sequence[DocumentEvent]]) -> int:
    """Load groups side by side, and what they gave to loads of their own; how many those were."""
    room = asyncio.Semaphore(AT_ONCE)
    alone: set[str] = set()

    async def load(events: Sequence[DocumentEvent]) -> None:
        ids = defaultdict[str, set[str]](set)
        for event in events:
            ids[event.document_id].add(event.workflow_id)
        async with room:
            done: GroupStatus = await client.execute_workflow(
                "DocumentGroup",
                DocumentGroupInput(
                    key=KEY, loads=tuple(DocumentLoadInput(event=event) for event in events)
                ),
                id=f"{KEY.group_prefix}{uuid.uuid4().hex}",
                task_queue=TASK_QUEUE,
                result_type=GroupStatus,
                task_timeout=TASK_TIMEOUT,
            )
        for document_id in done.single:
            alone.update(ids[document_id])

    await asyncio.gather(*map(load, groups))
    open_loads = "WorkflowType = 'DocumentLoad' AND ExecutionStatus = 'Running'"
    for workflow_id in sorted(alone):
        async for run in client.list_workflows(f"WorkflowId = '{workflow_id}'"):
            await client.get_workflow_handle(run.id, run_id=run.run_id).result()
    while (await client.count_workflows(open_loads)).count:
        async for run in client.list_workflows(open_loads):
            await client.get_workflow_handle(run.id, run_id=run.run_id).result()
    return len(alone)


async def test_groups_whose_workers_are_killed_leave_what_one_by_one_leaves(
    tmp_path: Path, chance: random.Random
) -> None:
    began, started, alone = time.monotonic(), 0, 0
    async with AsyncExitStack() as stack:
        calm = await stack.enter_async_context(_loading(fresh_url(), tmp_path / "calm"))
        for event in await messages(calm.put, MESSAGES):
            await calm.load(event)
        expected = await rows(calm)

        url = fresh_url()
        wild = await stack.enter_async_context(_loading(url, tmp_path / "wild"))
        server = await stack.enter_async_context(
            temporal_server(tmp_path / "temporal", ui=False, in_memory=True)
        )
        settings = {
            "TEMPORAL_ADDRESS": server.address,
            "DATABASE_URL": url,
            "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
            "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
        }
        common = await stack.enter_async_context(open_resources(settings))
        file = tmp_path / "put"

        async def put(name: str, content: bytes) -> Any:
            file.write_bytes(content)
            return await common.blobs.upload(file, name)

        events = await messages(put, MESSAGES)
        client = await connect(server.address)
        workers = Workers(tmp_path, settings, chance)
        keeping = [asyncio.create_task(workers.keep_working()) for _ in range(WORKERS)]
        try:
            for _ in range(1 + REDRIVES):
                groups = list(groups_of_one_pass(events, chance, SMALLEST))
                started += len(groups)
                alone += await _load_pass(client, groups)
        finally:
            for each in keeping:
                each.cancel()
            ends = await asyncio.gather(*keeping, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, asyncio.CancelledError)] == []
        found = await rows(wild)
    print(
        f"{MESSAGES} messages, {started} groups, {alone} loads of their own, "
        f"{workers.deaths} deaths, {time.monotonic() - began:.0f} s"
    )
    assert workers.deaths == DEATHS
    for table, expected_rows in expected.items():
        assert found[table] == expected_rows, table
