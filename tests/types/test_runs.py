"""Runs of declared types on a real worker: rows go to their targets, and versions stay."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import asyncpg
import httpx
import pytest
import pytest_asyncio
from azure.servicebus import ServiceBusMessage
from temporalio.client import Client, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from adapters.http import signature
from emulators.service_bus import QueueSettings as EmulatedQueue
from emulators.service_bus import ServiceBusEmulator
from emulators.tests.clients import quick_client
from stack.temporal import TUNING, temporal_binary
from tests.support.cli import run_docflow_in_thread
from tests.support.dev_server import started
from tests.support.fresh_database import DATABASES, fresh_url
from tests.support.gateway import build_app, served, sign_in, token
from tests.support.waiting import eventually
from tests.support.webhook import Receiver, receiving
from workers.imports.bridge import intake_of, receive
from workers.imports.register import IMPORTS
from workers.imports.settings import RunSettings
from workers.shared.cli.context import CliContext
from workers.shared.plugin import docflow_plugin
from workers.shared.register import Context
from workers.shared.resources import Resources, open_resources
from workers.shared.services.bodies import DeadLetter, Settle, Verdict
from workers.shared.worker_factory import build_worker
from workers.spreadsheets.register import SPREADSHEETS
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import Counts, ImportResult, ImportState
from workflows.shared import attributes
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.runs import Answer, RowCounts, SpreadsheetResult
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = b"a secret of thirty-two characters"
STOCK = """
name: stock
title: Stock
key: [article]
target: {database: erp, table: stock}
fields:
  article: {kind: code, required: true}
  amount: {kind: integer}
"""
READINGS = """
name: readings
title: Readings
key: [meter]
target: {file: jsonl, webhook: loader}
fields:
  meter: {kind: code, required: true}
  value: {kind: decimal}
"""
SUPPLIERS = """
name: suppliers
title: Suppliers
key: [number]
fields:
  number: {kind: code, required: true}
"""
ORDERS = """
name: orders
title: Orders
key: [number]
fields:
  number: {kind: code, required: true}
  supplier: {kind: reference, to: suppliers}
"""


@dataclass(frozen=True)
class Site:
    """A worker of imports, and the places where rows go."""

    settings: dict[str, str]
    client: Client
    resources: Resources
    receiver: Receiver
    folder: Path

    async def docflow(self, *arguments: str) -> str:
        """What a command prints."""
        context = CliContext(self.settings)
        done = await run_docflow_in_thread(*arguments, context=context)
        assert done.exit_code == 0, done.output
        return done.output

    async def apply(self, *texts: str) -> None:
        """Put types in force as a team does."""
        for number, text in enumerate(texts):
            (self.folder / f"{number}.yaml").write_text(text, encoding="utf-8")
        await self.docflow("type", "apply", "--folder", str(self.folder))

    def stored(self, name: str, content: bytes) -> Path:
        """A document in the blob store."""
        blob = Path(self.settings["DOCFLOW_BLOB_FOLDER"], "imports", "uploads", name)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        return blob

    async def accepted(self, kind: str, task: str, **fields: Any) -> Verdict:
        """What becomes of a message."""
        context = Context(self.settings, self.client, self.resources)
        intake = intake_of(context, "import-queue", RunSettings.read(self.settings))
        message = {"document_type": kind, "project_id": "P1", "task_id": task}
        given = {"blob_name": f"uploads/{task}", "filename": f"{task}.csv", **fields}
        return await intake.accept(json.dumps(message | given).encode(), 0, None)

    async def sent(self, kind: str, task: str, content: bytes) -> WorkflowHandle[Any, ImportResult]:
        """The run of a message."""
        self.stored(task, content)
        verdict = await self.accepted(kind, task)
        assert isinstance(verdict, Settle), verdict
        return self.client.get_workflow_handle_for(DocumentImport.run, f"import/P1/{task}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    start = partial(
        WorkflowEnvironment.start_local,
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[w for value in TUNING for w in ("--dynamic-config-value", value)],
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    with DATABASES.empty() as erp, pytest.MonkeyPatch.context() as patch:
        async with receiving() as receiver, await started(start) as temporal:
            client = temporal.client
            patch.setenv("TEMPORAL_ADDRESS", client.service_client.config.target_host)
            loader = {"url": receiver.url, "secret": f"whsec_{base64.b64encode(SECRET).decode()}"}
            settings = {
                "DATABASE_URL": fresh_url(),
                "DOCFLOW_BLOB_FOLDER": str(folder / "blobs"),
                "DOCFLOW_SCRATCH": str(folder / "scratch"),
                "DOCFLOW_TYPE_DATABASES": json.dumps({"erp": erp}),
                "DOCFLOW_TYPE_WEBHOOKS": json.dumps({"loader": loader}),
                "USER": "ada",
            }
            async with open_resources(settings) as resources:
                context = Context(settings, client, resources)
                own = IMPORTS.open(context, IMPORTS.settings(settings))
                sheets = SPREADSHEETS.open(context, SPREADSHEETS.settings(settings))
                gateway, _ = build_app(client, resources, allowed_hosts=("127.0.0.1",))
                async with (
                    own as opened,
                    sheets as of_sheets,
                    build_worker(client, IMPORTS, resources, opened),
                    build_worker(client, SPREADSHEETS, resources, of_sheets),
                    served(gateway) as address,
                ):
                    settings["DOCFLOW_ADDRESS"] = address
                    settings["DOCFLOW_TOKEN"] = token("ada", 1, "operator")
                    yield Site(settings, client, resources, receiver, folder)


async def test_a_message_fills_a_table_of_a_team_and_a_file(site: Site) -> None:
    erp = json.loads(site.settings["DOCFLOW_TYPE_DATABASES"])["erp"]
    connection = await cast("Any", asyncpg).connect(erp)
    try:
        await connection.execute(
            "CREATE TABLE stock (project_id text, article text, amount int CHECK (amount >= 0),"
            " PRIMARY KEY (project_id, article))"
        )
        await site.apply(STOCK, READINGS)
        run = await site.sent("stock", "S1", b"article,amount\nA-1,4\nA-2,-1\nA-3,2\n")
        done = await run.result()
        assert (done.state, done.counts) == (ImportState.COMPLETED, Counts(created=2, rejected=1))
        assert "stock_amount_check" in done.problems[0].reason
        rows = await connection.fetch("SELECT article, amount FROM stock ORDER BY article")
        assert [tuple(row) for row in rows] == [("A-1", 4), ("A-3", 2)]
    finally:
        await connection.close()
    run = await site.sent("readings", "R1", b"meter,value\nM-1,1.50\nM-2,x\n")
    done = await run.result()
    assert done.counts == Counts(created=1, rejected=1)
    [(_, headers, body)] = site.receiver.requests
    told = json.loads(body)["data"]
    given = (headers["webhook-id"], int(headers["webhook-timestamp"]))
    assert headers["webhook-signature"] == signature(SECRET, *given, body)
    file = Path(site.settings["DOCFLOW_BLOB_FOLDER"], "imports", told["file"]["name"])
    row = {"project_id": "P1", "meter": "M-1", "value": "1.5"}
    assert [json.loads(line) for line in file.read_text().splitlines()] == [row]


async def test_a_parked_undo_is_shown_and_retried(site: Site, tmp_path: Path) -> None:
    erp = json.loads(site.settings["DOCFLOW_TYPE_DATABASES"])["erp"]
    shelf = STOCK.replace("stock", "shelf")
    connection = await cast("Any", asyncpg).connect(erp)
    try:
        await connection.execute(
            "CREATE TABLE shelf (project_id text, article text, amount int,"
            " PRIMARY KEY (project_id, article))"
        )
        await site.apply(shelf)
        (tmp_path / "shelf.csv").write_bytes(b"article,amount\nA-1,4\nA-2,5\n")
        given = ("--type", "shelf", "--scope", "project_id=P1", "--auto-start", "-o", "name")
        uuid = (await site.docflow("upload", "submit", str(tmp_path / "shelf.csv"), *given)).strip()
        run = site.client.get_workflow_handle_for(SpreadsheetImport.run, f"spreadsheet/{uuid}")
        assert (await run.result()).counts == RowCounts(created=2)
        await connection.execute("ALTER TABLE shelf RENAME amount TO pieces")
        await site.apply(shelf.replace("table: shelf}", "table: shelf, columns: {amount: pieces}}"))
        await site.docflow("upload", "undo", uuid)

        async def parked() -> bool:
            shown = json.loads(await site.docflow("show", uuid, "-o", "json"))
            return shown["answers"] == ["retry"]

        await eventually(parked, seconds=60, pause=0.1)
        missing = "no column amount any more"
        for name in (uuid, f"spreadsheet/{uuid}", f"spreadsheet-undo/{uuid}"):
            shown = json.loads(await site.docflow("show", name, "-o", "json"))
            assert (shown["state"], shown["answers"]) == ("needs_attention", ["retry"])
            assert missing in shown["reason"] and missing in shown["details"]["undo"]["reason"]
        [listed] = json.loads(await site.docflow("list", "--needs-attention", "-o", "json"))
        assert missing in listed["reason"]
        table = " ".join((await site.docflow("upload", "show", uuid)).split())
        assert f"docflow retry {uuid}" in table
        async with httpx.AsyncClient(base_url=site.settings["DOCFLOW_ADDRESS"]) as browser:
            await sign_in(browser, site.settings["DOCFLOW_TOKEN"])
            page = (await browser.get(f"/uploads/{uuid}")).text
        assert missing in page and f'action="/uploads/{uuid}/retry"' in page
        # Nothing has changed: the run parks again, under the other name as well.
        for name in (f"spreadsheet-undo/{uuid}", uuid):
            await site.docflow("retry", name)
            await eventually(parked, seconds=60, pause=0.1)
        await connection.execute("ALTER TABLE shelf RENAME pieces TO amount")
        await connection.execute("UPDATE shelf SET amount = 9 WHERE article = 'A-2'")
        await site.docflow("retry", uuid)

        async def undone() -> bool:
            return "UNDONE_PARTLY: 1 deleted" in await site.docflow("upload", "show", uuid)

        await eventually(undone, seconds=60, pause=0.1)
        shown = await site.docflow("upload", "show", uuid)
        assert "row 3: shelf P1 / A-2 was changed since" in shown
        assert len(await connection.fetch("SELECT * FROM shelf")) == 1
        shown = json.loads(await site.docflow("show", uuid, "-o", "json"))
        assert (shown["state"], shown["reason"]) == ("completed", None)
    finally:
        await connection.close()


async def test_a_review_says_at_the_terminal_what_comes_next(site: Site, tmp_path: Path) -> None:
    own = STOCK.replace("stock", "holdings").replace("target: {database: erp, table: holdings}", "")
    await site.apply(own)
    (tmp_path / "holdings.csv").write_bytes(b"article,amount\nA-1,x\nA-2,5\n")
    given = ("--type", "holdings", "--scope", "project_id=P1", "--auto-start", "--review")
    file = str(tmp_path / "holdings.csv")
    uuid = (await site.docflow("upload", "submit", file, *given, "-o", "name")).strip()

    async def waits() -> bool:
        return "rows have a problem" in await site.docflow("upload", "show", uuid)

    await eventually(waits, seconds=60, pause=0.1)
    shown = " ".join((await site.docflow("upload", "show", uuid)).split())
    assert "1 of 2 rows have a problem" in shown
    assert f"{site.settings['DOCFLOW_ADDRESS']}/uploads/{uuid}" in shown.replace(" ", "")
    assert f"docflow upload confirm {uuid} rows" in shown
    await site.docflow("upload", "confirm", uuid, "rows")
    run = site.client.get_workflow_handle_for(SpreadsheetImport.run, f"spreadsheet/{uuid}")
    assert (await run.result()).counts == RowCounts(created=1, error=1)


async def test_a_message_on_the_queue_names_a_type_of_a_team(site: Site) -> None:
    await site.apply(SUPPLIERS)
    blob = Path(site.settings["DOCFLOW_BLOB_FOLDER"], "imports", "uploads", "Q1")
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(b"number\nS-7\n")
    fields = {"project_id": "P1", "task_id": "Q1", "blob_name": "uploads/Q1"}
    async with ServiceBusEmulator([EmulatedQueue("import-queue", 5, 10)]) as emulator:
        client = quick_client(emulator.connection_string)
        async with client, client.get_queue_sender("import-queue") as sender:
            for kind in ("suppliers", "nowhere"):
                body = json.dumps({**fields, "document_type": kind})
                await sender.send_messages(ServiceBusMessage(body, message_id=kind))
        queue = {"AZURE_SERVICE_BUS_CONNECTION_STRING": emulator.connection_string}
        settings = site.settings | queue | {"MAX_WAIT_TIME_SECONDS": "1"}
        [bridge] = IMPORTS.bridges
        given = bridge.settings(settings)
        context = Context(settings, site.client, site.resources)
        totals = await receive(context, given, asyncio.Event(), True)
    assert (totals.settled, totals.dead_lettered) == (1, 1)
    done = await site.client.get_workflow_handle_for(DocumentImport.run, "import/P1/Q1").result()
    assert done.counts == Counts(created=1)


async def test_open_runs_keep_the_version_of_a_changed_type(site: Site) -> None:
    await site.apply(SUPPLIERS, ORDERS)
    runs = [await site.sent("orders", f"O{n}", b"number,supplier\n%d,S-1\n" % n) for n in range(3)]
    for run in runs:

        async def parked(run: WorkflowHandle[Any, ImportResult] = run) -> bool:
            return (await run.query(DocumentImport.status)).state == ImportState.PARKED

        await eventually(parked, seconds=60, pause=0.1)
    await site.apply(SUPPLIERS, ORDERS + "  price: {kind: money, required: true}\n")
    await (await site.sent("suppliers", "U1", b"number\nS-1\n")).result()
    for number, run in enumerate(runs):
        await site.docflow("retry", f"import/P1/O{number}")
        async with asyncio.timeout(60):
            done = await run.result()
        assert done.counts == Counts(created=1)
        assert str(done.reason).startswith("The type orders has changed since; this import kept ")
    newest = await site.sent("orders", "O3", b"number,supplier,price\n3,S-1,1.50\n")
    done = await newest.result()
    assert (done.counts, done.reason) == (Counts(created=1), None)


async def test_messages_about_people_and_clubs_are_uploads_that_ask(site: Site) -> None:
    ours = {"organisation_id": 1}

    async def run_of(
        kind: str, task: str, **scope: Any
    ) -> WorkflowHandle[SpreadsheetImport, SpreadsheetResult]:
        verdict = await site.accepted(kind, task, scope=ours | scope)
        assert isinstance(verdict, Settle), verdict
        return site.client.get_workflow_handle_for(SpreadsheetImport.run, verdict.workflow_id)

    site.stored("E1", b"name,starts_on\nRun,2026-05-01\n")
    first = await run_of("events", "E1")
    async with asyncio.timeout(60):
        done = await first.result()
    assert (done.state, done.counts) == (SpreadsheetState.COMPLETED, RowCounts(created=1))
    assert await site.accepted("events", "E1", scope=ours) == Settle(first.id, duplicate=True)
    other = await site.accepted("events", "E1", scope={"organisation_id": 2})
    assert isinstance(other, DeadLetter)
    assert "was started by a message with other content" in other.description

    blob = site.stored("P1", b"first name,last name,category\nAda,Byron,Seniors\n")
    asking = await run_of("EVENT_PARTICIPANT", "P1", event_id=1)

    async def asks(
        run: WorkflowHandle[SpreadsheetImport, SpreadsheetResult], about: SpreadsheetState
    ) -> None:
        async def asked() -> bool:
            status = await run.query(SpreadsheetImport.status)
            return status.state is about and status.waiting_since is not None

        await eventually(asked, seconds=60, pause=0.1)

    await asks(asking, SpreadsheetState.CELL_MAPPING)
    site.stored("P2", b"first name,last name,group\nAda,Byron,Seniors\n")
    unknown = await run_of("EVENT_PARTICIPANT", "P2", event_id=1)
    await asks(unknown, SpreadsheetState.COLUMN_MAPPING)
    await unknown.execute_update(SpreadsheetImport.cancel, Answer(by="ada"))
    listed = await site.docflow("list", "--output", "name")
    assert asking.id in listed
    await site.client.get_workflow_handle(asking.id).terminate()
    again = await run_of("EVENT_PARTICIPANT", "P1", event_id=1)
    assert again.id != asking.id
    # The sender may remove the document of an accepted message.
    blob.unlink()
    scope = ours | {"event_id": 1}
    repeated = await site.accepted("EVENT_PARTICIPANT", "P1", scope=scope)
    assert repeated == Settle(again.id, duplicate=True)
    await again.execute_update(SpreadsheetImport.cancel, Answer(by="ada"))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"scope": {"event_id": 1}}, "scope.organisation_id: rows of races need it"),
        ({"scope": {"organisation_id": 1}}, "scope.event_id: rows of races need it"),
        ({"scope": {"organisation_id": 1, "event_id": "x"}}, "scope.event_id: 'x' is no id"),
        (
            {"scope": {"organisation_id": 1, "event_id": 1, "day": "1"}},
            "scope.day: rows of races are told apart by event_id and organisation_id",
        ),
        ({"date_order": "dmy"}, "date_order: files of type races are read as uploads are"),
        ({"scope": {"organisation_id": 1, "event_id": 1}}, "blob_name: there is no uploads/none"),
        ({"scope": {"organisation_id": 1, "event_id": 1}, "sheet": "x" * 150}, "sheet: "),
    ],
)
async def test_a_message_about_clubs_says_what_it_lacks(
    site: Site, fields: dict[str, Any], reason: str
) -> None:
    verdict = await site.accepted("races", "none", **fields)
    assert isinstance(verdict, DeadLetter)
    assert verdict.description.startswith(reason)
