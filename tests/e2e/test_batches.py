"""Batches on the whole stack: what kills, cancels and poisons them on the way."""

import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowExecution

from activities.batches.store import SqlBatchStore
from adapters.aws.session import AwsClients, open_aws
from adapters.database.engine import Database
from stack.demo.batches import ExternalSystems, failed_documents, left_behind
from stack.embedded import EmbeddedStack, embedded_stack
from stack.sample_documents import FOUND_INSIDE, SampleDocument, sample_documents
from tests.support.batches.installation import shuffled
from tests.support.cli import run_docflow_in_thread
from tests.support.waiting import eventually
from workers.batches.settings import BatchSettings
from workers.shared.cli.context import CliContext
from workers.shared.connect import connect
from workers.shared.resources import open_resources
from workers.shared.services.errors import TemporalUnavailable
from workers.shared.services.runs import TemporalRuns
from workflows.batches.events import JobFinished, JobStarted
from workflows.batches.loads import DocumentState
from workflows.batches.names import BatchKey, LoaderStatus, Phase, Timings, names_of
from workflows.batches.runs import EMPTY, BatchResult, BatchStatus, DocumentCounts

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE = 90
IN_LINE = (1, 2, 3)
NO_PAUSES = Timings(settle=0, poll=1, hold=0, max_redrives=0)
QUICK = {
    "DOCFLOW_BATCH_SETTLE_SECONDS": "1",
    "DOCFLOW_BATCH_POLL_SECONDS": "1",
    "DOCFLOW_BATCH_HOLD_SECONDS": "2",
    "DOCFLOW_BATCH_MAX_REDRIVES": "1",
}


@dataclass(frozen=True)
class StackUser:
    """A stack, and who works with it."""

    stack: EmbeddedStack
    client: Client
    clients: AwsClients
    database: Database
    outside: ExternalSystems
    samples: Sequence[SampleDocument]
    said: Sequence[str]
    """Messages about workers that have died and were started again."""

    async def docflow(self, *arguments: str) -> Any:
        """What `docflow batch ... -o json` prints."""
        context = CliContext(self.stack.settings)
        done = await run_docflow_in_thread("batch", *arguments, "-o", "json", context=context)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    async def start(self, key: BatchKey) -> None:
        """Start a batch and wait until documents may be sent."""
        await self.outside.send_event(JobStarted(case_id=key.case_id, batch_id=key.batch_id))
        await self.reach(key, Phase.LOADING)

    async def send(self, key: BatchKey, documents: Sequence[SampleDocument]) -> None:
        """Send documents and say that these were all."""
        for document in documents:
            await self.outside.send(document, key)
        await self.outside.send_event(JobFinished(case_id=key.case_id, batch_id=key.batch_id))

    async def status(self, key: BatchKey) -> BatchStatus | None:
        """Where the run of a batch stands; None: not known."""
        with suppress(TemporalUnavailable):
            return await TemporalRuns(self.client, {}).query(key.workflow_id, "status", BatchStatus)
        return None

    async def reach(self, key: BatchKey, phase: Phase) -> None:
        """Wait until the run of a batch is there."""

        async def reached() -> bool:
            status = await self.status(key)
            assert status is None or status.phase is not Phase.PARKED, status
            return status is not None and status.phase is phase

        await eventually(reached, seconds=PATIENCE, pause=0.25)

    async def result(self, key: BatchKey) -> BatchResult:
        """How a batch has ended."""
        await self.reach(key, Phase.DONE)
        handle = self.client.get_workflow_handle(key.workflow_id, result_type=BatchResult)
        return await handle.result()

    async def left(self, *keys: BatchKey) -> list[str]:
        """What exists of batches in the cloud."""
        settings = BatchSettings.read(self.stack.settings)
        stems = {names_of(settings.plan.prefix, key).queue for key in keys}
        found = await left_behind(settings, self.clients, self.database, self.client)
        return [each for each in found if any(stem in each for stem in stems)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(open_folder: Path) -> AsyncIterator[StackUser]:
    folder = open_folder / "batches"
    async with AsyncExitStack() as opened:
        said: list[str] = []
        stack = await opened.enter_async_context(
            embedded_stack(folder / "stack", announce=said.append, settings=QUICK)
        )
        clients = await opened.enter_async_context(open_aws(stack.aws))
        resources = await opened.enter_async_context(open_resources(stack.environment))
        outside = ExternalSystems(clients, stack.installed, resources.blobs)
        await opened.enter_async_context(outside.answering())
        address = stack.settings["TEMPORAL_ADDRESS"]
        opened.enter_context(pytest.MonkeyPatch.context()).setenv("TEMPORAL_ADDRESS", address)
        client = await connect(address)
        samples = sample_documents(folder / "documents")
        yield StackUser(stack, client, clients, resources.database, outside, samples, said)


async def test_the_block_of_the_readme_ends_as_written(site: StackUser) -> None:
    section = Path("README.md").read_text().partition("## A batch of documents")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    lines = [line.removeprefix("$ docflow ") for line in block.replace(" && ", "\n$ ").splitlines()]
    for line in lines:
        shown = await run_docflow_in_thread(*line.split(), context=CliContext(site.stack.settings))
        assert shown.exit_code == 0, (line, shown.output)
    result = await site.result(BatchKey(case_id=7, batch_id=1))
    assert (result.status, result.outcome) == (LoaderStatus.COMPLETE, EMPTY)
    assert result.reason is not None and "was kept until then" in result.reason


def _process(runs: Callable[[Sequence[str]], bool]) -> psutil.Process:
    """The newest of these: pages of other files may have a worker of their own."""
    found = (each for each in psutil.Process().children() if runs(each.cmdline()))
    return max(found, key=lambda each: each.create_time())


async def test_a_worker_that_is_killed_halfway_loads_every_document_once(site: StackUser) -> None:
    key = BatchKey(case_id=1, batch_id=1)
    await site.start(key)
    await site.send(key, site.samples)

    async def halfway() -> bool:
        (seen,) = await site.docflow("list", "--case", "1")
        return seen["documents"]["loaded"] >= len(site.samples) // 4

    await eventually(halfway, seconds=PATIENCE, pause=0.05)
    _process(lambda command: "worker" in command).kill()
    result = await site.result(key)
    assert site.said == [
        "the worker ended with -9; starting it again",
        "the worker is up again",
    ]
    ends = Counter(document.ends for document in site.samples)
    ends.update(FOUND_INSIDE)
    assert result.status is LoaderStatus.COMPLETE
    assert result.documents == DocumentCounts(
        **{state.value: number for state, number in ends.items()},
        found=sum(FOUND_INSIDE.values()),
    )
    assert [name for name, reason in await failed_documents(site.database, key) if reason] == [
        document.path.name for document in site.samples if document.ends is DocumentState.FAILED
    ]
    assert await site.left(key) == []


async def test_a_batch_that_is_cancelled_while_it_is_built_leaves_nothing(site: StackUser) -> None:
    key = BatchKey(case_id=2, batch_id=1)
    cloud = _process(lambda command: "ministack" in command)
    await site.docflow("start", "2/1")
    names = names_of(BatchSettings.read(site.stack.settings).plan.prefix, key)

    async def begun() -> bool:
        found = await site.clients.sqs.list_queues(QueueNamePrefix=names.queue)
        return bool(found.get("QueueUrls"))

    await eventually(begun, seconds=PATIENCE, pause=0.001)
    # Nothing more can be built from here on, until the cloud turns again.
    cloud.send_signal(signal.SIGSTOP)
    try:
        status = await site.status(key)
        assert status is not None and status.phase is Phase.PROVISIONING
        await site.docflow("cancel", "2/1")

        async def cancelled() -> bool:
            now = await site.status(key)
            return now is not None and now.cancelled is not None

        await eventually(cancelled, seconds=PATIENCE, pause=0.1)
    finally:
        cloud.send_signal(signal.SIGCONT)
    result = await site.result(key)
    assert (result.status, result.left) == (LoaderStatus.CANCELLED, ())
    assert await site.left(key) == []


@pytest.mark.chaos(alone=True)
async def test_batches_of_many_cases_are_built_once_and_in_their_order(site: StackUser) -> None:
    store = SqlBatchStore(site.database)
    cases = range(101, 109)
    keys = [BatchKey(case_id=case, batch_id=batch) for case in cases for batch in IN_LINE]
    await store.expect(keys)
    for event in shuffled(keys, random.Random(11), NO_PAUSES):
        await site.outside.send_event(event)

    async def all_complete() -> bool:
        views = [view for view in await store.list(limit=1_000) if view.key in keys]
        return [view.status for view in views] == [LoaderStatus.COMPLETE] * len(keys)

    await eventually(all_complete, seconds=10 * PATIENCE, pause=0.5)
    case_of = {key.workflow_id: key.case_id for key in keys}
    runs = defaultdict[int, list[WorkflowExecution]](list)
    query = 'WorkflowType = "BatchLifecycle" AND ExecutionStatus = "Completed"'

    async def all_shown() -> bool:
        runs.clear()
        async for run in site.client.list_workflows(query):
            if run.id in case_of:
                runs[case_of[run.id]].append(run)
        return sum(map(len, runs.values())) >= len(keys)

    await eventually(all_shown, pause=0.5)
    for case, found in runs.items():
        found.sort(key=lambda run: run.start_time)
        assert [run.id for run in found] == [f"batch/{case}/{batch}" for batch in IN_LINE]
        for before, after in pairwise(found):
            assert before.close_time is not None and before.close_time <= after.start_time
    assert await site.left(*keys) == []
