"""The batches of a case, one after the other, with a cloud in memory and real tables."""

import gc
import json
import random
import uuid
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from activities.batches.validation import AccountLimits
from adapters.ports.errors import Unavailable
from tests.support.batches.installation import (
    QUICK,
    BatchInstallation,
    Installations,
    all_complete,
    keys_of,
    limit_account,
    new_case,
    parked,
    send_shuffled,
)
from tests.support.batches.scripted import TODAY, again, cancelled, ended, finished, started
from tests.support.memory.rejected import MemoryRejectedMessages
from tests.support.waiting import eventually
from workers.batches.case_events import CaseEventIntake
from workers.batches.messages import read_case_event
from workers.shared.services.bodies import KEY_REUSED, DeadLetter, Settle, Verdict
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.case_queue import CaseQueue
from workflows.batches.events import PASSED_ON_BYTES, JobStarted
from workflows.batches.names import BatchKey, LoaderStatus, Phase, Timings
from workflows.batches.runs import EMPTY, CaseStatus

FEW = 4
"""Batches that fit into an account."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    # A case and its batches are several runs at once, which no worker without a cache can serve.
    # Recorded histories replay them.
    pytest.mark.cached(alone=True),
]

DONE = ["LOADER_STARTED", "BATCH_END_START", "LOADER_FINISHED"]


async def test_batches_of_a_case_run_one_after_the_other_whatever_the_order(
    installations: Installations,
) -> None:
    keys = keys_of(new_case(), 3)
    async with installations() as installation:
        await installation.store.expect(keys)
        for key in reversed(keys):
            await installation.send(finished(key))
            await installation.send(started(key))
            await installation.send(started(key))
        for key in keys:
            await installation.reaches(key, LoaderStatus.COMPLETE)
            await installation.ended(key)
        assert installation.order == keys
        assert all(installation.announced(key) == DONE for key in keys)
        assert installation.cloud.is_empty
        assert installation.cloud.calls["clone"] == 3


async def test_a_batch_that_fails_is_noticed_by_its_case(
    installations: Installations, caplog: pytest.LogCaptureFixture
) -> None:
    [key] = keys_of(new_case(), 1)
    async with installations() as installation:
        case = await installation.send(started(key))
        await installation.reaches(key, LoaderStatus.PROCESSING)
        await installation.client.get_workflow_handle(key.workflow_id).terminate()

        async def is_noticed() -> bool:
            return (await case.query(CaseQueue.status)).finished == 1

        await eventually(is_noticed)
        gc.collect()
        assert "never retrieved" not in caplog.text
        await case.terminate()


async def test_a_batch_out_of_order_waits_for_those_before_it(
    server: Any, installations: Installations
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        await installation.store.expect([first, second])
        case = await installation.send(started(second))
        status = await case.query(CaseQueue.status)
        assert (status.running, status.waiting) == (None, (1, 2))
        assert installation.order == []
        await installation.send(finished(second))
        await installation.send(started(first))
        await installation.send(finished(first))
        await installation.reaches(second, LoaderStatus.COMPLETE)
        assert installation.order == [first, second]


async def test_a_batch_that_is_not_started_is_passed_over_after_hours_and_can_start_later(
    server: Any, installations: Installations
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        await installation.store.expect([first, second])
        case = await installation.send(started(second))
        await installation.send(finished(second))
        await server.skip(case, timedelta(hours=5, minutes=50))
        assert installation.order == []
        await server.skip(case, timedelta(minutes=20))
        await installation.reaches(second, LoaderStatus.COMPLETE)
        view = await installation.store.get(first)
        assert view is not None and view.status is LoaderStatus.WAITING
        assert view.reason is not None and view.reason.startswith("not started within 21600 s")
        await installation.send(started(first))
        await installation.send(finished(first))
        await installation.reaches(first, LoaderStatus.COMPLETE)


async def test_a_batch_is_not_loaded_twice(installations: Installations) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        for event in (started(key), finished(key)):
            await installation.send(event)
        await installation.reaches(key, LoaderStatus.COMPLETE)
        await installation.ended(key)
        for event in (started(key), finished(key), ended(key)):
            case = await installation.send(event)
        status: CaseStatus = await case.query(CaseQueue.status)
        assert (status.running, status.waiting) == (None, ())
        assert installation.order == [key]


async def test_a_batch_that_was_cancelled_before_it_began_is_never_built(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        await installation.send(cancelled(key=key))
        await installation.send(started(key))
        await installation.send(finished(key))
        await eventually(lambda: _seen(installation, key, 3))
        assert await installation.status(key) is LoaderStatus.CANCELLED
        assert installation.cloud.calls["ensure_queue"] == 0


async def _seen(installation: BatchInstallation, key: BatchKey, events: int) -> bool:
    case = installation.client.get_workflow_handle(key.case_workflow_id)
    status = await case.query(CaseQueue.status)
    return status.events == events and status.running is None


async def test_a_cancel_reaches_the_batch_that_runs_and_the_next_one_follows(
    installations: Installations,
) -> None:
    first, second = keys_of(new_case(), 2)
    async with installations() as installation:
        await installation.send(started(first))
        await installation.send(started(second))
        await installation.send(finished(second))
        await installation.loads(first)
        await installation.send(cancelled(key=first))
        await installation.reaches(first, LoaderStatus.CANCELLED)
        await installation.reaches(second, LoaderStatus.COMPLETE)
        await installation.ended(second)
        assert installation.cloud.is_empty


async def test_announcements_have_the_fields_of_the_events_that_led_to_them(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations(ends=False) as installation:
        events = ("JOB_STARTED", "JOB_FINISHED", "BATCH_END_FINISHED")
        for number, (event, said) in enumerate(zip(events, DONE, strict=True), start=1):
            body = {"caseId": key.case_id, "batchId": key.batch_id, "eventType": event}
            more = {"user": event.lower(), f"field{number}": number, "status": "READY"}
            await installation.send(read_case_event(json.dumps({**body, **more}).encode()))
            await eventually(lambda said=said: _is_said(installation, key, said))
        bodies = [publication.body() for publication in installation.cloud.published]
    own = {"eventType", "caseId", "batchId", "status", "messageId", "documents"}
    assert [{name: body[name] for name in body.keys() - own} for body in bodies] == [
        {"user": "job_started", "field1": 1},
        {"user": "job_finished", "field1": 1, "field2": 2},
        {"user": "batch_end_finished", "field1": 1, "field2": 2, "field3": 3},
    ]
    assert [body["status"] for body in bodies] == ["SUCCESS", "SUCCESS", EMPTY]


async def _is_said(installation: BatchInstallation, key: BatchKey, event: str) -> bool:
    return event in installation.announced(key)


async def test_an_end_before_the_documents_is_kept_and_no_document_is_no_success(
    installations: Installations,
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations(ends=False) as installation:
        await installation.send(started(key))
        await installation.loads(key)
        case = await installation.send(ended(key))
        await eventually(lambda: _is_recorded(case))
        await installation.send(finished(key))
        await installation.ended(key)
        view = await installation.store.get(key)
        assert view is not None and view.reason is not None
        assert view.reason.startswith("BATCH_END_FINISHED came before BATCH_END_START")
        assert installation.announced(key) == DONE
        assert installation.cloud.published[-1].status == EMPTY


async def _is_recorded(case: Any) -> bool:
    return (await case.query(CaseQueue.status)).unrecorded == ()


async def test_kept_dead_letters_are_redriven_on_request(installations: Installations) -> None:
    (key,) = keys_of(new_case(), 1)
    times = Timings(settle=0, poll=1, hold=0, max_redrives=0)
    async with installations(timings=times) as installation:
        await installation.send(started(key))
        await installation.loads(key)
        (dead,) = (name for name in installation.cloud.queues_by_name if name.endswith("_dlq"))
        installation.cloud.queues_by_name[dead].messages.append("poison")
        await installation.send(finished(key))
        await installation.reaches(key, LoaderStatus.COMPLETE)
        await installation.ended(key)
        assert list(installation.cloud.queues_by_name) == [dead]
        await installation.send(again(key))
        await eventually(lambda: _redriven(installation))
        assert installation.cloud.queues_by_name[dead].messages == []


async def _redriven(installation: BatchInstallation) -> bool:
    return installation.cloud.calls["redrive"] == 1


async def test_an_event_of_another_case_is_refused(installations: Installations) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        case = await installation.send(started(key))
        other = JobStarted(case_id=key.case_id % 1_000_000_000 + 1, batch_id=1)
        with pytest.raises(WorkflowUpdateFailedError):
            await case.execute_update(CaseQueue.take, other)


async def test_a_batch_is_not_started_by_two_different_messages(
    installations: Installations,
) -> None:
    first, second = keys_of(new_case(), 2)
    rejected = MemoryRejectedMessages()
    async with installations() as installation:
        intake = CaseEventIntake(installation.client, rejected, queue="case-events")

        async def start(key: BatchKey, **more: Any) -> Verdict:
            event = {"eventType": "JOB_STARTED", "caseId": key.case_id, "batchId": key.batch_id}
            return await intake.accept(json.dumps({**event, **more}).encode(), 0, uuid.uuid4().hex)

        settled = Settle(first.case_workflow_id)
        quick = {"settle": 0, "poll": 1, "hold": 0}
        case = await installation.send(started(first, timings=QUICK))
        await installation.loads(first)
        for key in (first, second):
            assert await start(key, timings=quick) == settled
            assert await start(key, timings=quick) == settled
            refused = await start(key, timings={**quick, "maxRedrives": 7})
            assert isinstance(refused, DeadLetter)
            assert (refused.reason, "other timings" in refused.description) == (KEY_REUSED, True)
        assert [row.reason for row in await rejected.list()] == [KEY_REUSED] * 2
        await installation.send(finished(first))
        await installation.send(finished(second))
        await installation.reaches(second, LoaderStatus.COMPLETE)

        async def is_idle() -> bool:
            return (await case.query(CaseQueue.status)).waiting == ()

        await eventually(is_idle)
        assert await start(second, timings={"maxRedrives": 7}) == settled


async def test_an_unavailable_database_delays_events_and_loses_none(
    server: Any, installations: Installations, monkeypatch: pytest.MonkeyPatch
) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        note, away = installation.store.note, True

        async def failing(case_id: int, events: Any) -> Any:
            if away:
                raise Unavailable("the database is unavailable")
            return await note(case_id, events)

        monkeypatch.setattr(installation.store, "note", failing)
        case = await installation.send(started(key))
        await installation.send(finished(key))
        away = False

        async def complete() -> bool:
            await server.skip(case, timedelta(seconds=30))
            return await installation.status(key) is LoaderStatus.COMPLETE

        await eventually(complete, seconds=60, pause=0.3)


async def test_fields_that_do_not_fit_into_one_record_wait_in_their_queue(
    server: Any, installations: Installations, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = keys_of(new_case(), 12)
    fields = json.dumps({"note": "x" * (PASSED_ON_BYTES - 20)})
    async with installations() as installation:
        note, fails = installation.store.note, True
        noted = list[Any]()

        async def failing(case_id: int, events: Any) -> Any:
            if fails:
                raise Unavailable("the database is unavailable")
            noted.extend(events)
            return await note(case_id, events)

        monkeypatch.setattr(installation.store, "note", failing)
        accepted = [finished(key, passed_on=fields) for key in keys[:11]]
        for event in accepted:
            case = await installation.send(event)
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await installation.send(finished(keys[11]))
        cause = refused.value.cause
        assert isinstance(cause, ApplicationError) and cause.type == "Busy"
        fails = False

        async def recorded() -> bool:
            await server.skip(case, timedelta(seconds=30))
            return len(noted) == len(accepted)

        await eventually(recorded, seconds=60, pause=0.3)
        assert noted == accepted
        await installation.send(finished(keys[11]))


@pytest.mark.chaos(alone=True)
async def test_many_cases_in_any_order_load_every_batch_once(installations: Installations) -> None:
    # Nothing polls: a batch that waits for its end looks at its queue once a day, and a case, which
    # its batch signals its end, looks at that once an hour.
    calm = Timings(settle=0, poll=24 * 3600, hold=0)
    room = AccountLimits(FEW, FEW * TODAY.concurrency, again=timedelta(seconds=1))
    async with installations(timings=calm, limits=room, watch=3600) as installation:
        # The account has no more than the leases say: nothing but them keeps it from refusing.
        limit_account(installation.cloud, room, {"clone": 3, "subscribe": 3})
        keys = await send_shuffled(installation, random.Random(7), cases=12, batches=3)

        async def all_done() -> bool:
            assert not await parked(installation.client, installation.task_queue)
            return await all_complete(installation, keys)

        await eventually(all_done, seconds=900, pause=0.2)
        for case in {key.case_id for key in keys}:
            mine = [key for key in installation.order if key.case_id == case]
            assert mine == keys_of(case, 3)

        async def all_answered() -> bool:
            return all(installation.announced(key) == DONE for key in keys)

        # A batch is complete before its resources are removed.
        await eventually(all_answered)
        await eventually(lambda: _is_empty(installation))
        # The function is pending when it is looked at for the first time.
        assert installation.cloud.calls["clone"] == 2 * len(keys)
        assert installation.cloud.calls["subscribe"] == len(keys), "no batch was refused"


async def _is_empty(installation: BatchInstallation) -> bool:
    return installation.cloud.is_empty


async def test_phases_are_searchable(installations: Installations) -> None:
    (key,) = keys_of(new_case(), 1)
    async with installations() as installation:
        await installation.send(started(key))
        await installation.loads(key)
        run = installation.client.get_workflow_handle(key.workflow_id)
        assert (await run.query(BatchLifecycle.status)).phase is Phase.LOADING
