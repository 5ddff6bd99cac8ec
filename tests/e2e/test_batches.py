"""Batches on the whole stack: what kills, cancels and poisons them on the way."""

import json
import random
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
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
from stack.children import child
from stack.demo.batches import ExternalSystems, failed_documents, left_behind
from stack.embedded import EmbeddedStack, embedded_stack
from stack.parts import DOCFLOW
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

    async def start(self, key: BatchKey, *, max_redrives: int = 1) -> None:
        """Start a batch and wait until documents may be sent."""
        timings = BatchSettings.read(self.stack.settings).timings
        own = timings.model_copy(update={"max_redrives": max_redrives})
        await self.outside.send_event(
            JobStarted(case_id=key.case_id, batch_id=key.batch_id, timings=own)
        )
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


@asynccontextmanager
async def running_site(folder: Path, settings: Mapping[str, str]) -> AsyncIterator[StackUser]:
    async with AsyncExitStack() as opened:
        said: list[str] = []
        stack = await opened.enter_async_context(
            embedded_stack(folder / "stack", announce=said.append, settings={**QUICK, **settings})
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(open_folder: Path) -> AsyncIterator[StackUser]:
    async with running_site(open_folder / "batches", {}) as running:
        yield running


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
    await site.docflow("start", "2", "1")
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
        await site.docflow("cancel", "2", "1")

        async def cancelled() -> bool:
            now = await site.status(key)
            return now is not None and now.cancelled is not None

        await eventually(cancelled, seconds=PATIENCE, pause=0.1)
    finally:
        cloud.send_signal(signal.SIGCONT)
    result = await site.result(key)
    assert (result.status, result.left) == (LoaderStatus.CANCELLED, ())
    assert await site.left(key) == []


async def test_what_could_not_be_loaded_is_tried_again_by_a_person(
    site: StackUser, tmp_path: Path
) -> None:
    key = BatchKey(case_id=3, batch_id=1)
    await site.start(key, max_redrives=0)
    poison = [document for document in site.samples if document.ends is DocumentState.FAILED]
    await site.send(key, [*site.samples[:3], *poison])
    result = await site.result(key)
    assert (result.status, result.dead_letters) == (LoaderStatus.COMPLETE, len(poison))
    letters = await site.docflow("dead-letters", "3", "1")
    assert {letter["where"] for letter in letters} == {"dead-letter queue"}
    assert len([letter for letter in letters if "extract: " in letter["reason"]]) == len(poison)
    kept = await site.docflow("resources", "3", "1")
    assert (kept["state"], [one["resource"] for one in kept["resources"]]) == (
        "kept",
        ["dead-letter queue"],
    )

    await site.docflow("redrive", "3", "1")

    async def tried_again() -> bool:
        return len(await failed_documents(site.database, key)) == len(poison)

    await eventually(tried_again, seconds=PATIENCE, pause=0.1)
    again = await site.result(key)
    assert (again.status, again.dead_letters) == (LoaderStatus.COMPLETE, 0)
    assert (await site.docflow("resources", "3", "1"))["state"] == "gone"
    assert await site.left(key) == []

    # After the final pass too: what was recorded as failed is loaded once its files are whole.
    shown = await site.docflow("documents", "3", "1", "--state", "failed")
    recorded = await site.docflow("dead-letters", "3", "1")
    assert [one["reason"] for one in recorded] == [one["reason"] for one in shown]
    assert len(shown) == len(poison)
    for number, document in enumerate(poison):
        whole = tmp_path / f"whole-{number}.txt"
        whole.write_text(f"The whole text, {number}.")
        name = f"batches/incoming/3/{document.path.name}"
        await site.outside.blobs.upload(whole, name)
    await site.docflow("redrive", "3", "1", "--with-failed")

    async def none_failed() -> bool:
        return not await failed_documents(site.database, key)

    await eventually(none_failed, seconds=PATIENCE, pause=0.1)
    at_last = await site.result(key)
    assert (at_last.outcome, at_last.documents.failed) == ("SUCCESS", 0)
    assert await site.docflow("dead-letters", "3", "1") == []
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


async def test_a_batch_without_a_function_is_loaded_by_the_bridge(open_folder: Path) -> None:
    key = BatchKey(case_id=4, batch_id=1)
    folder = open_folder / "without"
    async with running_site(folder, {"DOCFLOW_BATCH_WITH_FUNCTION": "false"}) as site:
        log = folder / "loader.log"
        command = [*DOCFLOW, "bridge", "batch-loader"]
        async with child(command, log, site.stack.environment):
            await site.start(key)
            await site.send(key, site.samples[:5])
            result = await site.result(key)
        assert (result.status, result.documents.loaded) == (LoaderStatus.COMPLETE, 5)
        assert await site.left(key) == []
