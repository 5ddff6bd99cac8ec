"""A bridge, killed between the start of a run and the settlement of its message."""

import asyncio
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from activities.imports.views import SqlImportTasks
from tests.crash.documents import PROJECT, Document
from tests.crash.harness import BRIDGE, WORKER, running_system, until
from tests.crash.outcomes import assert_nothing_left
from workflows.imports.messages import Strategy
from workflows.imports.runs import Counts, ImportState

pytestmark = pytest.mark.chaos(alone=True)

KILLS = 20
MOST_KILLS = 60
"""On a busy machine fewer of them find a message between its start and its settlement."""
HITS = KILLS / 4
IMPORTS = "WorkflowType = 'DocumentImport'"
WAVE = 10
"""Messages on their way for each kill."""


async def test_a_killed_bridge_starts_every_import_once(
    tmp_path: Path, chance: random.Random
) -> None:
    documents: list[Document] = []
    began = time.monotonic()
    async with running_system(tmp_path, BRIDGE, WORKER) as system:
        client = await system.client()
        bridge = system.docflow[0]

        def met_again() -> int:
            return bridge.log.read_text().count("was started before")

        while bridge.kills < KILLS or (met_again() < HITS and bridge.kills < MOST_KILLS):
            wave = [
                Document(f"note-{bridge.kills:02}-{n}", Strategy.APPEND, 3) for n in range(WAVE)
            ]
            documents += wave
            await system.submit(wave)
            await until(partial(_is_started, client, wave[0]), "a run is started", every=0.01)
            await asyncio.sleep(chance.uniform(0, 0.03))
            await bridge.kill()
            await bridge.start()
        await system.ended(documents)

        async def queue_is_empty() -> bool:
            return (await system.queue.depth(1)).waiting == 0

        await until(queue_is_empty, "every message is settled", every=0.2)
        runs = Counter([run.id async for run in client.list_workflows(IMPORTS)])
        assert runs == Counter(document.message.workflow_id for document in documents)
        for document in documents:
            row = await SqlImportTasks(system.resources.database).get(PROJECT, document.task_id)
            assert row is not None
            assert (row.state, row.counts) == (ImportState.COMPLETED, Counts(created=3))
        await assert_nothing_left(system)
    print(
        f"{bridge.kills} kills, {len(documents)} messages, {time.monotonic() - began:.0f} s; "
        f"started and not settled when the bridge died: {met_again()}"
    )
    # A kill that finds every message either untouched or settled proves nothing.
    assert met_again() >= HITS


async def _is_started(client: Client, document: Document) -> bool:
    try:
        await client.get_workflow_handle(document.message.workflow_id).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True
