"""`docflow watch`: from the file of watches to the event."""

from collections.abc import AsyncIterator, Mapping
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
from adapters.database.engine import Database
from stack.temporal import temporal_binary
from tests.gateway.test_commands import Terminal
from tests.support.fresh_database import fresh_url
from tests.support.gateway import build_app, served, token
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.events import a_transfer
from tests.support.transfers.places import open_places
from tests.support.waiting import eventually
from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.plugin import docflow_plugin
from workers.shared.register import recognise
from workers.shared.resources import open_resources
from workers.shared.schedules import Change, declared_schedules, delete_undeclared, reconcile
from workers.transfers.settings import clocks_of
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


async def test_a_declared_watch_starts_events(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = fresh_url()
    file, clocks = tmp_path / "out" / "a.csv", tmp_path / "watches.yaml"
    file.parent.mkdir()
    file.write_bytes(b"1,2\n")
    clocks.write_text(CLOCKS)
    monkeypatch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
    settings = {
        "DATABASE_URL": url,
        "DOCFLOW_BLOB_FOLDER": str(tmp_path / "blobs"),
        "DOCFLOW_SCRATCH": str(tmp_path / "scratch"),
        "DOCFLOW_TRANSFERS_WATCHES": str(clocks),
    }
    async with open_resources(settings) as resources:
        app, _ = build_app(client, resources, allowed_hosts=("127.0.0.1",), environment=settings)
        async with served(app) as address:
            ada = Terminal(address, token("ada", 1, "operator"))
            await _looked_at(ada, client, resources.database, tmp_path, settings)
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


async def _looked_at(
    ada: Terminal, client: Client, database: Database, root: Path, settings: Mapping[str, str]
) -> None:
    [missing] = await ada.json("watch", "list")
    assert (missing["schedule"], missing["last"]) == ("missing", None)
    table = declared_schedules(["transfers"], settings)
    assert set((await reconcile(client, ["transfers"], table)).values()) == {Change.CREATED}
    assert set((await reconcile(client, ["transfers"], table)).values()) == {Change.NONE}
    assert await delete_undeclared(client, ["transfers"], settings) == {}
    async with worker_of(client, database, root):
        await _watched(ada, client)
        returned = WatchState(watch="acme-orders", result=PollWatchResult(files=9, returned=7_531))
        await SqlWatchStore(database).put_state(returned)
        shown = await ada.says("watch", "list")
        assert "returned" in shown and "7531" in shown
        await _expected(ada, database)
    await ada.says("schedule", "pause", "transfer-watch-acme-orders", "--reason", "moving")
    [paused] = await ada.json("watch", "list")
    assert paused["schedule"] == "paused"
    unknown = await ada.says("watch", "show", "nothing", "--expected", code=1)
    assert "declared are orders" in unknown


async def _watched(ada: Terminal, client: Client) -> None:
    async def sent() -> bool:
        await ada.says("schedule", "trigger", "transfer-watch-acme-orders")
        files = (await ada.json("watch", "show", "acme-orders"))["files"]
        return bool(files) and files[0]["event"] is not None

    # Two looks, and each is one run of the schedule.
    await eventually(sent)
    [found] = (await ada.json("watch", "show", "acme-orders"))["files"]
    id = transfer_id_of("docflow.watch.acme-orders", found["event"])
    assert found["transfer_id"] == id
    shown = await ada.says("watch", "show", "acme-orders")
    assert id[:12] in shown and "resume transfer-watch-acme-orders" in shown
    assert "no such file" in await ada.says("watch", "show", "acme-orders", "--unsent")
    event = await client.get_workflow_handle(transfer_workflow_id(id)).describe()
    assert event.workflow_type == "FileEvent"
    runs = [each async for each in client.list_workflows("WorkflowType = 'WatchLook'")]
    known = recognise(catalogue.PIPELINES, runs[0].id)
    assert known is not None and (known.kind.scheduled, known.key) == (True, "acme-orders")


async def _expected(ada: Terminal, database: Database) -> None:
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
    assert "not checked yet" in await ada.says("watch", "list", "--expected")
    await ada.says("schedule", "trigger", "transfer-expected-orders")

    async def checked() -> bool:
        return bool((await ada.json("watch", "show", "orders", "--expected"))["days"])

    await eventually(checked)
    [day] = (await ada.json("watch", "show", "orders", "--expected"))["days"]
    # In the last minute of a day it is late.
    assert day["count"] == 1 and day["state"] in ("met", "late")
    assert day["state"] in await ada.says("watch", "show", "orders", "--expected")


def test_a_queue_that_is_not_there_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "watches.yaml"
    file.write_text(CLOCKS.replace("queue: jobs", "queue: jobsnowhere"))
    with pytest.raises(SettingsError, match="orders: there is no queue jobsnowhere"):
        clocks_of({"DOCFLOW_TRANSFERS_WATCHES": str(file)})
