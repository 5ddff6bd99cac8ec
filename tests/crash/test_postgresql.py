"""PostgreSQL, shut down at once and started again while documents are loaded."""

import asyncio
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from contracts.imports import Retry
from stack.children import free_port
from stack.postgres import postgres_server
from tests.crash.documents import LARGE, MIDDLE, SMALL, Document, earlier
from tests.crash.harness import WORKER_WITH_BRIDGE, System, running_system, until
from tests.crash.outcomes import assert_as_undisturbed, assert_nothing_left
from tests.support.chaos import kills
from workers.resources.common import Resources
from workflows.imports.document_import import DocumentImport

pytestmark = pytest.mark.chaos

RESTARTS = kills(5, 20)


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


async def test_a_database_that_crashes_loses_and_doubles_no_row(
    tmp_path: Path, postgres: Postgres, calm: Resources, chance: random.Random
) -> None:
    documents = [*LARGE, *MIDDLE, *SMALL[:12]]
    began = time.monotonic()
    url = await asyncio.to_thread(postgres.start)
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
                # Longer than a step tries for: what is under way parks.
                await until(lambda: _is_any_parked(client), "a run parks", every=0.5)
            await asyncio.to_thread(postgres.start)
        answers = await _retry_until_done(system, client, documents)

        await assert_as_undisturbed(documents, system.resources, calm, tmp_path)
        await assert_nothing_left(system)
    print(
        f"{RESTARTS} restarts, {len(documents)} documents, {time.monotonic() - began:.0f} s; "
        f"answers: {answers}"
    )
    assert answers


async def _is_any_parked(client: Client) -> bool:
    return bool(await _parked(client))


async def _parked(client: Client) -> list[str]:
    query = "NeedsAttention = true AND ExecutionStatus = 'Running'"
    return [run.id async for run in client.list_workflows(query)]


async def _retry_until_done(system: System, client: Client, documents: Sequence[Document]) -> int:
    """Answer every run that parks with `retry`, as a person would; how many answers it took."""
    tasks, answers = {document.task_id for document in documents}, 0

    async def done() -> bool:
        nonlocal answers
        for workflow_id in await _parked(client):
            answers += await _retry(client, workflow_id)
        return tasks <= await system.finished_tasks()

    await until(done, "every document is done", within=120, every=0.5)
    return answers


async def _retry(client: Client, workflow_id: str) -> bool:
    handle = client.get_workflow_handle_for(DocumentImport.run, workflow_id)
    try:
        await handle.execute_update(DocumentImport.retry, Retry(by="an operator"))
    except WorkflowUpdateFailedError:
        # The list of parked runs lags behind: this one has gone on already, or has even ended.
        return False
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return True
