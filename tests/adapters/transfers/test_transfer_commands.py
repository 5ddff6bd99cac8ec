"""`docflow transfer` at a gateway, over real tables and a real server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from activities.transfers.cloud_events import head_of
from tests.gateway.test_commands import Terminal
from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import a_message, a_receipt, an_event
from tests.support.transfers.installation import Installation, at_terminal, ended, until
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


@pytest_asyncio.fixture(loop_scope="module")
async def ida(transfers: Installation) -> AsyncIterator[Terminal]:
    async with at_terminal(transfers) as terminal:
        yield terminal


async def test_an_event_is_sent_and_followed(
    transfers: Installation, ida: Terminal, tmp_path: Path
) -> None:
    file = tmp_path / "event.json"

    async def send(*options: str, code: int = 0, **fields: Any) -> str:
        file.write_text(json.dumps(an_event(**fields)))
        given = ("transfer", "send", str(file), *options)
        done = await run_docflow_in_thread(*given, context=CliContext(ida.environment))
        assert done.exit_code == code, done.output
        return done.output

    assert "Succeeded" in await send(id="sent")
    assert "the same event came before" in await send("--no-follow", id="sent")
    assert "by a message with other content" in await send(id="sent", subject="another", code=2)
    assert "it is recorded as" in await send(id="no type", type="", code=2)
    assert "none of 1 rules matches" in await send(id="unrouted", source="Unknown", code=4)
    transfers.far.fails["write"] = [RuleViolation("no such folder")]
    assert "no such folder" in await send(id="it parks", code=4)
    id = head_of(file.read_text()).transfer_id
    shown = await ida.says("transfer", "show", id[:12])
    assert "WriteFile" in shown and "ReadMessage" in shown and f"docflow retry {id[:12]}" in shown
    [garbage] = await ida.json("transfer", "list", "--state", "Garbage")
    assert "type" in garbage["reason"]
    file.write_text("[]")
    assert "is not a JSON object" in await ida.says("transfer", "send", str(file), code=2)


async def test_an_event_is_assigned(transfers: Installation, ida: Terminal) -> None:
    raw, id = a_message(id="assigned by command", source="Nobody")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    shown = await ida.says("transfer", "show", id[:12])
    assert f"docflow transfer assign {id[:12]} QUEUE" in shown
    lines = [line.strip() for line in shown.splitlines()]
    assert f"docflow transfer assign {id[:12]}" in lines
    assert f"docflow skip {id[:12]}" in shown and "docflow retry" not in shown
    assert "no queue nowhere" in await ida.says("transfer", "assign", id, "nowhere", code=2)
    said = await ida.says("transfer", "assign", id[:12], "jobs", "--reason", "a new customer")
    assert said.startswith(f"{id[:12]} goes to jobs; see ")
    await ended(transfers, id)
    trail = [(each.queue, each.by, each.reason) for each in await transfers.store.trail(id)]
    assert ("jobs", "ida", "a new customer") in trail
    assert "a new customer" in await ida.says("transfer", "show", id[:12])


async def test_events_are_routed_again(transfers: Installation, ida: Terminal) -> None:
    raw, id = a_message(id="rerouted by command", source="Rerouted")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.NO_ASSIGNED)
    await transfers.routes.put(RouteRule(queue="jobs", rule="cmd", source="Rerouted"))
    assert "the rules are looked at again" in await ida.says("transfer", "assign", id[:12])
    await ended(transfers, id)
    assert await ida.says("transfer", "assign") == "no event waits for a queue\n"


async def test_a_kept_copy_is_sent_again(transfers: Installation, ida: Terminal) -> None:
    transfers.configure(KeepCopyDays=30)
    raw, id = a_message(id="resent by command")
    await transfers.intake().accept(raw, 0, "m-1")
    await until(transfers, id, TransferStatus.SUCCEEDED)
    assert f"docflow transfer resend {id[:12]}" in await ida.says("transfer", "show", id[:12])
    sent = (await ida.json("transfer", "resend", id[:12], "--to", "acme"))["transfer_id"]
    await ended(transfers, sent)
    assert transfers.far.done[-1] == ("write acme", sent)
    to_nobody = await ida.says("transfer", "resend", id, "--to", "nowhere", code=2)
    assert "there is no partner" in to_nobody


async def test_a_failed_transfer_is_redriven(transfers: Installation, ida: Terminal) -> None:
    raw, id = a_message(id="redriven by command")
    transfers.far.fails["read"] = [RuleViolation("no such file")]
    await transfers.intake().accept(raw, 0, "m-1")
    run = transfers.client.get_workflow_handle(file_job_id(id))

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    shown = await ida.says("transfer", "show", id[:12])
    assert f"docflow retry {id[:12]}" in shown and f"docflow fail {id[:12]}" in shown
    # What follows relies on the files that it reads.
    assert "docflow skip" not in shown
    assert "only what has failed" in await ida.says("transfer", "redrive", id[:12], code=1)
    await run.execute_update("fail", Answer(by="ann"))
    await until(transfers, id, TransferStatus.FAILED)
    receipt = a_receipt(id, ("ReadFile", "failed"))
    await transfers.resources.blobs.write(receipt_blob(id), pieces(canonical(receipt)))
    done = await ida.json("transfer", "redrive", id[:12], "--from-action", "1")
    assert (done["from_action"], done["done_before"]) == (1, [])
    await ended(transfers, done["transfer_id"])
    assert "which has succeeded" in await ida.says("transfer", "redrive", id[:12], code=2)
