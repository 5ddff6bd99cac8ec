"""Whole transfers over real tables and a real server, from their message to their rows."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from temporalio.client import Client, WorkflowFailureError
from typer.testing import Result

from activities import dependencies
from adapters.ports.transfers import StatusRow
from contracts.answers import Answer
from contracts.dependencies import outage_id
from contracts.errors import KEY_REUSED
from contracts.transfers import (
    Receipt,
    ReceiptStep,
    RouteRule,
    TransferRetry,
    TransferStatus,
    TransferView,
    file_job_id,
    receipt_blob,
    resend_id,
    transfer_workflow_id,
)
from domain.errors import RuleViolation
from domain.transfers.events import head_of
from domain.transfers.receipts import assembled, canonical, sealed
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import READ, WRITE, a_job_order, an_event, an_event_order
from tests.support.transfers.installation import OLGA, Installation, open_installation
from tests.support.transfers.places import pieces
from tests.support.waiting import eventually
from workers.cli.context import CliContext
from workers.services.errors import InvalidRequest, Refused, WrongState
from workers.services.transfers.redrive import Redrives
from workers.services.transfers.starts import TransferStarts
from workers.services.verdicts import Abandon, DeadLetter, Settle
from workflows import attributes
from workflows.transfers.file_event import FileEvent

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def transfers(
    client: Client, sqlite_database_url: str, tmp_path: Path
) -> AsyncGenerator[Installation]:
    async with open_installation(client, sqlite_database_url, tmp_path) as opened:
        yield opened


def a_message(**fields: Any) -> tuple[bytes, str]:
    """The body of an event, and the id of its transfer."""
    body = json.dumps(an_event(**fields))
    return body.encode(), head_of(body).transfer_id


async def until(transfers: Installation, transfer_id: str, status: TransferStatus) -> None:
    async def has_status() -> bool:
        row = await transfers.store.get(transfer_id)
        return row is not None and row.status is status

    await eventually(has_status)


async def ended(transfers: Installation, transfer_id: str) -> TransferView:
    await until(transfers, transfer_id, TransferStatus.SUCCEEDED)
    run = transfers.client.get_workflow_handle(file_job_id(transfer_id), result_type=TransferView)
    return await run.result()


async def test_an_event_is_routed_and_carried_out_and_every_state_recorded(
    transfers: Installation,
) -> None:
    raw, id = a_message(id="whole")
    verdict = await transfers.intake().accept(raw, 0, "m-1")
    again = await transfers.intake().accept(raw, 1, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    assert verdict == Settle(transfer_workflow_id(id))
    assert again == Settle(transfer_workflow_id(id), duplicate=True)
    assert await transfers.states(id) == ["Assigned", "ReadMessage", "Succeeded"]
    row = await transfers.service.row(OLGA, id[:8])
    assert (row.queue, row.job, row.file) == ("jobs", "orders", "orders.csv")
    assert [action for action, _ in transfers.far.done] == ["read acme", "write store"]
    described = await transfers.client.get_workflow_handle(file_job_id(id)).describe()
    assert described.task_queue == "transfers-jobs"
    assert (await described.memo())["filename"] == "orders.csv"


@pytest.mark.parametrize(
    ("raw", "status", "reason"),
    [
        (b"no json", "Invalid", "it is not JSON"),
        (b'\xff\xfe{"a"', "Invalid", "it is not JSON"),
        (b"{}", "Garbage", "the event lacks specversion and id"),
    ],
)
async def test_what_is_no_event_has_a_row_and_is_rejected(
    transfers: Installation, raw: bytes, status: str, reason: str
) -> None:
    verdict = await transfers.intake().accept(raw, 0, None)
    assert isinstance(verdict, Settle)
    await transfers.client.get_workflow_handle(verdict.workflow_id).result()
    [row] = await transfers.service.list(OLGA)
    [rejected] = await transfers.resources.rejected.list()
    assert row.status.value == rejected.reason == status
    assert row.reason is not None and row.reason.startswith(reason)
    assert rejected.queue == "intake"


async def test_a_message_that_is_too_long_is_rejected(transfers: Installation) -> None:
    verdict = await transfers.intake().accept(b"x" * 70_000, 0, "long")
    assert isinstance(verdict, DeadLetter)
    [rejected] = await transfers.resources.rejected.list()
    assert rejected.description == "the message has 70,000 bytes; 65,536 are accepted"


async def test_a_message_that_is_never_accepted_is_rejected_after_five_deliveries(
    transfers: Installation,
) -> None:
    raw, _ = a_message(id="odd")
    intake = transfers.intake("jobs")
    for earlier in range(4):
        assert await intake.give_up(raw, earlier, "m-1", "Temporal: INTERNAL") == Abandon(
            "Temporal: INTERNAL"
        )
    verdict = await intake.give_up(raw, 4, "m-1", "Temporal: INTERNAL")
    assert isinstance(verdict, DeadLetter) and verdict.reason == "NotAccepted"
    [rejected] = await transfers.resources.rejected.list()
    assert (rejected.queue, rejected.description) == (
        "jobs",
        "not accepted in 5 deliveries, although everything that docflow needs answers: "
        "Temporal: INTERNAL",
    )


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
    row = StatusRow(
        transfer_id=order.transfer_id,
        status=TransferStatus.SUCCEEDED,
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
    await job.terminate()
    [rejected] = await transfers.resources.rejected.list()
    assert (rejected.reason, rejected.body) == (KEY_REUSED, json.dumps(routed))
    said = [(each.status.value, each.reason) for each in await transfers.store.trail(id)]
    assert any(s == "Failed" and (r or "").startswith("refused, by intake") for s, r in said)


async def test_a_message_of_a_queue_is_routed_already(transfers: Installation) -> None:
    raw, id = a_message(id="routed", source="Nobody")
    verdict = await transfers.intake("jobstmsroute").accept(raw, 0, "m-1")
    assert verdict == Settle(file_job_id(id))
    await ended(transfers, id)
    assert await transfers.states(id) == ["ReadMessage", "Succeeded"]


async def test_events_without_a_route_are_rerouted_when_a_rule_was_added(
    transfers: Installation,
) -> None:
    raw, id = a_message(id="rerouted", source="Pricing.LCP")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    row = await transfers.service.row(OLGA, id)
    [tried] = await transfers.service.reroute(OLGA)
    await transfers.routes.put(RouteRule(queue="jobs", rule="2", source="Pricing.*"))

    async def is_rerouted() -> bool:
        # It may still be looking at the rules as they were.
        done = await transfers.service.reroute(OLGA)
        return not done

    await eventually(is_rerouted)
    await ended(transfers, id)
    assert row.file == "orders.csv"
    assert row.reason is not None and "jobs/1: source is 'Pricing.LCP'" in row.reason
    assert tried.problem is None
    assert (await transfers.states(id))[:2] == ["NoAssigned", "Assigned"]


async def test_all_events_without_a_route_are_rerouted(
    transfers: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.services.transfers.service.LARGEST_PAGE", 1)
    ids: list[str] = []
    for number in range(3):
        raw, id = a_message(id=f"page-{number}", source="Unknown")
        await transfers.intake().accept(raw, 0, None)
        ids.append(id)
    for id in ids:
        await until(transfers, id, TransferStatus.NO_ASSIGNED)
    await transfers.routes.put(RouteRule(queue="jobs", rule="2", source="Unknown"))
    done = await transfers.service.reroute(OLGA)
    assert {each.transfer_id: each.problem for each in done} == dict.fromkeys(ids)
    for id in ids:
        await ended(transfers, id)


async def test_an_event_without_a_route_is_assigned_by_a_person(transfers: Installation) -> None:
    raw, id = a_message(id="assigned", source="Nobody")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    with pytest.raises(InvalidRequest, match="there is no queue nowhere"):
        await transfers.service.assign(OLGA, id, "nowhere")
    await transfers.service.assign(OLGA, id[:12], "jobstmsroute", "a new customer")
    await ended(transfers, id)
    trail = await transfers.store.trail(id)
    assert (trail[1].queue, trail[1].by, trail[1].reason) == (
        *("jobstmsroute", "olga", "a new customer"),
    )
    with pytest.raises(WrongState, match="it waits for no queue: it is Succeeded"):
        await transfers.service.assign(OLGA, id, "jobs")


async def test_a_rule_with_a_queue_that_is_not_there_waits_for_a_person(
    transfers: Installation,
) -> None:
    await transfers.routes.put(RouteRule(queue="gone", rule="9", source="Gone"))
    raw, id = a_message(id="gone", source="Gone")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    row = await transfers.service.row(OLGA, id)
    assert row.reason == "rule 9: there is no queue gone; there are jobs, jobstmsroute"
    await transfers.service.assign(OLGA, id, "jobs")
    await ended(transfers, id)


async def test_wrong_settings_park_a_job_until_they_are_right(transfers: Installation) -> None:
    transfers.configure({**READ, "Partner": "nobody"}, WRITE)
    raw, id = a_message(id="no-partner")
    await transfers.intake().accept(raw, 0, "m-1")
    run = transfers.client.get_workflow_handle(file_job_id(id))

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    row = await transfers.service.row(OLGA, id)
    transfers.configure()
    await run.execute_update("retry", TransferRetry(by="ann"))
    await ended(transfers, id)
    assert row.reason == (
        "parked: job orders names the partner nobody, and there is no such partner: "
        "`docflow partners add nobody`"
    )
    # While it is carried out again, no list says that it is parked.
    said = [(each.reason, each.by) for each in await transfers.store.trail(id)]
    assert said.index(("retry: settings", "ann")) == said.index((row.reason, None)) + 1


async def test_a_failed_action_is_tried_again_with_settings_that_were_corrected(
    transfers: Installation,
) -> None:
    transfers.far.fails["write"] = [RuleViolation("no such folder")]
    raw, id = a_message(id="corrected")
    await transfers.intake().accept(raw, 0, "m-1")
    run = transfers.client.get_workflow_handle(file_job_id(id))

    async def is_parked() -> bool:
        view = await run.query("status", result_type=TransferView)
        return view.since is not None

    await until(transfers, id, TransferStatus.READ_MESSAGE)
    await eventually(is_parked)
    transfers.configure(READ, {**WRITE, "Path": "fixed/{name}"})
    await run.execute_update("retry", TransferRetry(settings=True, by="ann"))
    await ended(transfers, id)
    assert [action for action, _ in transfers.far.done] == ["read acme", "write store"]


async def test_an_event_is_submitted_and_followed(
    transfers: Installation,
    sqlite_database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = transfers.client.service_client.config.target_host
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    context = CliContext({"DATABASE_URL": sqlite_database_url})
    file = tmp_path / "event.json"

    async def submit(*options: str, **fields: Any) -> Result:
        file.write_text(json.dumps(an_event(**fields)))
        given = ("submit", "transfers", str(file), *options)
        return await run_docflow_in_thread(*given, context=context)

    done = await submit(id="submitted")
    assert done.exit_code == 0 and "Succeeded" in done.output
    again = await submit("--no-follow", id="submitted")
    assert again.exit_code == 0 and "the same event came before" in again.output
    other = await submit(id="submitted", subject="another")
    assert other.exit_code == 2 and "by a message with other content" in other.output
    garbage = await submit("--json", id="no type", type="")
    assert garbage.exit_code == 1, garbage.output
    assert '"Garbage"' in garbage.output
    unrouted = await submit(id="unrouted", source="Unknown")
    assert unrouted.exit_code == 4 and "none of 1 rules matches" in unrouted.output
    transfers.far.fails["write"] = [RuleViolation("no such folder")]
    parked = await submit(id="it parks")
    assert parked.exit_code == 4 and "no such folder" in parked.output
    id = head_of(file.read_text()).transfer_id
    context = CliContext({"DATABASE_URL": sqlite_database_url})
    shown = await run_docflow_in_thread("show", id[:12], context=context)
    assert shown.exit_code == 0 and "WriteFile" in shown.output and "States" in shown.output
    status = await run_docflow_in_thread("status", context=context)
    assert f" {id[:12]} " in status.output and "no such folder" in status.output
    listed = await run_docflow_in_thread("list", "--pipeline", "transfers", context=context)
    assert f" {id[:12]} " in listed.output and "no such folder" in listed.output


async def test_a_failed_transfer_is_redriven_from_the_action_that_failed(
    transfers: Installation,
) -> None:
    transfers.configure(READ, WRITE, {**WRITE, "Partner": "acme"})
    raw, id = a_message(id="redriven")
    redrives = Redrives(
        transfers.service,
        transfers.store,
        TransferStarts(transfers.client),
        transfers.client,
        lambda: transfers.resources.blobs,
    )
    transfers.far.fails["read"] = [RuleViolation("no such file")]
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.READ_MESSAGE)
    run = transfers.client.get_workflow_handle(file_job_id(id), result_type=TransferView)

    async def is_parked() -> bool:
        return (await run.query("status", result_type=TransferView)).since is not None

    with pytest.raises(WrongState, match="only what has failed"):
        await redrives.redrive(OLGA, id)
    await eventually(is_parked)
    await run.execute_update("fail", Answer(by="ann"))
    await until(transfers, id, TransferStatus.FAILED)
    receipt = a_receipt(id, ("ReadFile", None), ("WriteFile", None), ("WriteFile", "failed"))
    await transfers.resources.blobs.write(receipt_blob(id), pieces(canonical(receipt)))
    done = await redrives.redrive(OLGA, id[:12])
    again = done.started.transfer_id
    await ended(transfers, again)
    assert (done.from_action, done.not_repeated) == (3, ["2. WriteFile"])
    assert transfers.far.done == [("read acme", again), ("write acme", again)]
    trail = await transfers.store.trail(id)
    assert (trail[-1].reason, trail[-1].by) == (f"redriven from action 3 as {again[:12]}", "olga")
    with pytest.raises(Refused, match="which is Succeeded"):
        await redrives.redrive(OLGA, id)


def a_receipt(id: str, *actions: tuple[str, str | None]) -> Receipt:
    """Of a transfer whose actions went so."""
    steps: list[ReceiptStep] = []
    for index, (action, outcome) in enumerate(actions):
        step = ReceiptStep(
            transfer_id=id,
            index=index,
            action=action,
            at=an_event_order().arrived,
            outcome=outcome,
            previous=steps[-1].sha256 if steps else "e" * 64,
            sha256="",
        )
        steps.append(sealed(step))
    return assembled(id, "e" * 64, steps)


async def test_a_kept_copy_is_sent_again_to_another_partner(transfers: Installation) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    sent = await transfers.service.resend(OLGA, id[:8], "acme")
    await ended(transfers, sent.transfer_id)
    second = await transfers.service.resend(OLGA, id[:8])
    await ended(transfers, second.transfer_id)
    assert len({id, sent.transfer_id, second.transfer_id}) == 3
    assert transfers.far.done[2:] == [
        ("write acme", sent.transfer_id),
        ("write store", second.transfer_id),
    ]
    assert await transfers.states(id) == ["Assigned", "ReadMessage", "Succeeded"]
    with pytest.raises(InvalidRequest, match="there is no partner 'nowhere'"):
        await transfers.service.resend(OLGA, id, "nowhere")
    assert await transfers.store.get(resend_id(id, 3)) is None


async def test_copies_that_are_sent_again_at_once_are_all_sent(transfers: Installation) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent-at-once")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    sent = await asyncio.gather(*(transfers.service.resend(OLGA, id) for _ in range(3)))
    assert all(each.created for each in sent)
    assert {each.transfer_id for each in sent} == {resend_id(id, number) for number in (1, 2, 3)}
    for each in sent:
        await ended(transfers, each.transfer_id)
    assert len(transfers.far.done[2:]) == 3


async def test_only_a_kept_copy_is_sent_again(transfers: Installation) -> None:
    raw, id = a_message(id="not-kept")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    with pytest.raises(WrongState, match="no copy was kept"):
        await transfers.service.resend(OLGA, id)


async def test_runs_wait_for_a_partner_in_one_outage(
    transfers: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("SHORTEST_SECONDS", 0.2),
        ("LONGEST_SECONDS", 0.4),
        ("FAILURE_COUNTS_SECONDS", 0.1),
    ):
        monkeypatch.setattr(dependencies, name, value)
    transfers.far.away.add("store")
    ids: list[str] = []
    for number in range(3):
        raw, id = a_message(id=f"away-{number}")
        await transfers.intake().accept(raw, 0, None)
        ids.append(id)
    outage = transfers.client.get_workflow_handle("outage/partner/store")

    async def all_wait() -> bool:
        views = [(await transfers.service.get(OLGA, id)).view for id in ids]
        return all(view is not None and view.waiting_for == "partner store" for view in views)

    async def is_shown() -> bool:
        found = [run async for run in transfers.client.list_workflows("WorkflowType = 'Outage'")]
        return [run.id for run in found] == [outage_id(dependencies.Dependency.PARTNER, "store")]

    for id in ids:
        await until(transfers, id, TransferStatus.READ_MESSAGE)
    await eventually(all_wait)
    await eventually(is_shown)
    transfers.far.away.clear()
    for id in ids:
        assert (await ended(transfers, id)).status is TransferStatus.SUCCEEDED
    assert (await outage.result())["name"] == "store"
