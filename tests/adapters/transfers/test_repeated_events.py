"""Events that come again, as themselves or as others, over real tables and a real server."""

import json

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.testing import ActivityEnvironment

from activities.transfers.reception import Receiving, ReceivingPorts, RouteCache
from activities.transfers.records import Transfer
from activities.transfers.store import SqlTransferStore
from adapters.database.engine import Database
from tests.support.transfers.events import (
    a_job_order,
    a_message,
    a_transfer,
    an_event,
    an_event_order,
)
from tests.support.transfers.installation import OLGA, Installation, ended, until
from workers.shared.services.bodies import DeadLetter, Settle
from workers.shared.services.errors import InvalidRequest
from workers.transfers.starts import StartedEvents
from workflows.shared import attributes
from workflows.shared.errors import KEY_REUSED
from workflows.transfers.events import TransferStatus
from workflows.transfers.file_event import FileEvent
from workflows.transfers.runs import file_job_id, transfer_workflow_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_another_event_of_the_same_source_and_id_is_refused_and_recorded(
    transfers: Installation,
) -> None:
    raw, id = a_message(id="reused")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    other, _ = a_message(id="reused", type="Other")
    verdict = await transfers.intake().accept(other, 0, "m-2")
    assert isinstance(verdict, DeadLetter) and verdict.reason == KEY_REUSED
    with pytest.raises(InvalidRequest):
        await transfers.service.submit(OLGA, other.decode())
    recorded = await transfers.resources.rejected.list()
    assert [(each.queue, each.reason) for each in recorded] == [
        ("submit", KEY_REUSED),
        ("intake", KEY_REUSED),
    ]
    assert {each.body for each in recorded} == {other.decode()}
    assert await transfers.states(id) == ["Assigned", "ReadMessage", "Succeeded"]


async def test_rows_know_an_event_for_longer_than_temporal_does(transfers: Installation) -> None:
    raw, id = a_message(id="forgotten")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    # Under another id of the run, as if that of the first one were forgotten.
    order = an_event_order(an_event(id="forgotten", type="Other"))
    run = await transfers.client.start_workflow(
        FileEvent.run, order, id=f"{transfer_workflow_id(id)[:-1]}x", task_queue="transfers"
    )
    with pytest.raises(WorkflowFailureError):
        await run.result()
    [rejected] = await transfers.resources.rejected.list()
    assert rejected.reason == KEY_REUSED


async def test_an_event_that_temporal_has_forgotten_is_carried_out_once(
    transfers: Installation,
) -> None:
    raw, id = a_message(id="once")
    await transfers.intake().accept(raw, 0, "m-1")
    await ended(transfers, id)
    # Under another id of the run, as if that of the first one were forgotten.
    run = await transfers.client.start_workflow(
        FileEvent.run,
        an_event_order(json.loads(raw)),
        id=f"{transfer_workflow_id(id)[:-1]}x",
        task_queue="transfers",
        search_attributes=attributes.at_start("transfers", "event", "TMS001"),
    )
    view = await run.result()
    assert (view.status, (view.reason or "")[:26]) == ("Succeeded", "it was carried out before,")
    described = await run.describe()
    assert described.typed_search_attributes.get(attributes.STATE) == "skipped"
    assert await transfers.states(id) == ["Assigned", "ReadMessage", "Succeeded"]
    assert [action for action, _ in transfers.far.done] == ["read acme", "write store"]


async def test_a_message_of_a_queue_is_known_for_longer_than_temporal_does(
    transfers: Installation,
) -> None:
    event = an_event(id="forgotten-by-queue")
    order = an_event_order(event)
    row = a_transfer(
        order.transfer_id,
        TransferStatus.SUCCEEDED,
        at=order.arrived,
        source=event["source"],
        event_id=event["id"],
        digest=order.digest,
    )
    # As after the retention of the namespace: a row, and no run.
    await transfers.store.record(row)
    intake = transfers.intake("jobs")
    same = await intake.accept(json.dumps(event).encode(), 0, "m-1")
    assert same == Settle(file_job_id(order.transfer_id), duplicate=True)
    other, _ = a_message(id="forgotten-by-queue", type="Other")
    verdict = await intake.accept(other, 0, "m-2")
    assert isinstance(verdict, DeadLetter) and verdict.reason == KEY_REUSED
    [rejected] = await transfers.resources.rejected.list()
    assert (rejected.queue, rejected.reason, rejected.body) == ("jobs", KEY_REUSED, other.decode())
    assert transfers.far.done == []


class Raced(SqlTransferStore):
    """Rows into which another event writes as soon as the first look finds none."""

    def __init__(self, database: Database, other: Transfer) -> None:
        super().__init__(database)
        self._other = other

    async def get(self, transfer_id: str) -> Transfer | None:
        found = await super().get(transfer_id)
        if found is None:
            await self.record(self._other)
        return found


@pytest.mark.parametrize("is_event", [True, False])
async def test_an_event_that_another_one_overtakes_is_refused_and_recorded(
    transfers: Installation, is_event: bool
) -> None:
    id = f"overtaken-{is_event}"
    event, first = an_event(id=id, type="Late"), an_event_order(an_event(id=id))
    if not is_event:
        del event["data"]
    order = an_event_order(event)
    assert order.transfer_id == first.transfer_id
    row = a_transfer(
        first.transfer_id,
        TransferStatus.READ_MESSAGE,
        at=first.arrived,
        source=event["source"],
        event_id=id,
        run=file_job_id(first.transfer_id),
        digest=first.digest,
    )
    receiving = Receiving(
        ReceivingPorts(
            store=Raced(transfers.resources.database, row),
            routes=RouteCache(transfers.routes),
            queues=transfers.service.queues,
            rejected=transfers.resources.rejected,
            jobs=StartedEvents(transfers.client, transfers.service.queues, transfers.store),
        )
    )
    reception = await ActivityEnvironment().run(receiving.receive, order)
    assert reception.refused is not None and reception.digest == first.digest
    [rejected] = await transfers.resources.rejected.list()
    assert (rejected.reason, rejected.body) == (KEY_REUSED, order.body)
    found = await transfers.store.get(first.transfer_id)
    assert found is not None
    assert (found.status, found.digest) == (TransferStatus.READ_MESSAGE, first.digest)
    assert await transfers.states(first.transfer_id) == ["ReadMessage"]


async def test_an_event_whose_job_is_that_of_a_queued_one_is_refused_and_recorded(
    transfers: Installation,
) -> None:
    queued, id = a_message(id="two-ways", type="Queued")
    routed = an_event(id="two-ways", type="Routed")
    job = transfers.client.get_workflow_handle(file_job_id(id))
    # Both pass the look at the row, and the job of the queued one is started first.
    await transfers.client.start_workflow(
        "FileJob",
        a_job_order(json.loads(queued)),
        id=job.id,
        task_queue="transfers-nobody",
        memo={"digest": an_event_order(json.loads(queued)).digest},
        search_attributes=attributes.at_start("transfers", "jobs", "TMS001"),
    )
    verdict = await transfers.intake().accept(json.dumps(routed).encode(), 0, "m-2")
    assert isinstance(verdict, Settle)
    with pytest.raises(WorkflowFailureError):
        await transfers.client.get_workflow_handle(verdict.workflow_id).result()
    # The row is still that of the routed one: the queued one that comes again is known by its job.
    again = await transfers.intake("jobs").accept(queued, 0, "m-1")
    assert again == Settle(job.id, duplicate=True)
    await job.terminate()
    [rejected] = await transfers.resources.rejected.list()
    assert (rejected.reason, rejected.body) == (KEY_REUSED, json.dumps(routed))
    said = [(each.status.value, each.reason) for each in await transfers.store.trail(id)]
    assert any(s == "Failed" and (r or "").startswith("refused, by intake") for s, r in said)
