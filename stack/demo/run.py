"""`docflow demo`: the main job over the sample documents, from queue and upload to checked rows."""

import asyncio
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import Field
from rich.console import Console
from rich.live import Live
from rich.table import Table
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError, RPCStatusCode

from adapters.aws.session import open_aws
from adapters.database import Database
from adapters.ports import Blobs
from contracts import spreadsheets
from contracts.base import Contract
from contracts.batches import DocumentCounts, Phase
from contracts.imports import (
    IMPORT_MESSAGE,
    Answer,
    Counts,
    ImportMessage,
    ImportResult,
    ImportState,
    TableMessage,
    workflow_id,
)
from stack.demo import batches as demo_batch
from stack.demo.batches import (
    ExpectedBatch,
    ExternalSystems,
    failed_documents,
    judge,
    left_behind,
    run_batch,
)
from stack.demo.spreadsheets import Answers, ApiError, SpreadsheetPerson
from stack.embedded import EmbeddedStack, embedded_stack
from workers.connect import connect
from workers.resources.common import open_resources
from workers.services.imports.queue import ServiceBusQueue, open_queue
from workers.settings.batches import BatchSettings
from workers.settings.imports import QueueSettings
from workflows.imports.document_import import DocumentImport


class Expected(Contract):
    """How a sample has to end."""

    state: ImportState = ImportState.COMPLETED
    counts: Counts = Counts()
    parked: bool = False
    """The run parks first, and the demo answers `skip`."""
    rejected_message: bool = False
    """The message itself is refused and never becomes a run."""


class Sample(Contract):
    """One document of the demo."""

    file: str | None = None
    """Name below the samples folder; None for types that need no file."""
    message: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The message, without task, project and blob name."""
    spreadsheet: Answers | None = None
    """It goes to the gateway instead of the queue, and is answered with this."""
    batch: ExpectedBatch | None = None
    """It is a batch of documents that are made up on the spot."""
    expect: Expected


@dataclass
class Run:
    """A sample on its way."""

    sample: Sample
    task_id: str
    body: dict[str, Any]
    message: ImportMessage | None
    state: str = "queued"
    counts: Counts = field(default_factory=Counts)
    seconds: float | None = None
    wrong: str | None = None
    began: float = 0.0
    uuid: str | None = None
    """Of a spreadsheet, once it is uploaded."""
    notes: Sequence[str] = ()
    """What a person wants to know beside it."""

    @property
    def workflow_id(self) -> str:
        """Also the id of its message."""
        if self.sample.batch is not None:
            return demo_batch.KEY.workflow_id
        if self.uuid is not None:
            return spreadsheets.workflow_id(self.uuid)
        return workflow_id(PROJECT, self.task_id)


PROJECT = "demo"
WIDE = 240
"""Columns of a table with full addresses."""
TIMEOUT = 60.0
"""Seconds that one phase may take."""


async def run_demo(samples: Path, folder: Path, console: Console, *, keep: bool = False) -> int:
    """Run the samples on a fresh stack and compare what came out.

    Args:
        samples: Folder with `demo.json` (phases of samples) and the files it names.
        folder: Where the stack lives; emptied first.
        console: Where progress and the table go.
        keep: Leave the stack up afterwards, until it is interrupted.

    Returns:
        Exit code: 0 when every sample ended as expected.
    """
    phases = [
        [Sample.model_validate(sample) for sample in phase]
        for phase in json.loads((samples / "demo.json").read_text())
    ]
    shutil.rmtree(folder, ignore_errors=True)
    began = time.monotonic()
    console.print(
        "starting Temporal, the Service Bus emulator, MiniStack, a worker and a gateway ..."
    )
    async with embedded_stack(folder) as stack:
        console.print(
            f"ready after {time.monotonic() - began:.1f} s, "
            f"Web UI: {stack.temporal.ui_url}/namespaces/default/workflows"
        )
        if keep:
            console.print(f"pages: {stack.sign_in_url()}", soft_wrap=True)
        runs = await _run_phases(phases, samples, stack, console)
        exit_code = _report(runs, stack.temporal.ui_url, console)
        if keep:
            console.print("the stack stays up until Ctrl-C")
            await stack.keep_working(console.print)
    return exit_code


def _report(runs: Sequence[Run], ui_url: str | None, console: Console) -> int:
    console.print(_table(runs, ui_url, links=True, wide=console.width >= WIDE))
    for note in (note for run in runs for note in run.notes):
        console.print(note, markup=False, highlight=False)
    wrong = [run for run in runs if run.wrong]
    for run in wrong:
        console.print(f"[red]{run.task_id}: {run.wrong}[/red]")
    if wrong:
        console.print(f"[red]{len(wrong)} of {len(runs)} documents did not end as expected[/red]")
        return 1
    console.print(f"[green]all {len(runs)} documents ended as expected[/green]")
    return 0


async def _run_phases(
    phases: Sequence[Sequence[Sample]], samples: Path, stack: EmbeddedStack, console: Console
) -> list[Run]:
    runs: list[Run] = []
    async with (
        AsyncExitStack() as opened,
        open_resources(stack.environment) as resources,
        open_queue(QueueSettings.read(stack.environment)) as queue,
        httpx.AsyncClient(
            base_url=stack.gateway_url,
            headers={"Authorization": f"Bearer {stack.token('the demo')}"},
            timeout=TIMEOUT,
        ) as api,
    ):
        client = await connect(stack.settings["TEMPORAL_ADDRESS"])
        clients = await opened.enter_async_context(open_aws(stack.aws))
        outside = ExternalSystems(clients, stack.installed, resources.blobs)
        with Live(console=console, refresh_per_second=8, transient=True) as live:
            for phase in phases:
                fresh = [_prepare(sample, len(runs) + n) for n, sample in enumerate(phase, 1)]
                runs += fresh
                async with asyncio.TaskGroup() as group:
                    for run in fresh:
                        if run.sample.batch is not None:
                            group.create_task(
                                _load_batch(run, outside, client, stack, resources.database)
                            )
                            continue
                        if run.sample.spreadsheet is not None:
                            group.create_task(_import_spreadsheet(run, samples, api, stack))
                            continue
                        group.create_task(_follow(run, samples, resources.blobs, queue, client))
                    group.create_task(_draw(live, runs, fresh, stack.temporal.ui_url))
        rejected = {row.message_id for row in await resources.rejected.list()}
    for run in runs:
        run.wrong = run.wrong or _judge(run, rejected)
    return runs


def _prepare(sample: Sample, number: int) -> Run:
    if sample.batch is not None:
        return Run(sample, f"{number:02}-batch", {"document_type": "batch"}, None)
    if sample.spreadsheet is not None:
        kind = sample.spreadsheet.import_type
        task_id = f"{number:02}-{kind.lower().replace('_', '-')}"
        return Run(sample, task_id, {"document_type": kind}, None)
    kind = str(sample.message.get("document_type", "unknown")).replace("_", "-")
    task_id = f"{number:02}-{kind}"
    body = {**sample.message, "task_id": task_id, "project_id": PROJECT}
    if sample.file:
        blob = _blob_name(task_id, sample.file)
        body |= {"temp_blob_name" if "target_blob_name" in body else "blob_name": blob}
        body["filename"] = sample.file
    message = None if sample.expect.rejected_message else IMPORT_MESSAGE.validate_python(body)
    return Run(sample, task_id, body, message)


def _blob_name(task_id: str, file: str) -> str:
    return f"uploads/{PROJECT}/{task_id}/{file}"


async def _follow(
    run: Run, samples: Path, blobs: Blobs, queue: ServiceBusQueue, client: Client
) -> None:
    if run.sample.file:
        name = _blob_name(run.task_id, run.sample.file)
        await blobs.upload(samples / run.sample.file, name)
    run.began = time.monotonic()
    await queue.send(json.dumps(run.body).encode(), run.workflow_id)
    if run.message is None:
        run.state = "refused"
        return
    try:
        async with asyncio.timeout(TIMEOUT):
            await _until_done(run, client)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"


async def _import_spreadsheet(
    run: Run, samples: Path, api: httpx.AsyncClient, stack: EmbeddedStack
) -> None:
    assert run.sample.spreadsheet is not None and run.sample.file is not None

    def show(state: str) -> None:
        run.state = state

    person = SpreadsheetPerson(api, run.sample.spreadsheet, show)
    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            run.uuid = await person.upload(samples / run.sample.file, stack.club.event_id)
            _, run.counts = await person.bring_to_its_end()
    except ApiError as refused:
        run.wrong = str(refused)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
    run.seconds = time.monotonic() - run.began


async def _load_batch(
    run: Run,
    outside: ExternalSystems,
    client: Client,
    stack: EmbeddedStack,
    database: Database,
) -> None:
    assert run.sample.batch is not None

    def show(state: str, documents: DocumentCounts | None) -> None:
        run.state = state
        if documents is not None:
            run.counts = Counts(
                created=documents.loaded, unchanged=documents.duplicate, rejected=documents.failed
            )

    run.began = time.monotonic()
    try:
        async with asyncio.timeout(TIMEOUT):
            result = await run_batch(outside, client, stack.folder / "documents", show)
        run.notes = [
            f"{name} was not loaded: {reason}"
            for name, reason in await failed_documents(database, demo_batch.KEY)
        ]
        settings = BatchSettings.read(stack.settings)
        left = await left_behind(settings, outside.clients, database, client)
    except TimeoutError:
        run.wrong = f"not done after {TIMEOUT:.0f} s; last state {run.state}"
        return
    except WorkflowFailureError as failure:
        run.wrong = f"failed: {failure.cause}"
        return
    run.wrong = judge(result, run.sample.batch, left)
    run.state = "completed" if run.wrong is None else "failed"
    run.seconds = time.monotonic() - run.began


async def _until_done(run: Run, client: Client) -> None:
    handle = client.get_workflow_handle_for(DocumentImport.run, run.workflow_id)
    while True:
        try:
            status = (await handle.describe()).status
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            await asyncio.sleep(0.05)
            continue
        if status is not WorkflowExecutionStatus.RUNNING:
            break
        now = await handle.query(DocumentImport.status)
        run.state = now.state.value
        if now.next_steps and run.sample.expect.parked:
            # Long enough for a person to see it in the table.
            await asyncio.sleep(0.5)
            await handle.execute_update(
                DocumentImport.skip, Answer(reason=now.reason, by="the demo")
            )
        await asyncio.sleep(0.1)
    try:
        result: ImportResult = await handle.result()
    except WorkflowFailureError as failure:
        run.wrong = f"failed: {failure.cause}"
        return
    run.state, run.counts = result.state.value, result.counts
    run.seconds = time.monotonic() - run.began


def _judge(run: Run, rejected: set[str | None]) -> str | None:
    expect = run.sample.expect
    if expect.rejected_message:
        if run.workflow_id in rejected:
            run.state = "dead letter"
            return None
        return "its message was not recorded as rejected"
    if run.state != expect.state.value:
        return f"ended {run.state}, expected {expect.state.value}"
    if run.counts != expect.counts:
        return f"counts {_short(run.counts)}, expected {_short(expect.counts)}"
    return None


def _short(counts: Counts) -> Mapping[str, int]:
    return {name: value for name, value in counts.model_dump().items() if value}


async def _draw(live: Live, runs: list[Run], fresh: list[Run], ui_url: str | None) -> None:
    while True:
        live.update(_table(runs, ui_url, links=False))
        if all(run.seconds is not None or run.wrong or run.state == "refused" for run in fresh):
            return
        await asyncio.sleep(0.1)


_COLOURS = {
    "completed": "green",
    "parked": "yellow",
    "column mapping": "yellow",
    "cell mapping": "yellow",
    "failed": "red",
    "running": "cyan",
    "processing": "cyan",
    **dict.fromkeys(Phase, "cyan"),
}


def _table(runs: Sequence[Run], ui_url: str | None, *, links: bool, wide: bool = True) -> Table:
    table = Table("document", "type", "strategy", "state")
    for title in (*Counts.model_fields, "s"):
        table.add_column(title, justify="right")
    if links:
        table.add_column("run in the Web UI", no_wrap=True)
    for run in runs:
        row = [
            run.sample.file or ("40 files" if run.sample.batch else "-"),
            str(run.body.get("document_type")),
            _strategy(run),
            f"[{_COLOURS.get(run.state, 'white')}]{run.state}[/]",
            *(str(count or "") for count in run.counts.model_dump().values()),
            "" if run.seconds is None else f"{run.seconds:.1f}",
        ]
        if links and not run.sample.expect.rejected_message:
            url = f"{ui_url}/namespaces/default/workflows/{quote(run.workflow_id, safe='')}"
            # A narrow window has no room for the address; terminals make the short name a link.
            row.append(f"[link={url}]{url if wide else run.task_id}[/link]")
        table.add_row(*row)
    return table


def _strategy(run: Run) -> str:
    return str(run.message.strategy) if isinstance(run.message, TableMessage) else ""
