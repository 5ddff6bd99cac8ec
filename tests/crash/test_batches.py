"""A worker that dies after any call to AWS leaves all resources of its batch, or none.

Every call that provisioning and teardown make is enumerated from a calm run; the worker is killed
after each that changes something, and another one resumes.
"""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client

from activities.batches.document_store import SqlLoadStore
from activities.batches.provisioning import BatchOrphans
from activities.batches.store import SqlBatchStore
from adapters.aws.session import AwsSettings, open_aws
from adapters.database.engine import open_database
from stack.embedded import batch_pointers, install_on
from stack.ministack import ministack
from stack.temporal import temporal_server
from tests.crash import dying_worker
from tests.crash.dying_worker import CALLS, LAST
from tests.crash.harness import PATIENCE, until
from tests.support.forks import FORKS, ended
from tests.support.fresh_database import fresh_url
from workers.batches.resources import batch_resources
from workers.batches.settings import BatchSettings
from workers.shared.connect import connect
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import BatchEndFinished, ImportCancelled, JobFinished, JobStarted
from workflows.batches.loads import DocumentProcessed, DocumentState
from workflows.batches.names import TASK_QUEUE, BatchKey, LoaderStatus, Phase, Resource, Timings
from workflows.batches.runs import BatchResult, CaseInput, DocumentCounts, SweepInput, Swept
from workflows.batches.sweeper import BatchSweeper
from workflows.batches.validation import FoundResource
from workflows.shared import attributes
from workflows.shared.contracts import BlobRef

pytestmark = [pytest.mark.chaos(alone=True), pytest.mark.asyncio(loop_scope="module")]

INSTALLATIONS = 3
"""Installations side by side: most of the time is spent waiting for a dead worker's heartbeat."""
READS = ("Get", "List")
"""Begin the names of calls after which nothing is other than before."""
QUICK = Timings(settle=0, poll=1, hold=0)
ONE_OF_EACH = Counter(
    {
        kind: 1
        for kind in (
            Resource.QUEUE,
            Resource.DEAD_LETTERS,
            Resource.SUBSCRIPTION,
            Resource.FUNCTION,
            Resource.MAPPING,
            Resource.CONCURRENCY,
        )
    }
)


Call = tuple[str, int]
"""Name of a call, and its place among the calls of that name, from 1."""


@dataclass
class Installation:
    """Temporal and tables of its own, in a cloud that all installations share."""

    name: str
    folder: Path
    settings: dict[str, str]
    client: Client
    store: SqlBatchStore
    sweeping: BatchOrphans
    batches: int = 0
    deaths: int = 0

    async def keep_working(self) -> None:
        """Start a worker, and another one whenever it dies, until cancelled."""
        while True:
            worker = FORKS.Process(target=dying_worker.main, args=(self.folder, self.settings))
            worker.start()
            try:
                await ended(worker)
            finally:
                worker.terminate()
                await ended(worker)
            assert worker.exitcode == -signal.SIGKILL
            self.deaths += 1

    def kill_after(self, call: Call | None) -> None:
        """Have the worker die after a call of the next batch."""
        (self.folder / CALLS).unlink(missing_ok=True)
        (self.folder / LAST).write_text("" if call is None else f"{call[0]} {call[1]}")

    @property
    def calls(self) -> Sequence[Call]:
        """The calls of the batch so far."""
        seen = Counter[str]()
        calls: list[Call] = []
        for name in (self.folder / CALLS).read_text().split():
            seen[name] += 1
            calls.append((name, seen[name]))
        return calls

    async def start_batch(self) -> BatchKey:
        """Start a batch of a case of its own, whose documents have all been sent."""
        self.batches += 1
        key = BatchKey(case_id=self.batches, batch_id=1)
        events = (
            JobFinished(case_id=key.case_id, batch_id=1),
            JobStarted(case_id=key.case_id, batch_id=1),
        )
        await self.client.start_workflow(
            CaseQueue.run,
            CaseInput(case_id=key.case_id, timings=QUICK, inbox=events),
            id=key.case_workflow_id,
            task_queue=TASK_QUEUE,
        )
        return key

    async def until_loaded(self, key: BatchKey) -> None:
        """Wait until the batch asks for its end."""
        handle = self.client.get_workflow_handle(key.workflow_id)

        async def loaded() -> bool:
            # No query is answered while the worker is dead.
            seen = (await handle.describe()).typed_search_attributes
            assert not seen.get(attributes.NEEDS_ATTENTION), handle.id
            return seen.get(attributes.STATE) == Phase.ENDING

        view = self.store

        async def begun() -> bool:
            found = await view.get(key)
            return found is not None and found.status is LoaderStatus.PROCESSING

        await until(begun, f"{key} of {self.name} begins")
        await until(loaded, f"{key} of {self.name} is loaded", every=0.1)

    async def end(self, key: BatchKey) -> None:
        """What follows the loading is done."""
        case = self.client.get_workflow_handle(key.case_workflow_id)
        await case.signal("take", BatchEndFinished(case_id=key.case_id, batch_id=1))

    async def result(self, key: BatchKey) -> BatchResult:
        """How the batch ended."""
        handle = self.client.get_workflow_handle(key.workflow_id, result_type=BatchResult)
        async with asyncio.timeout(PATIENCE):
            return await handle.result()

    async def found(self) -> list[FoundResource]:
        """Whatever exists of its batches."""
        return [found async for found in self.sweeping.everything()]


@asynccontextmanager
async def _installation(name: str, folder: Path, aws: AwsSettings) -> AsyncGenerator[Installation]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True)
        )
        settings = {
            "TEMPORAL_ADDRESS": server.address,
            "DATABASE_URL": fresh_url(),
            "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
            "DOCFLOW_SCRATCH": str(folder / "scratch"),
            "DOCFLOW_BATCH_PREFIX": name,
            **batch_pointers(aws, await install_on(aws, server.address)),
        }
        database = await stack.enter_async_context(open_database(settings["DATABASE_URL"]))
        clients = await stack.enter_async_context(open_aws(aws))
        client = await connect(server.address)
        unused: Any = None
        cloud = batch_resources(BatchSettings.read(settings), clients, database, client, unused)
        sweeping = BatchOrphans(
            cloud.queues, cloud.topic, cloud.functions, cloud.grants, cloud.runs, cloud.plan
        )
        installation = Installation(
            name, folder, settings, client, SqlBatchStore(database), sweeping
        )
        keeping = asyncio.create_task(installation.keep_working())
        try:
            yield installation
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installations(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[list[Installation]]:
    folder = tmp_path_factory.mktemp("batches")
    async with AsyncExitStack() as stack:
        aws = await stack.enter_async_context(ministack(folder))
        yield [
            await stack.enter_async_context(_installation(f"chaos{n}", folder / f"chaos{n}", aws))
            for n in range(INSTALLATIONS)
        ]


async def test_a_cancel_leaves_no_document_loading_although_the_worker_dies(
    installations: list[Installation],
) -> None:
    installation = installations[0]
    installation.kill_after(("DeleteFunction", 1))
    deaths = installation.deaths
    key = await installation.start_batch()
    await installation.until_loaded(key)
    # What a worker that was killed while it loaded a document leaves behind.
    event = DocumentProcessed(
        case_id=key.case_id, batch_id=1, document_id="D-1", blob_name="incoming/letter.txt"
    )
    source = BlobRef(name="incoming/letter.txt", size=1, sha256="a" * 64, etag="1")
    async with open_database(installation.settings["DATABASE_URL"]) as database:
        assert await SqlLoadStore(database).save_source(event, source) is None
    case = installation.client.get_workflow_handle(key.case_workflow_id)
    reason = "the case was closed"
    await case.signal("take", ImportCancelled(case_id=key.case_id, batch_id=1, reason=reason))
    result = await installation.result(key)
    assert installation.deaths == deaths + 1
    assert (result.status, result.documents) == (
        LoaderStatus.CANCELLED,
        DocumentCounts(cancelled=1),
    )
    [document] = await installation.store.documents(key)
    assert document.state is DocumentState.CANCELLED
    assert document.reason is not None and reason in document.reason
    assert await installation.found() == []


async def _life(installation: Installation) -> None:
    """A batch from its start to its end."""
    key = await installation.start_batch()
    await installation.until_loaded(key)
    assert Counter(found.resource for found in await installation.found()) == ONE_OF_EACH
    await installation.end(key)
    assert (await installation.result(key)).status is LoaderStatus.COMPLETE
    assert await installation.found() == []


async def test_a_worker_killed_after_any_call_leaves_all_or_nothing(
    installations: list[Installation],
) -> None:
    installations[0].kill_after(None)
    await _life(installations[0])
    left = [call for call in installations[0].calls if not call[0].startswith(READS)]
    assert len(left) >= 20
    survived: list[Call] = []

    async def work(installation: Installation) -> None:
        while left:
            call, deaths = left.pop(0), installation.deaths
            installation.kill_after(call)
            await _life(installation)
            if installation.deaths == deaths:
                survived.append(call)

    await asyncio.gather(*map(work, installations))
    assert survived == []


async def test_what_a_terminated_run_left_is_gone_after_the_sweeper(
    installations: list[Installation],
) -> None:
    installation = installations[-1]
    installation.kill_after(None)
    key = await installation.start_batch()
    await installation.until_loaded(key)
    await installation.client.get_workflow_handle(key.case_workflow_id).terminate()
    await installation.client.get_workflow_handle(key.workflow_id).terminate()
    assert Counter(found.resource for found in await installation.found()) == ONE_OF_EACH
    swept = await installation.client.execute_workflow(
        BatchSweeper.run, SweepInput(grace=0), id="sweep", task_queue=TASK_QUEUE
    )
    assert swept == Swept(batches=1)
    assert await installation.found() == []
    view = await installation.store.get(key)
    assert view is not None and view.status is LoaderStatus.TERMINATED
