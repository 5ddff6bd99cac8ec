"""Whole transfers over real tables and a real server, from their message to their rows."""

import json

import pytest

from activities.shared import dependencies
from adapters.ports.errors import Denied
from tests.support.transfers.events import READ, WRITE, a_message, a_receipt
from tests.support.transfers.installation import OLGA, Installation, ended, until
from tests.support.transfers.places import pieces
from tests.support.waiting import eventually
from workers.shared.services.bodies import Abandon, DeadLetter, Settle
from workers.shared.services.errors import InvalidRequest, Refused, WrongState
from workers.transfers.redrive import Redrives
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import outage_id
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import canonical
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import (
    TransferAssign,
    TransferRetry,
    TransferView,
    file_job_id,
    receipt_blob,
    transfer_workflow_id,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
    monkeypatch.setattr("workers.transfers.service.LARGEST_PAGE", 1)
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
    with pytest.raises(WrongState, match="it waits for no queue: it has succeeded"):
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


async def test_a_job_of_a_queue_that_has_none_for_it_is_assigned_anew(
    transfers: Installation,
) -> None:
    text = json.loads(transfers.settings.read_text())
    text["Jobs"] = [job for job in text["Jobs"] if job["Queue"] == "jobstmsroute"]
    transfers.settings.write_text(json.dumps(text))
    raw, id = a_message(id="assigned-anew", source="Nobody")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    await transfers.service.assign(OLGA, id, "jobs")

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    await transfers.service.assign(OLGA, id, "jobstmsroute", "the wrong queue")
    view = await ended(transfers, id)
    assert (view.queue, view.job) == ("jobstmsroute", "orders")
    trail = await transfers.store.trail(id)
    # A workflow task that is done again on a busy machine writes its lines again.
    assert [*dict.fromkeys((row.status.value, row.queue, row.by) for row in trail)] == [
        ("NoAssigned", None, None),
        ("Assigned", "jobs", "olga"),
        ("ReadMessage", "jobs", None),
        ("ReadMessage", "jobs", "olga"),
        ("Assigned", "jobstmsroute", "olga"),
        ("ReadMessage", "jobstmsroute", None),
        ("Succeeded", "jobstmsroute", None),
    ]
    assert "the wrong queue" in [row.reason for row in trail]
    with pytest.raises(WrongState, match="it waits for no queue: it has succeeded"):
        await transfers.service.assign(OLGA, id, "jobs")


async def test_a_job_whose_actions_have_begun_keeps_its_queue(transfers: Installation) -> None:
    transfers.far.fails["write"].append(Denied("no such folder"))
    raw, id = a_message(id="begun")
    await transfers.intake().accept(raw, 0, "m-1")

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    with pytest.raises(Refused, match="its actions have begun"):
        await transfers.service.assign(OLGA, id, "jobstmsroute")
    run = transfers.client.get_workflow_handle(file_job_id(id))
    await run.signal("assign", TransferAssign(queue="jobstmsroute"))
    await run.execute_update("retry", TransferRetry(by="ann"))
    assert (await ended(transfers, id)).queue == "jobs"


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
        "`docflow partner add nobody`"
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


async def test_a_failed_transfer_is_redriven_from_the_action_that_failed(
    transfers: Installation,
) -> None:
    transfers.configure(READ, WRITE, {**WRITE, "Partner": "acme"})
    raw, id = a_message(id="redriven")
    redrives = Redrives(transfers.service, lambda: transfers.resources.blobs)
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
    assert (done.from_action, done.done_before) == (3, ["2. WriteFile"])
    assert transfers.far.done == [("read acme", again), ("write acme", again)]
    trail = await transfers.store.trail(id)
    assert (trail[-1].reason, trail[-1].by) == (f"redriven from action 3 as {again[:12]}", "olga")
    with pytest.raises(Refused, match="which has succeeded"):
        await redrives.redrive(OLGA, id)


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
