"""`docflow transfers watches|expected`: schedules on a real server, from the file to the event."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.transfers.operators_files import Queue
from activities.transfers.store import SqlRouteStore, SqlSequenceLocks, SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from activities.transfers.watches import ExpectedPorts, Expecting, Watching, WatchPollDeps
from adapters.database.engine import Database, open_database
from stack.temporal import temporal_binary
from tests.support.cli import run_docflow_in_thread
from tests.support.fresh_database import fresh_url
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.events import a_transfer
from tests.support.transfers.places import open_places
from tests.support.waiting import eventually
from workers import catalogue
from workers.shared.plugin import docflow_plugin
from workers.shared.register import recognise
from workers.shared.schedules import Change, declared_schedules, delete_undeclared, reconcile
from workers.transfers.starts import StartedEvents
from workflows.shared import attributes
from workflows.transfers.events import TransferStatus, transfer_id_of
from workflows.transfers.expected_files import ExpectedFiles, ExpectedFilesCheck
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import transfer_workflow_id
from workflows.transfers.scheduled import WatchLook
from workflows.transfers.watches import PollWatchResult, WatchState

CLOCKS = """
watches:
  - name: acme-orders
    partner: acme
    path: out/*.csv
    account_id: ACME
    every_minutes: 60
    settle_seconds: 0
expected:
  - name: orders
    queue: jobs
    deadline: 23:59
    every_minutes: 60
"""


@pytest_asyncio.fixture
async def client() -> AsyncIterator[Client]:
    environment = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with environment:
        yield environment.client


def worker_of(client: Client, database: Database, root: Path) -> Worker:
    """A worker of what happens by the clock; events are started, and carried out by nobody."""
    partners = MemoryPartners(Partner(name="acme", kind=PlaceKind.FOLDER, container=str(root)))
    places = open_places(folders=[root], store=partners)
    queues = {"jobs": Queue(name="jobs", handler="FileJobHandler")}
    sender = StartedEvents(client, queues, SqlTransferStore(database), way_in="watch")
    rows = SqlTransferStore(database)
    store, turns = SqlWatchStore(database), SqlSequenceLocks(database)
    watching = Watching(WatchPollDeps(places, partners, store, sender, rows, turns))
    expecting = Expecting(ExpectedPorts(SqlExpectedStore(database), SqlRouteStore(database)))
    return Worker(
        client,
        task_queue="transfers",
        workflows=[WatchLook, ExpectedFilesCheck, ExpectedFiles],
        activities=[
            watching.look,
            watching.note_look,
            expecting.check_expected,
            expecting.record_expected,
        ],
    )


async def docflow(*arguments: str) -> str:
    done = await run_docflow_in_thread("transfers", *arguments)
    assert done.exit_code == 0, done.output
    return done.output


async def listed(group: str) -> dict[str, object]:
    (found,) = json.loads(await docflow(group, "list", "--json"))
    return found


async def test_a_declared_watch_starts_events(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh_url()
    file, clocks = tmp_path / "out" / "a.csv", tmp_path / "watches.yaml"
    file.parent.mkdir()
    file.write_bytes(b"1,2\n")
    clocks.write_text(CLOCKS)
    settings = {
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "DATABASE_URL": url,
        "DOCFLOW_TRANSFERS_WATCHES": str(clocks),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    refused = await run_docflow_in_thread("transfers", "watches", "run", "acme-orders")
    assert refused.exit_code == 1 and "docflow schedule reconcile" in refused.output
    table = declared_schedules(["transfers"], settings)
    assert set((await reconcile(client, ["transfers"], table)).values()) == {Change.CREATED}
    assert set((await reconcile(client, ["transfers"], table)).values()) == {Change.NONE}
    assert await delete_undeclared(client, ["transfers"], settings) == {}
    async with open_database(url) as database, worker_of(client, database, tmp_path):
        await _watched(client)
        returned = WatchState(watch="acme-orders", result=PollWatchResult(files=9, returned=7_531))
        await SqlWatchStore(database).put_state(returned)
        shown = await docflow("watches", "list")
        assert "returned" in shown and "7531" in shown
        await _expected(database)
    await _paused()
    clocks.write_text(CLOCKS[: CLOCKS.index("expected:")].replace("acme-orders", "others"))

    async def deleted() -> bool:
        # Lists of schedules lag behind.
        await delete_undeclared(client, ["transfers"], settings)
        try:
            await client.get_schedule_handle("transfer-watch-acme-orders").describe()
        except RPCError:
            return True
        return False

    await eventually(deleted)
    assert await delete_undeclared(client, ["transfers"], {}) == {}


async def _watched(client: Client) -> None:
    async def sent() -> bool:
        await docflow("watches", "run", "acme-orders")
        files = json.loads(await docflow("watches", "files", "acme-orders", "--json"))
        return bool(files) and files[0]["event"] is not None

    # Two looks, and each is one run of the schedule.
    await eventually(sent)
    (found,) = json.loads(await docflow("watches", "files", "acme-orders", "--json"))
    id = transfer_id_of("docflow.watch.acme-orders", found["event"])
    assert found["transfer"] == id
    assert id[:12] in await docflow("watches", "files", "acme-orders")
    event = await client.get_workflow_handle(transfer_workflow_id(id)).describe()
    assert event.workflow_type == "FileEvent"
    runs = [each async for each in client.list_workflows("WorkflowType = 'WatchLook'")]
    known = recognise(catalogue.PIPELINES, runs[0].id)
    assert known is not None and (known.kind.scheduled, known.key) == (True, "acme-orders")
    assert "acme-orders" in await docflow("watches", "list")


async def _expected(database: Database) -> None:
    row = a_transfer(
        transfer_id_of("TMS.Route", "1"),
        TransferStatus.ASSIGNED,
        source="TMS.Route",
        account_id="TMS001",
        type="Succeeded",
        subject="File Upload",
        queue="jobs",
    )
    await SqlTransferStore(database).record(row)
    assert "begun" in await docflow("expected", "run", "orders")

    async def checked() -> bool:
        return bool(json.loads(await docflow("expected", "days", "orders", "--json")))

    await eventually(checked)
    (day,) = json.loads(await docflow("expected", "days", "orders", "--json"))
    # In the last minute of a day it is late.
    assert day["count"] == 1 and day["state"] in ("met", "late")
    assert "orders" in await docflow("expected", "list")


async def _paused() -> None:
    assert await docflow("watches", "pause", "acme-orders", "--note", "moving") == (
        "acme-orders is paused\n"
    )
    assert (await listed("watches"))["schedule"] == "paused"
    await docflow("watches", "resume", "acme-orders")
    assert (await listed("watches"))["schedule"] == "active"
    await docflow("expected", "pause", "orders")
    assert (await listed("expected"))["schedule"] == "paused"
    unknown = await run_docflow_in_thread("transfers", "expected", "pause", "nothing")
    assert unknown.exit_code == 1 and "declared are orders" in unknown.output


async def test_without_a_file_nothing_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCFLOW_TRANSFERS_WATCHES", raising=False)
    done = await run_docflow_in_thread("transfers", "watches", "list")
    assert done.exit_code != 0 and "DOCFLOW_TRANSFERS_WATCHES is not set" in done.output


async def test_a_queue_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "watches.yaml"
    file.write_text(CLOCKS.replace("queue: jobs", "queue: jobsnowhere"))
    monkeypatch.setenv("DOCFLOW_TRANSFERS_WATCHES", str(file))
    done = await run_docflow_in_thread("transfers", "expected", "list")
    assert done.exit_code != 0 and "orders: there is no queue jobsnowhere" in done.output
