"""`docflow transfers assign|reroute|resend|redrive` over real tables and a real server."""

import json
from collections.abc import Awaitable, Callable

import pytest

from adapters.ports.errors import Denied
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import a_message, a_receipt
from tests.support.transfers.installation import Installation, ended, until
from tests.support.transfers.places import pieces
from tests.support.waiting import eventually
from workers.shared.cli.context import CliContext
from workflows.shared.contracts import Answer
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import TransferStatus
from workflows.transfers.receipts import canonical
from workflows.transfers.routes import RouteRule
from workflows.transfers.runs import file_job_id, receipt_blob

pytestmark = pytest.mark.asyncio(loop_scope="module")

Docflow = Callable[..., Awaitable[str]]


@pytest.fixture
def docflow(transfers: Installation, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Docflow:
    address = transfers.client.service_client.config.target_host
    environment = {
        "DATABASE_URL": database_url,
        "DOCFLOW_BLOB_FOLDER": str(transfers.settings.parent / "blobs"),
        "TEMPORAL_ADDRESS": address,
        "USER": "ida",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    async def call(*arguments: str, code: int = 0) -> str:
        context = CliContext(environment)
        done = await run_docflow_in_thread("transfers", *arguments, context=context)
        assert done.exit_code == code, done.output
        return done.output

    return call


async def test_an_event_is_assigned(transfers: Installation, docflow: Docflow) -> None:
    raw, id = a_message(id="assigned by command", source="Nobody")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    shown = await docflow("show", id[:12])
    for command in (f"transfers assign {id[:12]} QUEUE", f"transfers reroute {id[:12]}"):
        assert f"docflow {command}" in shown
    assert f"docflow skip {id[:12]}" in shown and "docflow retry" not in shown
    assert "there is no queue nowhere" in await docflow("assign", id[:12], "nowhere", code=2)
    said = await docflow("assign", id[:12], "jobs", "--reason", "a new customer")
    assert said.startswith(f"{id[:12]} goes to jobs; see ")
    await ended(transfers, id)
    trail = [(each.queue, each.by, each.reason) for each in await transfers.store.trail(id)]
    assert ("jobs", "ida", "a new customer") in trail
    assert "a new customer" in await docflow("show", id[:12])


async def test_events_are_routed_again(transfers: Installation, docflow: Docflow) -> None:
    raw, id = a_message(id="rerouted by command", source="Rerouted")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    await transfers.routes.put(RouteRule(queue="jobs", rule="cmd", source="Rerouted"))
    assert "the rules are looked at again" in await docflow("reroute", id[:12])
    await ended(transfers, id)
    assert await docflow("reroute") == "no event waits for a queue\n"


async def test_a_kept_copy_is_sent_again(transfers: Installation, docflow: Docflow) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent by command")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    sent = json.loads(await docflow("resend", id[:12], "--to", "acme", "--json"))["transfer_id"]
    await ended(transfers, sent)
    assert transfers.far.done[-1] == ("write acme", sent)
    assert "there is no partner" in await docflow("resend", id, "--to", "nowhere", code=2)


async def test_a_failed_transfer_is_redriven(transfers: Installation, docflow: Docflow) -> None:
    raw, id = a_message(id="redriven by command")
    transfers.far.fails["read"] = [RuleViolation("no such file")]
    await transfers.intake().accept(raw, 0, "m-1")
    run = transfers.client.get_workflow_handle(file_job_id(id))

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    shown = await docflow("show", id[:12])
    assert f"docflow retry {id[:12]}" in shown and f"docflow fail {id[:12]}" in shown
    # What follows relies on the files that it reads.
    assert "docflow skip" not in shown
    assert "only what has failed" in await docflow("redrive", id[:12], code=1)
    await run.execute_update("fail", Answer(by="ann"))
    await until(transfers, id, TransferStatus.FAILED)
    receipt = a_receipt(id, ("ReadFile", "failed"))
    await transfers.resources.blobs.write(receipt_blob(id), pieces(canonical(receipt)))
    done = json.loads(await docflow("redrive", id[:12], "--from-action", "1", "--json"))
    assert (done["from_action"], done["done_before"]) == (1, [])
    await ended(transfers, done["transfer_id"])
    assert "which has succeeded" in await docflow("redrive", id[:12], code=1)


async def test_transfers_of_one_cause_are_answered_together(
    transfers: Installation, docflow: Docflow
) -> None:
    ids: list[str] = []
    for number in range(3):
        transfers.far.fails["read"].append(Denied(f"acme refuses 'in/{number}.csv': 403"))
        raw, id = a_message(id=f"together {number}")
        await transfers.intake().accept(raw, 0, "m-1")
        ids.append(id)

    async def all_are_parked() -> bool:
        rows = [await transfers.store.get(id) for id in ids]
        return all(row and (row.reason or "").startswith("parked: ") for row in rows)

    await eventually(all_are_parked)
    [group] = json.loads(await docflow("parked", "--json"))
    assert (group["queue"], group["cause"]) == ("jobs", "acme refuses …: 403")
    assert sorted(group["transfers"]) == sorted(ids)
    assert group["group"] in await docflow("parked")
    assert "add --yes" in await docflow("answer", group["group"], "retry", code=2)
    refused = await docflow("answer", group["group"], "retry", "--reason", "x", "--yes", code=2)
    assert "takes no --reason" in refused
    assert "no answer" in await docflow("answer", group["group"], "explode", "--yes", code=2)
    assert "no transfer waits" in await docflow("answer", "0" * 16, "retry", "--yes", code=1)
    said = await docflow("answer", group["group"], "retry", "--yes")
    assert said == "3 answered, 0 not\n"
    for id in ids:
        await ended(transfers, id)
        trail = await transfers.store.trail(id)
        assert ("retry: 1. ReadFile", "ida") in [(each.reason, each.by) for each in trail]
    assert await docflow("parked") == "no transfer waits for a person\n"
