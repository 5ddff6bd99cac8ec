"""The run of a job: its actions in order, and what becomes of those that fail."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from tests.support.transfers.events import FIRE, READ, SCAN, WRITE, a_job, a_job_order, an_event
from tests.support.transfers.runs import Handle, TransferRuns
from tests.support.transfers.scripted import ScriptedTransfer, inline_step
from workflows.shared import attributes
from workflows.shared.contracts import Answer
from workflows.shared.dependencies import Dependency, Recovery
from workflows.shared.errors import MISSING_BLOB, NOT_YET, PERMANENT, TRANSIENT, UNAVAILABLE
from workflows.transfers.events import TransferStatus, visit_of
from workflows.transfers.job_settings import plan_of
from workflows.transfers.runs import (
    ActionResult,
    Manifest,
    SequencePosition,
    TransferRetry,
    TransferView,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")


def refused(text: str = "refused", type: str = PERMANENT, *details: Any) -> ApplicationError:
    return ApplicationError(text, *details, type=type, non_retryable=True)


async def ended(run: Handle) -> TransferView:
    """The result of a run that fails."""
    with pytest.raises(WorkflowFailureError) as raised:
        await run.result()
    cause = raised.value.cause
    assert isinstance(cause, ApplicationError)
    return TransferView.model_validate(cause.details[0])


def states(view: TransferView) -> Sequence[str]:
    return [each.state for each in view.actions]


async def test_actions_hand_their_files_on_in_order(transfers: TransferRuns) -> None:
    script = ScriptedTransfer()
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="in-order")))
        view = await run.result()
    assert states(view) == ["done", "done", "done"]
    assert view.receipt is not None
    read, scan, write = (script.received[name][0] for name in ("read_file", "scan", "write_file"))
    assert (read.files, scan.files.blob.name) == (Manifest(), "staging/0")
    assert (read.previous, write.previous) == (read.job.digest, f"{1:064x}")
    assert (read.names, write.names) == ({"path": "in/orders.csv"}, {"path": "2026/{name}"})
    closed = script.received["close"][-1]
    assert (closed.status, closed.settings_job) == (TransferStatus.SUCCEEDED, "orders")
    # What it has read, and not what came of that.
    assert closed.size == 10


@pytest.mark.parametrize(
    ("backoff", "pauses"), [("linear", [7, 7]), ("exponential", [7, 14])], ids=str
)
async def test_an_endpoint_is_tried_again_as_its_side_says(
    transfers: TransferRuns, backoff: str, pauses: list[int]
) -> None:
    retries = {
        "RetryFailureDestination": 2,
        "RetryFailureDestinationDelay": 7,
        "Backoff": backoff,
    }
    failures = [refused("no room", TRANSIENT), refused("no room", MISSING_BLOB)]
    script = ScriptedTransfer(job=a_job(retries=retries), fails={"write_file": failures})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id=f"again-{backoff}")))
        for tries, pause in enumerate(pauses, 1):
            await transfers.eventually_made(script, "write_file", tries)
            await transfers.skip_timer(run, timedelta(seconds=pause))
        view = await run.result()
    assert view.status is TransferStatus.SUCCEEDED
    assert script.made("write_file") == 3


async def test_waits_that_the_partner_asks_for_use_up_no_retry(transfers: TransferRuns) -> None:
    closed = [refused("closed until 8:00", NOT_YET) for _ in range(2)]
    script = ScriptedTransfer(fails={"read_file": closed})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="not-yet")))
        for tries in (1, 2):
            await transfers.eventually_made(script, "read_file", tries)
            # Each pause is twice the one before.
            await transfers.skip_timer(run, timedelta(minutes=tries))
        view = await run.result()
    assert view.status is TransferStatus.SUCCEEDED


async def test_a_failed_action_is_retried_alone_with_corrected_settings(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer(fails={"write_file": [refused("no such folder")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="corrected")))
        view = await transfers.parked(run)
        retry = TransferRetry(action={"Partner": "store", "Path": "fixed/{name}"}, by="ann")
        await run.execute_update("retry", retry)
        done = await run.result()
    assert (states(view), view.reason) == (["done", "done", "parked"], "store: no such folder")
    assert states(done) == ["done", "done", "done"]
    assert (script.made("read_file"), script.made("write_file")) == (1, 2)
    again = script.received["write_file"][1]
    assert (again.round, again.names) == (1, {"path": "fixed/{name}"})
    assert again.configured_by == "ann"
    closed = script.received["close"][-1]
    assert closed.reason == "3. WriteFile: Partner and Path changed by ann"
    assert [(each.reason, each.by) for each in script.received["record"]] == [
        ("parked: store: no such folder", None),
        ("retry: 3. WriteFile", "ann"),
    ]


async def test_settings_that_are_read_again_take_the_place_of_a_correction(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer(fails={"write_file": [refused("no such folder"), refused("again")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="corrected-and-read")))
        await transfers.parked(run)
        retry = TransferRetry(action={"Path": "fixed/{name}"}, by="ann")
        await run.execute_update("retry", retry)
        await transfers.parked(run)
        await run.execute_update("retry", TransferRetry(settings=True, by="ben"))
        await run.result()
    first, corrected, read = script.received["write_file"]
    assert corrected.configured_by == "ann"
    assert read.configured_by == first.configured_by


async def test_wrong_corrections_park_it_again(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(fails={"write_file": [refused()]})
    script.fails["load_plan"] = []
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="corrected-twice")))
        await transfers.parked(run)
        script.fails["load_plan"] = [refused("action 3 (WriteFile): Path: too long")]
        await run.execute_update("retry", TransferRetry(settings=True))
        view = await transfers.parked(run)
        await run.execute_update("retry", TransferRetry())
        await run.result()
    wrong = "the corrected settings: action 3 (WriteFile): Path: too long"
    assert view.reason == f"store: {wrong}; before: refused"


async def test_what_nothing_reads_in_corrected_settings_is_named(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(fails={"write_file": [refused()]})
    order = a_job_order(an_event(id="corrected-file"))
    fixed = plan_of(a_job(), order.event, None, ["Jobs[0].Retries"])
    async with transfers.workers(script):
        run = await transfers.start_job(order)
        await transfers.parked(run)
        script.results["load_plan"] = fixed
        await run.execute_update("retry", TransferRetry(settings=True, by="ann"))
        done = await run.result()
    assert done.reason == "nothing reads the key Jobs[0].Retries"


async def test_an_action_that_others_rely_on_cannot_be_left_out(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(fails={"scan": [refused("no scanner")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="no-skip")))
        await transfers.parked(run)
        with pytest.raises(Exception, match="update failed"):
            await run.execute_update("skip", Answer(by="ann"))
        await run.execute_update("fail", Answer(by="ann", reason="no use"))
        view = await ended(run)
    assert view.reason == "no scanner; no use (ann)"
    assert script.made("write_file") == 0


async def test_the_source_stays_when_a_person_left_an_action_out(transfers: TransferRuns) -> None:
    job = a_job({**READ, "After": "delete"}, WRITE)
    script = ScriptedTransfer(job=job, fails={"write_file": [refused("full")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="left-out")))
        await transfers.parked(run)
        await run.execute_update("skip", Answer(by="ann"))
        view = await run.result()
    assert states(view) == ["done", "skipped"]
    assert script.made("settle_source") == 0
    assert view.reason is not None and "the source stays as it is" in view.reason


async def test_sources_are_settled_after_the_last_action(transfers: TransferRuns) -> None:
    job = a_job({**READ, "After": "move", "MoveTo": "done/{name}"}, WRITE, FIRE)
    script = ScriptedTransfer(job=job)
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="settled")))
        await run.result()
    assert script.calls[-5:] == ["write_file", "fire_event", "receipt", "settle_source", "close"]
    [settled] = script.received["settle_source"]
    assert settled.succeeded
    assert settled.names["move_to"] == "done/{name}"


async def test_the_source_of_a_failed_run_is_moved_where_the_job_says(
    transfers: TransferRuns,
) -> None:
    job = a_job({**READ, "OnFailureMoveTo": "failed/{name}"}, WRITE)
    script = ScriptedTransfer(job=job, fails={"write_file": [refused()]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="failed-source")))
        await transfers.parked(run)
        await run.execute_update("fail", Answer(by="ann"))
        await ended(run)
    [settled] = script.received["settle_source"]
    assert not settled.succeeded


async def test_an_infected_file_fails_the_run_and_nothing_is_written(
    transfers: TransferRuns,
) -> None:
    infected = ActionResult(files=Manifest(files=1, bytes=1), infected="Eicar in orders.csv")
    script = ScriptedTransfer(results={"scan": infected})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="infected")))
        view = await ended(run)
    assert view.reason == "Eicar in orders.csv"
    assert script.made("write_file") == 0
    closed = script.received["close"][-1]
    assert (closed.status, closed.reason) == (TransferStatus.FAILED, view.reason)


async def test_a_partner_that_cannot_be_reached_is_waited_for(transfers: TransferRuns) -> None:
    away = refused("no route to host", UNAVAILABLE, Dependency.PARTNER.value, 0, "store")
    script = ScriptedTransfer(
        fails={"write_file": [away]}, held={"wait"}, results={"wait": Recovery(was_down=True)}
    )
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="away")))
        await script.working.wait()
        view = await run.query("status", result_type=TransferView)
        found = (await run.describe()).typed_search_attributes
        script.held.clear()
        done = await run.result()
    assert (states(view), view.waiting_for) == (["done", "done", "waiting"], "partner store")
    assert found.get(attributes.STATE) == "waiting"
    assert found.get(attributes.WAITING_FOR) == "outage/partner/store"
    assert not found.get(attributes.NEEDS_ATTENTION)
    assert done.status is TransferStatus.SUCCEEDED
    [awaited] = script.received["wait"]
    assert (awaited.dependency, awaited.name) == (Dependency.PARTNER, "store")


@pytest.mark.parametrize("event", [{"depth": 32}, {"visited": True}], ids=str)
async def test_an_event_that_goes_round_in_a_circle_fails(
    transfers: TransferRuns, event: dict[str, Any]
) -> None:
    order = a_job_order(an_event(id=f"loop-{sorted(event)}"))
    visited = (visit_of("jobs", "orders", "File Upload"),) if "visited" in event else ()
    update = {"depth": event.get("depth", 3), "visited": visited}
    order = order.model_copy(update={"event": order.event.model_copy(update=update)})
    script = ScriptedTransfer()
    async with transfers.workers(script):
        view = await ended(await transfers.start_job(order))
    assert view.reason is not None and view.reason.startswith("a loop: ")
    assert script.made("read_file") == 0


async def test_a_job_waits_for_its_turn(transfers: TransferRuns) -> None:
    line = [SequencePosition(position=2, behind="transfer/a/job"), SequencePosition(position=0)]
    script = ScriptedTransfer(job=a_job(SequenceKey="ftp/{accountId}"), turns=line)
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="turn")))
        await run.result()
    assert [each.known for each in script.received["take_turn"]] == [None, 2]
    closed = script.received["close"][-1]
    assert closed.sequence == "ftp/TMS001"


async def test_settings_that_fit_nothing_park_the_run(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(fails={"load_plan": [refused("there is no partner acme")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="no-partner")))
        view = await transfers.parked(run)
        # There is no action yet whose settings it could correct.
        with pytest.raises(WorkflowUpdateFailedError):
            await run.execute_update("retry", TransferRetry(action={"Path": "in/a.csv"}))
        await run.execute_update("retry", TransferRetry())
        await run.result()
    assert (view.reason, view.actions) == ("there is no partner acme", ())


async def test_a_cancelled_job_begins_no_further_action(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(held={"scan"})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="cancelled")))
        await script.working.wait()
        await run.execute_update("cancel", Answer(by="ann", reason="wrong file"))
        view = await run.result()
    assert (view.status, view.reason) == (TransferStatus.FAILED, "wrong file")
    assert script.made("write_file") == 0


async def test_a_copy_is_kept_of_what_was_written(transfers: TransferRuns) -> None:
    script = ScriptedTransfer(job=a_job(KeepCopyDays=30))
    async with transfers.workers(script):
        await (await transfers.start_job(a_job_order(an_event(id="kept")))).result()
    [kept] = script.received["keep"]
    assert (kept.days, kept.files.blob.name) == (30, "staging/2")
    [receipt] = script.received["receipt"]
    assert receipt.kept == kept.files.blob


async def test_a_failed_scan_is_not_retried(transfers: TransferRuns) -> None:
    """An action on docflow's own side has no retries of its own."""
    script = ScriptedTransfer(job=a_job(READ, SCAN), fails={"scan": [refused("encrypted")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="own-side")))
        await transfers.parked(run)
        assert script.made("scan") == 1
        await run.execute_update("fail", Answer())
        await ended(run)


async def test_of_many_remarks_the_row_says_how_many_more_there_are(
    transfers: TransferRuns,
) -> None:
    odd = {
        action: ActionResult(
            files=Manifest(), remarks=tuple(f"{action} {n} {'x' * 40}" for n in range(10))
        )
        for action in ("read_file", "scan")
    }
    script = ScriptedTransfer(results=odd)
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="remarks")))
        await run.result()
    closed = script.received["close"][-1]
    assert closed.reason is not None and len(closed.reason) <= 500
    assert closed.reason.startswith("read_file 0 x")
    assert closed.reason.endswith(f"; and {20 - closed.reason.count('_file ')} more remarks")


async def test_the_receipt_names_what_was_left_out_and_who_decided_it(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer(
        job=a_job(READ, SCAN, WRITE, FIRE), fails={"write_file": [refused("no such folder")]}
    )
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="receipt-skipped")))
        await transfers.parked(run)
        await run.execute_update("skip", Answer(by="ann", reason="sent by mail"))
        await run.result()
    [order] = script.received["receipt"]
    [skipped] = order.outcomes
    assert (skipped.index, skipped.action, skipped.outcome) == (2, "WriteFile", "skipped")
    assert (skipped.decided_by, skipped.previous) == ("ann", f"{1:064x}")
    assert skipped.reason == "no such folder; sent by mail (ann)"
    # The next action follows it.
    assert script.received["fire_event"][0].previous == skipped.sha256
    assert len(order.steps) == 3


async def test_short_steps_of_the_receipt_are_taken_from_the_results_of_actions(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer(results={"scan": inline_step})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="receipt-inline")))
        await run.result()
        history = await run.fetch_history()
    [order] = script.received["receipt"]
    [step] = order.outcomes
    assert (step.index, step.outcome, step.previous) == (1, None, f"{0:064x}")
    assert script.received["write_file"][0].previous == step.sha256
    assert [each.name for each in order.steps] == ["step-0.json", "step-2.json"]
    remote = {
        each.activity_task_scheduled_event_attributes.activity_type.name for each in history.events
    }
    assert remote - {""} == {"transfers.read_file", "transfers.scan", "transfers.write_file"}


async def test_the_receipt_names_the_action_at_which_a_transfer_has_failed(
    transfers: TransferRuns,
) -> None:
    script = ScriptedTransfer(fails={"read_file": [refused("no such file")]})
    async with transfers.workers(script):
        run = await transfers.start_job(a_job_order(an_event(id="receipt-failed")))
        await transfers.parked(run)
        await run.execute_update("fail", Answer(by="ann"))
        view = await ended(run)
    [order] = script.received["receipt"]
    [failed] = order.outcomes
    assert (failed.index, failed.outcome, failed.reason) == (0, "failed", "no such file")
    assert (failed.decided_by, order.steps) == ("ann", ())
    assert view.receipt is not None
