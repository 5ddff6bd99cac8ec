"""The run of an event, from its message to the job on its queue."""

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError

from tests.support.transfers.events import a_job_order, an_event, an_event_order
from tests.support.transfers.runs import TransferRuns
from tests.support.transfers.scripted import ScriptedTransfer
from workflows.shared.contracts import Answer, Retry
from workflows.shared.errors import KEY_REUSED, PERMANENT
from workflows.transfers.events import TransferStatus
from workflows.transfers.routes import RouteRemark
from workflows.transfers.runs import (
    EventRoute,
    Reception,
    TransferAssign,
    TransferView,
    file_job_id,
    transfer_workflow_id,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

NO_ROUTE = EventRoute(rules=2, others=(RouteRemark(queue="jobs", rule="1", reason="source is a"),))


async def test_an_event_becomes_a_job_on_its_queue(transfers: TransferRuns) -> None:
    script = ScriptedTransfer()
    order = an_event_order(an_event(id="to-its-queue"))
    async with transfers.workers(script):
        view = await (await transfers.start_event(order)).result()
        job = transfers.handle(file_job_id(order.transfer_id))
        done = await job.result()
        described = await job.describe()
    assert (view.status, view.queue) == (TransferStatus.ASSIGNED, "jobs")
    assert done.status is TransferStatus.SUCCEEDED
    assert described.task_queue == transfers.task_queue_of("jobs")
    assert script.calls_about(order.transfer_id) == [
        *("receive", "load_plan", "read_file", "scan", "write_file"),
        *("receipt", "close"),
    ]


async def test_what_is_no_event_ends_as_it_says(transfers: TransferRuns) -> None:
    garbage = Reception(status=TransferStatus.GARBAGE, reason="the event lacks subject")
    script = ScriptedTransfer(results={"receive": garbage})
    async with transfers.workers(script):
        view = await (await transfers.start_event(an_event_order("{}"))).result()
    assert (view.status, view.reason) == (TransferStatus.GARBAGE, "the event lacks subject")
    assert script.calls == ["receive"]


async def test_another_event_of_the_same_id_fails_without_a_row(transfers: TransferRuns) -> None:
    refused = Reception(status=TransferStatus.SUCCEEDED, refused="another came", digest="d")
    script = ScriptedTransfer(results={"receive": refused})
    async with transfers.workers(script):
        run = await transfers.start_event(an_event_order(an_event(id="reused")))
        with pytest.raises(WorkflowFailureError):
            await run.result()
        memo = await (await run.describe()).memo()
    assert script.calls == ["receive"]
    assert memo["digest"] == "d"


async def test_an_event_without_a_route_waits_until_a_person_assigns_it(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer([NO_ROUTE, EventRoute(queue="jobs", priority=3)])
    order = an_event_order(an_event(id="assigned"))
    async with transfers.workers(script):
        run = await transfers.start_event(order)
        await transfers.parked(run)
        view = await run.query("status", result_type=TransferView)
        await run.execute_update("assign", TransferAssign(queue="jobs", by="ann"))
        await run.result()
        await transfers.handle(file_job_id(order.transfer_id)).result()
    assert view.status is TransferStatus.NO_ASSIGNED
    assert view.reason == "none of 2 rules matches; jobs/1: source is a"
    [asked] = script.received["route"]
    assert (asked.queue, asked.by) == ("jobs", "ann")


async def test_an_event_is_routed_again_when_a_rule_was_added(transfers: TransferRuns) -> None:
    script = ScriptedTransfer([NO_ROUTE, NO_ROUTE, EventRoute(queue="jobs", rule="2")])
    order = an_event_order(an_event(id="rerouted"))
    async with transfers.workers(script):
        run = await transfers.start_event(order)
        for _ in range(2):
            await transfers.parked(run)
            await run.execute_update("retry", Retry(by="ann"))
        view = await run.result()
        await transfers.handle(file_job_id(order.transfer_id)).result()
    assert view.status is TransferStatus.ASSIGNED
    assert [each.queue for each in script.received["route"]] == [None, None]


@pytest.mark.parametrize("verb", ["skip", "fail"])
async def test_an_event_is_left_out_or_given_up(transfers: TransferRuns, verb: str) -> None:
    script = ScriptedTransfer([NO_ROUTE])
    order = an_event_order(an_event(id=f"not-routed-{verb}"))
    async with transfers.workers(script):
        run = await transfers.start_event(order)
        await transfers.parked(run)
        await run.execute_update(verb, Answer(by="ann", reason="a test"))
        if verb == "skip":
            assert (await run.result()).status is TransferStatus.FAILED
        else:
            with pytest.raises(WorkflowFailureError):
                await run.result()
    [recorded] = script.received["record"]
    assert (recorded.status, recorded.by) == (TransferStatus.FAILED, "ann")
    assert "a test" in recorded.reason
    assert recorded.run == transfer_workflow_id(order.transfer_id)


REFUSED = Reception(status=TransferStatus.FAILED, refused="another event has its job", digest="d")


async def test_an_event_whose_job_is_that_of_another_one_is_refused(
    transfers: TransferRuns,
) -> None:
    event = an_event(id="taken")
    script = ScriptedTransfer(results={"compare_job": REFUSED}, held={"scan"})
    async with transfers.workers(script):
        job = await transfers.start_job(a_job_order(event))
        await script.working.wait()
        run = await transfers.start_event(an_event_order(event))
        with pytest.raises(WorkflowFailureError) as raised:
            await run.result()
        memo = await (await run.describe()).memo()
        await job.terminate()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.type, cause.message) == (KEY_REUSED, "another event has its job")
    assert memo["digest"] == "d"


async def test_an_event_whose_job_was_started_before_is_reported(transfers: TransferRuns) -> None:
    event = an_event(id="started-before")
    script = ScriptedTransfer(held={"scan"})
    async with transfers.workers(script):
        job = await transfers.start_job(a_job_order(event))
        await script.working.wait()
        view = await (await transfers.start_event(an_event_order(event))).result()
        await job.terminate()
    assert view.status is TransferStatus.ASSIGNED
    assert view.reason == "queue jobs; its job was started"
    assert script.made("compare_job") == 1


async def test_an_event_whose_job_nothing_is_known_of_waits_for_a_person(
    transfers: TransferRuns,
) -> None:
    event = an_event(id="not-known")
    unknown = ApplicationError("it is not known", type=PERMANENT, non_retryable=True)
    script = ScriptedTransfer(held={"scan"}, fails={"compare_job": [unknown]})
    async with transfers.workers(script):
        job = await transfers.start_job(a_job_order(event))
        await script.working.wait()
        run = await transfers.start_event(an_event_order(event))
        parked = await transfers.parked(run)
        await run.execute_update("retry", Retry(by="ann"))
        view = await run.result()
        await job.terminate()
    assert parked.reason == "it is not known"
    assert view.status is TransferStatus.ASSIGNED
