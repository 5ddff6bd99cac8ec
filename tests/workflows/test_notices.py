"""Runs notify people who are needed, remind them, and say how they ended."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.worker import Replayer

from activities.shared.dependencies import Dependencies
from activities.shared.notifications import NotificationSending
from adapters.temporal import TemporalOutages
from tests.support.batches.runs import QUICK
from tests.support.batches.scripted import ScriptedBatch, denied, depth, ended
from tests.support.imports.scripted import ScriptedImport, import_message, permanent
from tests.support.scripted import ScriptedActivities, scripted, still_down
from tests.support.waiting import eventually
from workers.shared.plugin import docflow_plugin
from workers.shared.worker_factory import NotificationInterceptor
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.names import BatchKey, Purpose, ValidationOutcome
from workflows.batches.runs import BatchInput, BatchResult, Validation
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import ImportInput, Retry
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import Dependency, OutageInput, outage_id
from workflows.shared.errors import TRANSIENT
from workflows.shared.notifications import (
    NotificationInput,
    NotificationKind,
    NotificationReceipt,
    delivery_id,
)
from workflows.shared.run_notifications import NoticeDelivery
from workflows.shared.waiting import Outage

pytestmark = pytest.mark.asyncio(loop_scope="session")

PATIENCE = timedelta(days=10)
HOUR = 3_600
Handle = WorkflowHandle[Any, Any]


def all_wanted(workflow_id: str, kind: NotificationKind) -> bool:
    return True


@dataclass
class Runs:
    """Runs on a worker of the test's own, whose people want to know of each end."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def worker(
        self, script: ScriptedActivities, *, wanted: Any = all_wanted
    ) -> AsyncIterator[str]:
        queue = f"notices-{uuid.uuid4().hex}"
        workflows = [DocumentImport, BatchLifecycle, Outage, NoticeDelivery]
        interceptors = [NotificationInterceptor(wanted)] if wanted else []
        async with self.run_worker(
            queue, workflows, script.activities(), interceptors=interceptors
        ):
            yield queue

    async def begin(self, queue: str, *, notices: bool = True) -> Handle:
        message = import_message()
        return await self.server.client.start_workflow(
            DocumentImport.run,
            ImportInput(
                message=message, park_for_seconds=int(PATIENCE.total_seconds()), notices=notices
            ),
            id=message.workflow_id,
            task_queue=queue,
            search_attributes=attributes.at_start("imports", "equipment", "p1"),
        )

    @asynccontextmanager
    async def running(
        self, script: ScriptedActivities, *, wanted: Any = all_wanted
    ) -> AsyncIterator[Handle]:
        async with self.worker(script, wanted=wanted) as queue:
            yield await self.begin(queue)


@pytest.fixture
def runs(server: Any, run_worker: Any) -> Runs:
    return Runs(server, run_worker)


def _parked_import() -> ScriptedImport:
    return ScriptedImport(failures=[permanent("no such file")])


async def sent(script: ScriptedActivities, count: int) -> Sequence[NotificationInput]:
    """Wait until so many notices were sent."""

    async def are_sent() -> bool:
        return len(script.notices) >= count

    await eventually(are_sent)
    assert len(script.notices) == count
    return script.notices


async def events(handle: Handle) -> list[str]:
    history = await handle.fetch_history()
    return [event.WhichOneof("attributes") or "" for event in history.events]


async def test_a_parked_run_says_so_at_once_and_twice_before_it_fails(
    runs: Runs, server: Any
) -> None:
    script = _parked_import()
    async with runs.running(script) as handle:
        (parked,) = await sent(script, 1)
        for passes, count in ((4.9, 1), (0.2, 2), (3.8, 2), (0.2, 3)):
            await server.skip(handle, timedelta(days=passes))
            await sent(script, count)
        await server.skip(handle, timedelta(days=1))
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        notices = await sent(script, 4)
    assert [notice.kind for notice in notices] == ["parked", "reminder", "reminder", "failed"]
    assert len({notice.id for notice in notices}) == 4
    assert (parked.workflow_id, parked.run_id) == (handle.id, handle.first_execution_run_id)
    assert (parked.state, parked.reason) == ("parked", f"{script.handlers[0]}: no such file")
    assert parked.answers == ("retry", "skip", "fail")
    for notice in notices[:3]:
        assert notice.waiting_since is not None
        assert notice.gives_up_at == notice.waiting_since + PATIENCE
    assert notices[3].reason == "parked for 10 days, 0:00:00 without an answer: no such file"


async def test_reminders_come_as_the_policy_says(runs: Runs, server: Any) -> None:
    receipt = NotificationReceipt(remind_after=24 * HOUR, remind_every=48 * HOUR)
    script = _parked_import()
    script.results["send"] = receipt
    async with runs.running(script) as handle:
        await sent(script, 1)
        for passes, count in ((0.9, 1), (0.2, 2), (1.8, 2), (0.2, 3)):
            await server.skip(handle, timedelta(days=passes))
            await sent(script, count)
        await handle.execute_update(DocumentImport.retry, Retry())
        await handle.result()
        assert [notice.kind for notice in await sent(script, 4)][3] == "ended"


async def test_a_notice_that_cannot_be_sent_delays_no_answer(runs: Runs) -> None:
    down = ApplicationError("no mail server", type=TRANSIENT)
    script = _parked_import()
    script.fails["send"] = [down] * 100
    async with runs.running(script, wanted=None) as handle:
        await sent(script, 1)
        await handle.execute_update(DocumentImport.retry, Retry())
        result = await handle.result()
    assert result.state == "completed"


async def test_a_notice_that_is_refused_is_left_in_the_details_of_the_run(runs: Runs) -> None:
    script = _parked_import()
    script.fails["send"] = [permanent("the webhook answered 404")]
    async with runs.running(script) as handle:

        async def is_shown() -> bool:
            found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
            return "the notice `parked` was not sent: the webhook answered 404" in (
                found.current_details
            )

        await eventually(is_shown)
        await handle.execute_update(DocumentImport.skip, Answer(by="ann"))
        assert (await handle.result()).state == "skipped"


async def test_a_run_whose_first_step_failed_replays_while_it_waits(runs: Runs) -> None:
    # Each query replays it: the step's marker stands in an earlier workflow task than the notice.
    script = ScriptedImport()
    script.fails["prepare"] = [permanent("no such file")]
    async with runs.running(script) as handle:
        await sent(script, 1)
        assert (await handle.query(DocumentImport.status)).state == "parked"
        await handle.execute_update(DocumentImport.skip, Answer(by="ann"))
        await handle.result()
        assert (await handle.query(DocumentImport.status)).state == "skipped"
        assert [notice.kind for notice in await sent(script, 2)] == ["parked", "ended"]


async def test_an_order_of_an_earlier_release_sends_nothing(runs: Runs, server: Any) -> None:
    script = _parked_import()
    async with runs.worker(script) as queue:
        handle = await runs.begin(queue, notices=False)
        await server.skip(handle, PATIENCE + timedelta(hours=1))
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert script.notices == []


async def test_the_end_of_a_run_is_notified_by_a_run_of_its_own(runs: Runs, server: Any) -> None:
    down = ApplicationError("no mail server", type=TRANSIENT)
    script = ScriptedImport()
    script.fails["send"] = [down]
    async with runs.running(script) as handle:
        await handle.result()
        # The run has ended; its notice is still being repeated.
        notice, again = await sent(script, 2)
        assert notice == again
        await server.client.get_workflow_handle(delivery_id(notice.id)).result()
    assert (notice.kind, notice.state) == ("ended", "completed")
    assert "created" in notice.reason


async def test_a_run_that_needs_no_person_has_not_one_event_more(runs: Runs) -> None:
    def not_ended(workflow_id: str, kind: NotificationKind) -> bool:
        return kind is not NotificationKind.ENDED

    found: list[list[str]] = []
    for wanted in (None, not_ended):
        async with runs.running(ScriptedImport(), wanted=wanted) as handle:
            await handle.result()
            found.append(await events(handle))
    assert found[0] == found[1]


async def test_settings_that_change_do_not_change_how_a_run_replays(runs: Runs) -> None:
    async with runs.running(ScriptedImport()) as handle:
        await handle.result()
    history = await handle.fetch_history()
    for interceptors in ([], [NotificationInterceptor(lambda *_: False)]):
        replayer = Replayer(
            workflows=[DocumentImport],
            plugins=[docflow_plugin()],
            interceptors=interceptors,
        )
        result = await replayer.replay_workflow(history)
        assert result.replay_failure is None


async def test_a_run_that_is_given_up_notifies_that_it_failed(runs: Runs) -> None:
    script = _parked_import()
    async with runs.running(script) as handle:
        await sent(script, 1)
        await handle.execute_update(DocumentImport.fail, Answer(reason="withdrawn", by="ann"))
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        reported = (await sent(script, 2))[1]
    assert (reported.kind, reported.state, reported.reason) == (
        "failed",
        "failed",
        "withdrawn (ann)",
    )


async def test_an_outage_is_notified_after_two_minutes_and_at_its_end(
    runs: Runs, server: Any
) -> None:
    # The server asks again whenever time passes for the run.
    down = [still_down(timedelta(hours=1))] * 3
    script = scripted(Dependencies, NotificationSending, fails={"wait": down})
    order = OutageInput(
        dependency=Dependency.CLOUD,
        since=datetime.now(UTC),
        problem="connection refused",
        notices=True,
    )
    async with runs.worker(script) as queue:
        await TemporalOutages(server.client).begin(order, queue)
        handle = server.client.get_workflow_handle(outage_id(order.dependency))
        await server.skip(handle, timedelta(minutes=1))
        assert script.notices == []
        await server.skip(handle, timedelta(seconds=70))
        (begun,) = await sent(script, 1)

        async def is_over() -> bool:
            await server.skip(handle, timedelta(hours=1))
            return (await handle.describe()).close_time is not None

        await eventually(is_over)
        _, over = await sent(script, 2)
    assert (begun.kind, begun.state) == ("outage", "open")
    assert "the cloud cannot be used since" in begun.reason
    assert "connection refused" in begun.reason
    assert (over.kind, over.state) == ("outage", "over")
    assert over.reason.startswith("the cloud answers again, after ")
    assert over.id != begun.id


async def _batch(runs: Runs, queue: str, key: BatchKey, purpose: Purpose) -> BatchResult:
    return await runs.server.client.execute_workflow(
        BatchLifecycle.run,
        BatchInput(
            key=key,
            purpose=purpose,
            timings=QUICK.model_copy(update={"max_redrives": 0}),
            notices=True,
        ),
        id=key.workflow_id,
        task_queue=queue,
        search_attributes=attributes.at_start("batches", purpose, str(key.case_id)),
    )


async def test_a_batch_that_leaves_dead_letters_behind_needs_a_person(runs: Runs) -> None:
    key = BatchKey(case_id=41, batch_id=1)
    go = Validation(outcome=ValidationOutcome.CONTINUE, job_finished=True)
    script = ScriptedBatch(depths=[depth(dead=1)], keeps=True)
    script.results["validate"] = go
    handle = runs.server.client.get_workflow_handle(key.workflow_id)

    async def asked_for() -> bool:
        return "BATCH_END_START SUCCESS" in script.events

    async with runs.worker(script) as queue, asyncio.TaskGroup() as work:
        work.create_task(_batch(runs, queue, key, Purpose.LOAD))
        await eventually(asked_for)
        await handle.signal(BatchLifecycle.take, ended(key))
        (reported,) = await sent(script, 1)
    assert (reported.kind, reported.state) == ("needs-you", "complete")
    assert "1 dead letters are kept" in reported.reason
    assert [step.command for step in reported.steps] == ["docflow batch redrive 41/1"]


async def test_a_sweep_that_ends_as_the_one_before_is_not_notified_again(runs: Runs) -> None:
    key = BatchKey(case_id=42, batch_id=1)
    script = ScriptedBatch()
    script.fails["delete_queue"] = [denied() for _ in range(2)]
    async with runs.worker(script) as queue:
        for _ in range(2):
            result = await _batch(runs, queue, key, Purpose.SWEEP)
            assert result.left
            (reported,) = await sent(script, 1)
            delivery = runs.server.client.get_workflow_handle(delivery_id(reported.id))
            await delivery.result()
        await _batch(runs, queue, key, Purpose.SWEEP)
        _, ended = await sent(script, 2)
    assert (reported.kind, ended.kind) == ("needs-you", "ended")
    assert "left for the sweeper" in reported.reason
