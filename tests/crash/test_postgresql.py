"""PostgreSQL, shut down at once and started again while documents are loaded."""

import asyncio
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from temporalio.client import Client

from adapters.database.schema import upgrade
from stack.children import free_port
from stack.postgres import postgres_server
from tests.crash.documents import LARGE, MIDDLE, SMALL, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, running_system, until
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left
from workers.shared.resources import Resources

pytestmark = pytest.mark.chaos(alone=True)

RESTARTS = 20
WAITING = "State = 'waiting' AND ExecutionStatus = 'Running'"
OUTAGE = "WorkflowType = 'Outage' AND ExecutionStatus = 'Running'"


class Postgres:
    """A server that keeps its data and its port from start to start."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._running = ExitStack()

    def start(self) -> str:
        """Start it; its URL."""
        # Commits have to outlive the server, so it writes them through.
        server = postgres_server(self._folder, port=self._port, durable=True)
        return self._running.enter_context(server)

    def crash(self) -> None:
        """Immediate shutdown: every session is cut off, nothing is tidied up."""
        postmaster = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(postmaster, signal.SIGQUIT)
        self._running.close()

    def stop(self) -> None:
        """End it in an orderly way, if it runs."""
        self._running.close()


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    # PostgreSQL refuses to run as root, and its own user cannot enter pytest's folders.
    folder = Path(tempfile.mkdtemp(prefix="docflow-crash-"))
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


async def test_a_database_that_crashes_parks_loses_and_doubles_nothing(
    tmp_path: Path, postgres: Postgres, calm: Resources, chance: random.Random
) -> None:
    documents = [*LARGE, *MIDDLE, *SMALL[:12]]
    began = time.monotonic()
    url = await asyncio.to_thread(postgres.start)
    await upgrade(url)
    async with running_system(tmp_path, WORKER_WITH_BRIDGE, database_url=url) as system:
        client = await system.client()
        await system.import_all(earlier(documents))
        for number in range(RESTARTS):
            before = await system.footprint()
            await system.submit(documents[number::RESTARTS])
            await system.work_resumes(before)
            await asyncio.sleep(chance.uniform(0, 0.4))
            await asyncio.to_thread(postgres.crash)
            if number == RESTARTS - 1:
                # Longer than a step tries for: what is under way waits.
                await until(lambda: _is_any(client, WAITING), "a run waits", every=0.5)
                await until(lambda: _is_any(client, OUTAGE), "the outage is shown", every=0.5)
            await asyncio.to_thread(postgres.start)
        await system.ended(documents)
        await until(lambda: _is_none(client, OUTAGE), "the outage is over", within=120, every=0.5)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
        waits = await _assert_none_parked(client)
    print(
        f"{RESTARTS} restarts, {len(documents)} documents, {time.monotonic() - began:.0f} s; "
        f"waits: {waits}"
    )
    assert waits


async def _is_any(client: Client, query: str) -> bool:
    return bool((await client.count_workflows(query)).count)


async def _is_none(client: Client, query: str) -> bool:
    return not await _is_any(client, query)


async def _assert_none_parked(client: Client) -> int:
    """No import needed a person at any time; how often one waited."""
    waits = 0
    async for run in client.list_workflows("WorkflowType = 'DocumentImport'"):
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        for event in history.events:
            changed = event.upsert_workflow_search_attributes_event_attributes
            fields = changed.search_attributes.indexed_fields
            assert fields["State"].data != b'"parked"', run.id
            waits += fields["State"].data == b'"waiting"'
    return waits
